/** The parts of the answers of control that the page uses. `docs/http.md` describes the answers. */
import type { RunIf } from '../../../shared/contract/run-if.ts'
import type { TaskStatus } from '../../../shared/contract/task-status.ts'

export type GraphState = 'running' | 'success' | 'failed' | 'cancelled'

export type Counts = Partial<Record<TaskStatus, number>>

/** Why a task that has not ended does not run. */
export interface Waiting {
  readonly reason: string
  readonly tasks?: readonly string[]
  readonly until?: string
  readonly detail?: string
}

/** A graph, as `GET /graphs` lists it. */
export interface GraphSummary {
  readonly graph_id: string
  readonly name?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly scope?: string
  readonly state: GraphState
  readonly task_count: number
  readonly counts: Counts
  readonly created_at: string
  readonly started_at?: string
  readonly finished_at?: string
  readonly duration_ms?: number
  readonly trace_id?: string
}

/** A task of a graph, as `GET /graphs/{id}` lists it. */
export interface GraphTask {
  readonly id: string
  readonly type: string
  readonly tool_name?: string
  readonly status: TaskStatus
  readonly run_status?: string
  readonly attempt?: number
  readonly depends_on?: readonly string[]
  readonly run_if?: RunIf
  readonly continue_on_error?: boolean
  /** Set for a task that a rerun did not execute again. */
  readonly reused_from?: { readonly graph_id: string; readonly task_id: string }
  /** Of a child: the id of the task that runs for each element of a list. */
  readonly parent?: string
  /** Of such a task that has started: number of its children, and how many are in which state. */
  readonly child_count?: number
  readonly children?: Counts
  readonly started_at?: string
  readonly finished_at?: string
  readonly duration_ms?: number
  readonly error?: string
  readonly code?: string
  readonly waiting?: Waiting
}

export interface RootCause {
  readonly task_id: string
  readonly error: string
  readonly code?: string
  readonly tail?: string
  readonly remedy?: string
  readonly skipped: number
  readonly try_next: readonly string[]
}

/** The answer of `GET /graphs/{id}`: its summary, its tasks in topological order, and its edges. */
export interface GraphDetail extends GraphSummary {
  readonly tasks: readonly GraphTask[]
  readonly edges: readonly (readonly [from: string, to: string])[]
  readonly root_cause?: RootCause
  /** Whether `tasks` holds only the first of many. */
  readonly truncated?: boolean
}

/** An event of a stream, with the fields of all kinds. */
export interface StreamEvent {
  readonly kind: string
  readonly seq: number
  readonly previous?: number
  readonly at: string
  readonly graph_id: string
  readonly [field: string]: unknown
}
