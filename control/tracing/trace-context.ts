/**
 * Which trace the spans of a graph belong to, and their ids. Pure.
 *
 * All of it follows from the graph, so that a restart of the service goes on with the same trace: the trace of the caller
 * is in the trace id of the graph, and the other ids are made of the ids of graph, task and attempt.
 */
import { createHash } from 'node:crypto'
import { parseTraceParent } from '../../shared/trace.ts'

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

/** Of the parts as JSON: they may contain any character. */
const digest = (parts: readonly string[]): string => createHash('sha256').update(JSON.stringify(parts)).digest('hex')
