/** The answers of control that the page uses, under the names that it uses. `docs/http.md` describes them. */
import type { GraphSummary as ListedGraph } from '../../../shared/contract/graphs.ts'

export type { GraphState } from '../../../shared/contract/graph-state.ts'
export type {
  GraphCounts as Counts,
  GraphDetails,
  GraphTask,
  RootCause,
  WaitingCounts,
} from '../../../shared/contract/graphs.ts'
export type { Waiting } from '../../../shared/contract/waiting.ts'

/** A graph from a list or from the event of its acceptance, which has no trace id. */
export type GraphSummary = Omit<ListedGraph, 'trace_id' | 'waiting'> & {
  readonly trace_id?: string
  readonly waiting?: ListedGraph['waiting'] | undefined
}

/** An event of a stream, with the fields of all kinds. */
export interface StreamEvent {
  /** A stream continues after it. The number of the event, or with a database positions of several replicas. */
  readonly id?: string
  readonly kind: string
  readonly seq: number
  readonly previous?: number
  readonly at: string
  readonly graph_id: string
  readonly [field: string]: unknown
}
