/**
 * Which trace the spans of a graph belong to, and their ids. Pure.
 *
 * All of it follows from the graph, so that a restart of the service goes on with the same trace: the trace of the caller
 * is in the trace id of the graph, and the other ids are made of the ids of graph, task and attempt.
 */
import { parseTraceParent, type RequestTrace, type TraceHeaders } from '../../shared/logs/trace.ts'

export interface TraceContext {
  /** 32 hex digits. */
  readonly traceId: string
  /** 16 hex digits: the span of the caller. */
  readonly parentSpanId: string | undefined
  /** False if the caller does not record its trace. */
  readonly isSampled: boolean
}

export function traceContextOf({ id, traceId }: { readonly id: string; readonly traceId: string }): TraceContext {
  const parent = parseTraceParent(traceId)
  if (parent !== undefined) return parent
  return { traceId: traceIdOf(id), parentSpanId: undefined, isSampled: true }
}

/** The id of a graph is a UUID, unless its state file is of another program. */
function traceIdOf(graphId: string): string {
  const digits = graphId.replaceAll('-', '').toLowerCase()
  return /^[0-9a-f]{32}$/.test(digits) && /[^0]/.test(digits) ? digits : digest([graphId]).slice(0, 32)
}

export const graphSpanId = (graphId: string): string => digest([graphId]).slice(0, 16)

export const attemptSpanId = (graphId: string, taskId: string, attempt: number): string =>
  digest([graphId, taskId, String(attempt)]).slice(0, 16)

/** The hash of the parts as JSON: they may contain any character. */
const digest = (parts: readonly string[]): string =>
  new Bun.CryptoHasher('sha256').update(JSON.stringify(parts)).digest('hex')

interface TracedAttempt {
  readonly graph: RequestTrace & { readonly id: string }
  readonly id: string
  readonly attempt: number
}

/**
 * The trace that an attempt hands on to what it calls: its own span if there will be one, else the span of the caller.
 * Undefined without either.
 */
export function traceHeadersOf({ graph, id, attempt }: TracedAttempt, isTracing: boolean): TraceHeaders | undefined {
  const caller = parseTraceParent(graph.traceId)
  const hasSpan = isTracing && caller?.isSampled !== false
  if (caller === undefined && !hasSpan) return undefined
  const { traceId, traceState } = graph
  const own = () => `00-${traceContextOf(graph).traceId}-${attemptSpanId(graph.id, id, attempt)}-01`
  return { traceparent: hasSpan ? own() : traceId, ...(traceState !== undefined && { tracestate: traceState }) }
}
