/**
 * Where accepted work is kept, as the rest of the service sees it.
 *
 * The service decides in memory. A keeper remembers: graphs with the keys that they came with, the newest state of each
 * task, the lists of tasks with `for_each`, large results, past events. `EmbeddedKeeper` keeps them in the data
 * directory. It watches the store, so nobody has to tell it of changes.
 *
 * A keeper that has nothing to wait for answers in the same turn of the event loop: `kept` then returns undefined, and
 * a caller that goes on at once starts, shows and ends as many tasks as without a keeper.
 */
import type { Graph, Task } from '../graph/graph.ts'
import type { ResultFile, StoredResult } from '../graph/result-file.ts'
import type { EventFeed } from './event-feed.ts'
import type { EventHistory } from './event-history.ts'
import type { EventNumbers } from './event-numbers.ts'
import type { IdempotencyKeys } from './idempotency.ts'
import type { StoredFanOut } from './journaled-expansion.ts'
import type { SubmissionExtras } from './journaled-graph.ts'

/**
 * What follows once the changes so far are kept.
 *
 * - `act`: an attempt has effects. If the keeper throws or rejects, the attempt must not act.
 * - `show`: a caller sees a state. A crash must not undo it.
 * - `kill`: an attempt in another service is killed. Until then, another replica may have taken it over.
 * - `promise`: a caller is told that its request was carried out. If the keeper rejects with 503, a crash may undo it.
 */
export type Purpose = 'act' | 'kill' | 'show' | 'promise'

export interface Keeper extends KeptEvents {
  readonly results: KeptResults
  readonly keys: KeptKeys
  /** This service among those that share a database; absent without one. */
  readonly replica?: ReplicaView

  /** Throws 503 if no graph can be promised. Uses only known facts. */
  assertAccepting(): void
  /** Throws 503 if no change can be promised. Called before a change that will be promised to a caller. */
  assertWritable(): void
  /** As `assertAccepting`, after a look at where things are kept. */
  probe(): void

  /**
   * Resolves once every change so far is kept well enough for `purpose`. Undefined: it is already. Throws only for
   * `act`. Rejects with 503.
   */
  kept(purpose: Purpose): Promise<void> | undefined
  /** Has the changes so far kept without delay. Neither waits nor throws. */
  flush(): void
  /** Calls `callback` when changes can be kept again after a failure. */
  onWritableAgain(callback: () => void): void

  /** Throws 501 for a graph with something that cannot be kept. Absent: there is nothing such. */
  checkGraph?(graph: Graph): void
  /**
   * Keeps a claimed graph that was submitted as `body`, with `extras`, all or nothing. Resolves when that is certain.
   * Rejects with 503, and then the graph does not exist after a restart. Callers call `assertAccepting` in the same turn
   * of the event loop.
   */
  keepGraph(graph: Graph, body: Uint8Array, extras?: SubmissionExtras): Promise<void>
  /** Revokes a graph that is kept but refused. Otherwise the next start would recover it. */
  revoke(graph: Graph): void
  /** Resolves when the list of a task with `for_each` is kept. Rejects if that is not certain. */
  keepFanOut(task: Task, fanOut: StoredFanOut): Promise<void>
  /** Notes that a rerun reused an earlier outcome for `task`, as the change number `seq`. */
  noteReused(task: Task, seq: number, at: number): void
  /**
   * Notes the deletion of an ended graph with all its tasks. Throws 503; then nothing is noted. The caller removes the
   * graph from the store in the same turn of the event loop, then waits until the change is kept.
   */
  deleteGraph(graph: Graph): void

  /** Keeps the last changes and ends. Throws if that fails. Later requests get 503 and change nothing. */
  stop(): Promise<void>
  /** Ends before anything was changed, because the start of the service failed. */
  abandon(): Promise<void>
}

export interface ReplicaView {
  readonly id: number
  readonly epoch: number
  /** Milliseconds for which no other replica can become active. */
  readonly leaseMsLeft: number
  /** How long its turns took, in seconds. `counts` has one more for turns above all bounds. */
  readonly turnSeconds: { readonly bounds: readonly number[]; readonly counts: readonly number[]; readonly sum: number }
}

/** Past events, and those that happen now. */
export interface KeptEvents {
  readonly events: Pick<EventFeed, 'delivered' | 'settle' | 'subscribe'>
  readonly history: Pick<EventHistory, 'last' | 'oldest' | 'read'>
  readonly numbers: Pick<EventNumbers, 'isLost' | 'reserved'>
}

/** Answers to requests that may be repeated. */
export type KeptKeys = Pick<IdempotencyKeys, 'once'>

/** Results and inputs that are too large for memory. Each is kept before the state that refers to it. */
export interface KeptResults {
  /** Keeps a large result and returns the reference. Returns a small result, or one that cannot be kept, itself. */
  keep(task: Task, result: unknown): unknown | Promise<unknown>
  /** Keeps a large input until the task has ended. Undefined if it cannot be kept. */
  keepInput(task: Task, input: unknown): Promise<ResultFile | undefined>
  /** Keeps the pieces of a large result, as JSON. Undefined if it cannot be kept. */
  keepJson(task: Task, pieces: readonly string[]): Promise<ResultFile | undefined>
  /** The result as JSON text, or the reason why it is lost. */
  read(file: ResultFile): Promise<StoredResult>
  /** Adds a task that refers to `file`, to which another task already refers. */
  share(file: ResultFile): void
  /** Removes a task that referred to `file`. */
  drop(file: ResultFile): void
}
