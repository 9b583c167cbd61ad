/** The graph that a schedule submits. Pure. */
import { isoTime } from '../../shared/text/iso-time.ts'
import { isObject } from '../../shared/text/json.ts'
import type { ScheduleDefinition } from '../rules/schedule.ts'

/** Labels that the service sets. */
export const OWN_LABELS = ['schedule', 'due'] as const

/**
 * The body of POST /tasks for a due time; without one, a caller asked for the graph. The ids of its tasks belong to the
 * graph, so that graphs of a schedule may run beside each other.
 */
export function scheduledGraph(
  name: string,
  { graph, fields: { params } }: Pick<ScheduleDefinition, 'graph' | 'fields'>,
  due?: number,
): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(scheduledFields(name, graph, params, due)))
}

/** As `scheduledGraph`, as a value. */
export function scheduledFields(
  name: string,
  graph: object,
  params: Readonly<Record<string, unknown>> = {},
  due?: number,
): Record<string, unknown> {
  const given = graph as Readonly<Record<string, unknown>>
  const labels = isObject(given.labels) ? given.labels : {}
  const hasParams = isObject(given.params) || Object.keys(params).length > 0
  return {
    name,
    ...given,
    ...(hasParams && { params: { ...(given.params as object | undefined), ...params } }),
    scope: 'graph',
    labels: { ...labels, schedule: name, ...(due !== undefined && { due: isoTime(due) }) },
  }
}
