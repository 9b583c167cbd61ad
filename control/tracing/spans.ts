/** The spans of a graph and of an attempt, in the JSON form of OTLP. Pure. */

import type { Ending } from '../task/change.ts'
import type { Graph, Task } from '../task/graph.ts'
import type { GraphTotals } from '../task/graph-summary.ts'
import { attemptSpanId, graphSpanId, type TraceContext } from './trace-context.ts'

/** Characters of an error in a span. The record of the task has all of it. */
const MAX_ERROR_CHARACTERS = 1_000

/** Characters of an id or a name in a span. */
const MAX_NAME_CHARACTERS = 256

/** Spans within the service, which are neither client nor server. */
const KIND_INTERNAL = 1

/** Spans of requests to other services, below which the spans of these belong. */
const KIND_CLIENT = 3

const STATUS_ERROR = 2

type Value = { readonly stringValue: string } | { readonly intValue: string }

export interface Attribute {
  readonly key: string
  readonly value: Value
}

export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly flags: number
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly Attribute[]
  readonly status: { readonly code?: number; readonly message?: string }
}

/** The flag of a trace that is recorded. */
const SAMPLED = 1

export function graphSpan(graph: Graph, { counts, state, taskCount }: GraphTotals, context: TraceContext): Span {
  const { id, options, createdAt, endedAt = createdAt } = graph
  return {
    ...{ traceId: context.traceId, spanId: graphSpanId(id), flags: SAMPLED },
    ...(context.parentSpanId !== undefined && { parentSpanId: context.parentSpanId }),
    ...{ name: options.name === undefined ? 'graph' : `graph ${nameOf(options.name)}`, kind: KIND_INTERNAL },
    ...times(createdAt, endedAt),
    attributes: attributes({
      'taskmill.graph.id': id,
      'taskmill.graph.name': options.name,
      'taskmill.graph.state': state,
      'taskmill.graph.tasks': taskCount,
      'taskmill.trace_id': graph.traceId,
      ...prefixed('taskmill.graph.tasks.', counts),
      ...prefixed('taskmill.graph.label.', options.labels ?? {}),
    }),
    status: state === 'failed' ? { code: STATUS_ERROR } : {},
  }
}

/** How an attempt ended. */
export type AttemptEnding =
  | Exclude<Ending, { readonly status: 'skipped' }>
  | { readonly status: 'interrupted'; readonly error: string }
  | { readonly status: 'failed'; readonly failure: { readonly code: string; readonly message: string } }

export function attemptSpan(task: Task, at: number, ending: AttemptEnding, context: TraceContext): Span {
  const { id, graph, type, toolName, attempt, attemptStartedAt = at, childOf, rare } = task
  const { handle } = rare
  const parent = childOf?.parent
  const failure = 'failure' in ending ? ending.failure : undefined
  const error = failure?.message ?? ('error' in ending ? ending.error : undefined)
  return {
    ...{ traceId: context.traceId, spanId: attemptSpanId(graph.id, id, attempt), flags: SAMPLED },
    parentSpanId: parent === undefined ? graphSpanId(graph.id) : attemptSpanId(graph.id, parent.id, parent.attempt),
    ...{ name: toolName === undefined ? type : `${type}.${nameOf(toolName)}`, kind: kindOf(task) },
    ...times(attemptStartedAt, at),
    attributes: attributes({
      'taskmill.graph.id': graph.id,
      'taskmill.task.id': id,
      'taskmill.task.type': type,
      'taskmill.task.tool': toolName,
      'taskmill.task.attempt': attempt,
      'taskmill.task.status': ending.status,
      'taskmill.task.handle_id': handle?.id,
      'error.type': failure?.code,
    }),
    status:
      ending.status === 'failed' ? { code: STATUS_ERROR, message: (error ?? '').slice(0, MAX_ERROR_CHARACTERS) } : {},
  }
}

/** `mcp.poll` reads what this service keeps. */
const kindOf = ({ type, toolName }: Task): number =>
  (type === 'os' && toolName === 'http') || (type === 'mcp' && toolName !== 'poll') ? KIND_CLIENT : KIND_INTERNAL

const nameOf = (name: string): string => name.slice(0, MAX_NAME_CHARACTERS)

/** From milliseconds. A clock that was set back does not make a span end before its start. */
const times = (start: number, end: number) => ({
  startTimeUnixNano: nanoseconds(start),
  endTimeUnixNano: nanoseconds(Math.max(start, end)),
})

const nanoseconds = (ms: number): string => `${Math.floor(ms)}000000`

const prefixed = (prefix: string, values: Readonly<Record<string, string | number | undefined>>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [`${prefix}${name}`, value]))

export const attributes = (values: Readonly<Record<string, string | number | undefined>>): Attribute[] =>
  Object.entries(values).flatMap(([key, value]) => (value === undefined ? [] : { key, value: attributeValue(value) }))

const attributeValue = (value: string | number): Value =>
  typeof value === 'number' ? { intValue: String(value) } : { stringValue: nameOf(value) }
