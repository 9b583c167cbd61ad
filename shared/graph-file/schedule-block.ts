/** A graph file with a field `schedule`: the fields of a schedule, and the graph beside them. Pure. */
import { CallFailed } from '../http/client.ts'
import { isObject, jsonTypeOf } from '../text/json.ts'

export interface ScheduledFile {
  /** Without the field `schedule`. */
  readonly graph: Readonly<Record<string, unknown>>
  /** Undefined if the file has none. */
  readonly schedule:
    | { readonly name: string | undefined; readonly fields: Readonly<Record<string, unknown>> }
    | undefined
}

/** `file` is its name in errors. Throws `CallFailed`. */
export function splitFile({ schedule, ...graph }: Readonly<Record<string, unknown>>, file: string): ScheduledFile {
  if (schedule === undefined || schedule === null) return { graph, schedule: undefined }
  if (!isObject(schedule))
    throw new CallFailed(
      `${file}: schedule: expected object such as {"cron": "0 3 * * *"}, got ${jsonTypeOf(schedule)}`,
    )
  const { name, graph: inner, ...fields } = schedule
  if (inner !== undefined) throw new CallFailed(`${file}: schedule.graph: the graph is the file itself (leave it out)`)
  if (name !== undefined && typeof name !== 'string')
    throw new CallFailed(`${file}: schedule.name: expected string, got ${jsonTypeOf(name)}`)
  return { graph, schedule: { name, fields } }
}

/** The name of a schedule that its file does not name: that of the file, without directories and ending. */
export const nameOfFile = (file: string): string => file.replace(/^.*[/\\]/, '').replace(/\.[^.]*$/, '')
