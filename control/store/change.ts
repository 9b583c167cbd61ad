/** What can happen to the tasks in memory: all of it passes through `TaskStore.apply`. */
import type { ProcessIdentity } from '../../shared/processes.ts'
import type { AttemptOutput } from '../graph/attempt-record.ts'
import type { Handle } from '../graph/cold-fields.ts'
import type { Failure } from '../graph/failure.ts'
import type { Graph, Task } from '../graph/graph.ts'

/** `output` goes into the record of the last attempt, where the task keeps those. */
export type Ending =
  | { readonly status: 'success'; readonly result: unknown; readonly output?: AttemptOutput }
  | {
      readonly status: 'failed' | 'cancelled'
      readonly result?: unknown
      readonly failure: Failure
      readonly error: string
      readonly output?: AttemptOutput
    }
  | { readonly status: 'skipped'; readonly error: string }

/** Everything that can happen to what the store holds. `at` is in milliseconds since 1970. */
export type Change =
  /** All tasks of a claimed graph become visible, as pending. */
  | { readonly kind: 'graph-accepted'; readonly graph: Graph }
  /** A graph of an earlier run of the service is taken in again as it was. */
  | { readonly kind: 'graph-recovered'; readonly graph: Graph }
  /** All records of an ended graph are gone, as they have been kept for long enough. */
  | { readonly kind: 'graph-retired'; readonly graph: Graph; readonly at: number }
  /** An attempt begins to execute. */
  | { readonly kind: 'attempt-started'; readonly task: Task; readonly at: number }
  /** The attempt has started a process. */
  | { readonly kind: 'process-started'; readonly task: Task; readonly at: number; readonly process: ProcessIdentity }
  /** The attempt is carried out by another service: it is about to be told, has said that it has it, or that it does not. */
  | { readonly kind: 'handed-over'; readonly task: Task; readonly at: number; readonly handle: Handle | undefined }
  /** The attempt failed and another one will follow after its backoff. */
  | {
      readonly kind: 'attempt-failed'
      readonly task: Task
      readonly at: number
      readonly failure: Failure
      readonly output?: AttemptOutput
    }
  /** The service stops and had to end the attempt: the task is pending again. One that goes on elsewhere is not over. */
  | {
      readonly kind: 'attempt-interrupted'
      readonly task: Task
      readonly at: number
      /** What its record says. */
      readonly reason: string
      readonly goesOn?: boolean
    }
  /** The task is to be cancelled; it is, once nothing of its attempt runs any more. */
  | { readonly kind: 'cancel-requested'; readonly task: Task; readonly at: number }
  /** An executor reports how far it is. */
  | {
      readonly kind: 'progress'
      readonly task: Task
      readonly at: number
      readonly message?: string
      readonly data?: unknown
    }
  /** The task reached a terminal state. */
  | { readonly kind: 'ended'; readonly task: Task; readonly at: number; readonly ending: Ending }
  /** The record is gone; a running attempt goes on and its dependents still wait for it. */
  | { readonly kind: 'deleted'; readonly task: Task; readonly at: number }
