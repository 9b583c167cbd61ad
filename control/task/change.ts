/** The changes of tasks in memory. All of them pass through `TaskStore.apply`. */

import type { ReusedFrom } from '../../shared/contract/control.ts'
import type { ProcessIdentity } from '../../shared/process/processes.ts'
import type { SkipStanding } from '../rules/conditions.ts'
import type { Edges } from '../rules/edges.ts'
import type { Failure } from '../rules/failure.ts'
import type { KeptKey } from '../rules/kept-key.ts'
import type { Pause } from '../rules/pause.ts'
import type { ResultFile } from '../rules/result-file.ts'
import type { AttemptOutput } from './attempt-record.ts'
import type { FanOut } from './fan-out.ts'
import type { Graph, PatchedTasks, Task } from './graph.ts'
import type { GraphPatches } from './graph-patches.ts'
import type { Handle, RareState } from './rare-state.ts'

/** How a task ended. `output` goes into the record of its last attempt, if the task keeps such records. */
export type Ending =
  | {
      readonly status: 'success'
      readonly result: unknown
      readonly output?: AttemptOutput
      /** The task was not executed: this one was. */
      readonly reusedFrom?: ReusedFrom
      /** The task was pending: its only attempt has begun and ended. */
      readonly inOneGo?: true
    }
  | {
      readonly status: 'failed' | 'cancelled'
      readonly result?: unknown
      readonly failure: Failure
      readonly error: string
      readonly output?: AttemptOutput
    }
  | { readonly status: 'skipped'; readonly error: string; readonly standing?: SkipStanding }

/** Whether the task was pending until it ended, although it has run. */
export const isInOneGo = (ending: Ending): boolean => ending.status === 'success' && ending.inOneGo === true

/** `at` is in milliseconds since 1970. */
export type Change =
  /** All tasks of a claimed graph become visible. They are pending, or have reused outcomes. */
  | { readonly kind: 'graph-accepted'; readonly graph: Graph }
  /** The last task of a graph ended, or was deleted. Follows the change of that task. */
  | { readonly kind: 'graph-ended'; readonly graph: Graph; readonly at: number }
  /** A start has recovered a graph. This change has no sequence number. */
  | { readonly kind: 'graph-recovered'; readonly graph: Graph }
  /** Nothing of a graph starts until it is resumed. It may have been paused before. */
  | { readonly kind: 'graph-paused'; readonly graph: Graph; readonly pause: Pause; readonly at: number }
  /** `by` is the name of a token; absent for the token of the service. */
  | { readonly kind: 'graph-resumed'; readonly graph: Graph; readonly by?: string; readonly at: number }
  /**
   * A caller retries tasks in place: they and what depends on them are pending again, all at once. A graph that had ended is
   * live again. `edges` are those of the graph.
   */
  | {
      readonly kind: 'tasks-retried'
      readonly graph: Graph
      readonly edges: Edges
      /** The named tasks, and all that run again with them, in order. Those that have not ended only wait for more. */
      readonly tasks: readonly Task[]
      readonly named: ReadonlySet<Task>
      /** The rare states that `tasks` get, in the same order; undefined for those that have not ended. */
      readonly revived: readonly (RareState | undefined)[]
      /** For those of `tasks` that have ended and have children the elements of these. */
      readonly lists: ReadonlyMap<Task, readonly unknown[]>
      /** Of the caller, with the answer. */
      readonly idempotency: KeptKey | undefined
      /** Name of the token; undefined for that of the service. */
      readonly by: string | undefined
      readonly at: number
    }
  /** A caller, or a dynamic task, changes a live graph: tasks that have not started are gone, and others are new, all at once. */
  | ({
      readonly kind: 'graph-patched'
      readonly graph: Graph
      readonly patched: GraphPatches
      /** Its list of tasks until now. */
      readonly before: readonly Task[]
      /** Ids of the tasks that have another definition. */
      readonly replaced: readonly string[]
      /** Name of the token; undefined for that of the service. */
      readonly by: string | undefined
      /** The dynamic task that adds the tasks. */
      readonly task_id?: string | undefined
      readonly at: number
    } & PatchedTasks)
  /** All records of an ended graph were removed, by retention or by a caller. */
  | { readonly kind: 'graph-retired'; readonly graph: Graph; readonly at: number }
  /** The condition of a pending task was met. It is not tested again. */
  | { readonly kind: 'condition-met'; readonly task: Task; readonly at: number }
  /** An approval or a wait waits for a caller from now on. */
  | { readonly kind: 'asked'; readonly task: Task; readonly at: number }
  /**
   * An attempt begins to execute. A task that a caller was asked for: it is about to end. `isMissed`: it will never execute,
   * because it has waited for too long.
   */
  | { readonly kind: 'attempt-started'; readonly task: Task; readonly at: number; readonly isMissed?: true }
  /** The placeholders in the input were replaced by values. `input` is what the record keeps, `file` a large input. */
  | {
      readonly kind: 'input-resolved'
      readonly task: Task
      readonly at: number
      readonly input: unknown
      readonly file?: ResultFile
    }
  /**
   * The list of a task with `for_each` is known: the task runs, by its children. `children` are new tasks; none where an
   * earlier run of the service has made them.
   */
  | {
      readonly kind: 'fanned-out'
      readonly task: Task
      readonly at: number
      readonly fanOut: FanOut<Task>
      readonly children: readonly Task[]
    }
  /** The attempt has started a process. */
  | { readonly kind: 'process-started'; readonly task: Task; readonly at: number; readonly process: ProcessIdentity }
  /**
   * The attempt is handed over to another service. Comes before the request, and after the service has confirmed the
   * attempt. `handle` is undefined if the service refused it.
   */
  | { readonly kind: 'handed-over'; readonly task: Task; readonly at: number; readonly handle: Handle | undefined }
  /** The attempt failed. The next one follows after a backoff. */
  | {
      readonly kind: 'attempt-failed'
      readonly task: Task
      readonly at: number
      readonly failure: Failure
      readonly output?: AttemptOutput
    }
  /** The service stops: the task is pending again. `goesOn` if the attempt continues in another service. */
  | {
      readonly kind: 'attempt-interrupted'
      readonly task: Task
      readonly at: number
      /** The error in the record of the attempt. */
      readonly reason: string
      readonly goesOn?: boolean
    }
  /** The task is being cancelled. It ends when all processes of its attempt have ended. */
  | {
      readonly kind: 'cancel-requested'
      readonly task: Task
      readonly at: number
      /** Completes the error of the task. A kill before its end loses nothing of it. */
      readonly reason?: string
    }
  /** An executor reports progress. */
  | {
      readonly kind: 'progress'
      readonly task: Task
      readonly at: number
      readonly message?: string
      readonly data?: unknown
    }
  /** The task reached a terminal state. */
  | { readonly kind: 'ended'; readonly task: Task; readonly at: number; readonly ending: Ending }
  /** The record is deleted. A running attempt continues, and its dependents still wait for it. */
  | { readonly kind: 'deleted'; readonly task: Task; readonly at: number }

/** A change of one task. */
export type TaskChange = Exclude<Change, { readonly graph: Graph }>

/** A change of one task that is not its deletion. */
export type AttemptChange = Exclude<TaskChange, { readonly kind: 'deleted' }>
