/** Encodes graphs, their revocations and their deletions as frames of the journal, and decodes them. Pure. */

import type { Steps } from '../../shared/process/steps.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import { isObject } from '../../shared/text/json.ts'
import { parseJson, withoutByteOrderMark } from '../../shared/text/json-bytes.ts'
import { parseObjectWithArrays } from '../json/large-json.ts'
import { type GraphOptions, graphOptions, NO_GRAPH_OPTIONS } from '../rules/graph-options.ts'
import type { Graph } from '../task/graph.ts'
import type { KeptKey } from './idempotency.ts'
import { decodeRows, type JournaledState } from './journaled-state.ts'
import type { ScheduleChange } from './kept-schedules.ts'
import type { NoteRow } from './notes.ts'

/** The payload of a frame of kind `g`. `body` is the submission as it was received. */
export interface JournaledGraph {
  readonly graph_ordinal: number
  readonly graph_id: string
  readonly trace_id: string
  /** Absent in files of earlier versions. */
  readonly trace_state?: string
  /** Absent in files of earlier versions. */
  readonly submitted_by?: string
  readonly tenant?: string
  readonly created_at: string
  readonly body: unknown
  /** The key that was sent with the submission, and its answer. */
  readonly idempotency?: KeptKey
  /** A note that is kept with the graph, all or nothing. */
  readonly note?: NoteRow
  /** In a rerun, the states of tasks that had ended before the graph was accepted, as rows of a frame of kind `t`. */
  readonly reused?: unknown
}

/** The optional fields of `JournaledGraph`. */
export interface SubmissionExtras {
  readonly idempotency?: KeptKey | undefined
  readonly note?: NoteRow | undefined
  /** How far the schedule is that submits the graph. Kept with the graph, all or nothing; rejects with `Moved`. */
  readonly schedule?: ScheduleChange | undefined
  /** The payload of `encodeStates` for tasks that have already ended, in parts. */
  readonly reused?: readonly (string | Uint8Array)[] | undefined
}

/** The payload for `graph`, submitted as `body`. The body is not copied. */
export function encodeGraph(
  graph: Graph,
  body: Uint8Array,
  { idempotency, note, reused = [] }: SubmissionExtras = {},
): (string | Uint8Array)[] {
  const identity: Omit<JournaledGraph, 'body' | 'reused'> = {
    graph_ordinal: graph.ordinal,
    graph_id: graph.id,
    trace_id: graph.traceId,
    ...(graph.traceState !== undefined && { trace_state: graph.traceState }),
    ...(graph.submittedBy !== undefined && { submitted_by: graph.submittedBy }),
    ...(graph.tenant !== undefined && { tenant: graph.tenant }),
    created_at: isoTime(graph.createdAt),
    ...(idempotency && { idempotency }),
    ...(note && { note }),
  }
  const fields = JSON.stringify(identity).slice(0, -1)
  const head = reused.length === 0 ? [`${fields},"body":`] : [`${fields},"reused":`, ...reused, ',"body":']
  return [...head, withoutByteOrderMark(body), '}']
}

/** Bytes up to which a payload is parsed in one go: about two milliseconds. */
const PARSE_AT_ONCE_BYTES = 512 * 1024

/** The graph in a payload. Throws `JsonSyntaxError`. */
export const decodeGraph = (payload: Uint8Array): JournaledGraph => parseJson(payload) as JournaledGraph

/** As `decodeGraph`. Parsing a large payload in steps takes longer in total. */
export function* decodeGraphInSteps(payload: Uint8Array): Steps<JournaledGraph> {
  if (payload.length <= PARSE_AT_ONCE_BYTES) return decodeGraph(payload)
  return (yield* parseObjectWithArrays(payload, { reused: true, body: { tasks: true } })) as JournaledGraph
}

/** The states of the reused tasks by id. Throws the error that `refuse` makes. */
export function reusedOutcomes(
  { reused = [] }: JournaledGraph,
  refuse: (detail: string) => Error,
): ReadonlyMap<string, Omit<JournaledState, 'id' | 'graph_ordinal'>> {
  try {
    return new Map(decodeRows(reused).states.map(({ id, graph_ordinal, ...state }) => [id, state]))
  } catch {
    throw refuse('it holds reused outcomes in a form that this version does not know')
  }
}

/**
 * The options of a submitted graph. Invalid ones are dropped: an earlier version may have ignored and accepted them.
 */
export const optionsIn = (body: unknown): GraphOptions =>
  (isObject(body) ? graphOptions(body) : undefined) ?? NO_GRAPH_OPTIONS

/** The payload of a frame of kind `r`, which revokes `graph`, or `d`, which deletes it. */
export const encodeRemoval = ({ ordinal }: Graph): string[] => [JSON.stringify({ graph_ordinal: ordinal })]

/** Bytes at the start of a payload that contain the number of the graph. */
const MAX_ORDINAL_BYTES = 64

/** The number of the graph in a payload of kind `g`, `r` or `d`. Usually decodes only the start of the payload. */
export function graphOrdinalIn(payload: Uint8Array): number {
  const found = /^\{"graph_ordinal":(\d+)[,}]/.exec(String.fromCharCode(...payload.subarray(0, MAX_ORDINAL_BYTES)))
  return found === null ? decodeGraph(payload).graph_ordinal : Number(found[1])
}
