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
import { ServiceError } from '../../shared/contract/errors.ts'
import type { Histogram } from '../../shared/logs/histogram.ts'
import type { ResultFile, StoredResult } from '../rules/result-file.ts'
import type { Graph, Task } from '../task/graph.ts'
import type { Groups } from '../task/graph-groups.ts'
import type { KeptPauses } from '../task/pauses.ts'
import type { EventFeed } from './event-feed.ts'
import type { EventHistory } from './event-history.ts'
import type { EventNumbers } from './event-numbers.ts'
import type { IdempotencyKeys } from './idempotency.ts'
import type { StoredFanOut } from './journaled-fan-out.ts'
import type { SubmissionExtras } from './journaled-graph.ts'
import type { PatchToKeep } from './journaled-patch.ts'
import type { KeptCallbacks } from './kept-callbacks.ts'
import type { OrphanKeeper } from './kept-orphans.ts'
import type { KeptSchedules } from './kept-schedules.ts'
import type { NumberBlocks } from './number-blocks.ts'

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
  readonly callbacks: KeptCallbacks
  readonly orphans: OrphanKeeper
  /** The places of groups of graphs. */
  readonly groups: Groups
  readonly pauses: KeptPauses
  readonly schedules: KeptSchedules
  /** This service among those that share a database; absent without one. */
  readonly replica?: ReplicaView
  /** The other ones. Without a database, there are none. */
  readonly others: OtherReplicas

  /** Why no change can be kept now. Absent while changes can be, and on a database: reads are refused there as well. */
  readonly fault?: string | undefined

  /** Throws 503 if no graph can be promised. Uses only known facts. */
  assertAccepting(): void
  /** Throws 503 if no change can be promised. Called before a change that will be promised to a caller. */
  assertWritable(): void
  /** As `assertWritable`, for cancels and deletions. These also work while only the disk reserve has space. */
  assertWritableWithReserve(): void
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

  /** Has ids of ended tasks free for a task of another replica. Absent without a database. Rejects with 503. */
  giveUpIds?(tasks: readonly Task[]): Promise<void>

  /**
   * Keeps a claimed graph that was submitted as `body`, with `extras`, all or nothing. Resolves when that is certain.
   * Rejects with 503, and then the graph does not exist after a restart. Callers call `assertAccepting` in the same turn
   * of the event loop.
   */
  keepGraph(graph: Graph, body: Uint8Array, extras?: SubmissionExtras): Promise<void>
  /** Revokes a graph that is kept but refused. Otherwise the next start would recover it. */
  revoke(graph: Graph): void
  /**
   * Takes the ids of tasks that a patch is about to add to a live graph, so that no other replica has them. Resolves with what frees
   * them again. Absent without a database. Rejects with 400 and 409, and with 503.
   */
  claimIds?(graph: Graph, added: readonly Task[]): Promise<() => void>
  /**
   * Notes what a caller changes of a live graph; `tasks` are the encoded new definitions. Throws 503; then nothing is noted. The
   * caller changes the graph in the same turn of the event loop, then waits until that is kept.
   */
  keepPatch(graph: Graph, patch: PatchToKeep, tasks: string): void
  /**
   * Keeps a patch, and all else that `change` changes, all or nothing: `change` makes the patch, and ends the dynamic task that
   * adds the tasks. Throws 503; then `change` was not called.
   */
  keepPatchWith(graph: Graph, patch: PatchToKeep, tasks: string, change: () => void): void
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
  /** Milliseconds for which no other replica can adopt its graphs. */
  readonly leaseMsLeft: number
  /** Graphs that it has adopted since it started. */
  readonly adoptedTotal: number
  /** Other replicas that it has declared dead. */
  readonly fencedTotal: number
  /** Why the others cannot reach it at the address that it has registered. Undefined if they can. */
  readonly addressFault: string | undefined
  /** How long its turns took, in seconds. `counts` has one more for turns above all bounds. */
  readonly turnSeconds: Histogram
}

/** Where a request goes on to. */
export interface AskedReplica {
  readonly id: number
  /** Its base URL. */
  readonly address: string
}

export interface OtherReplica extends AskedReplica {
  /** Its base URL; empty while it starts, and for one that listens on a Unix socket: nobody reaches it. */
  readonly address: string
  /** Milliseconds until its lease is over. Negative: it is. */
  readonly leaseMs: number
}

export interface ReplicaRequest {
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly headers: Headers
  readonly body?: Uint8Array
  readonly signal?: AbortSignal
  /** Milliseconds that the answer may take because the request asks for it; without end for `Infinity`. Default 0. */
  readonly waitMs?: number
}

/** A graph by its id, or by that of one of its tasks. */
export type NamedGraph = { readonly graphId: string } | { readonly taskId: string }

/** A graph that nobody can read, and that nobody runs. */
export interface UnreadableGraph {
  readonly graphId: string
  readonly ordinal: number
  readonly why: string
  /** When it was set aside: milliseconds since 1970. */
  readonly at: number
  /** Ids of tasks that it keeps taken. */
  readonly taskCount: number
}

/** 409: the graph was set aside, because its rows in the database cannot be read. */
export class Unreadable extends ServiceError {
  constructor(graphId: string, why: string, subject = `graph ${graphId}`) {
    super(409, `${subject} is unreadable: ${why} (restart a replica that can read it, or DELETE /graphs/${graphId})`)
  }
}

export interface OtherReplicas {
  /** The header of a request that came from another replica. It is not sent on. */
  readonly hopHeader: string
  /** The header of the answer to such a request, with the number of this replica. */
  readonly replicaHeader: string
  /** Replicas whose graphs this one is taking over, so that it does not know all of them yet. */
  readonly adopting: readonly number[]
  isHere(named: NamedGraph): boolean
  /** Graphs that were set aside: the newest below the number `before`. Rejects with 503. */
  unreadable(before: number, limit: number): Promise<readonly UnreadableGraph[]>
  /** Removes a graph that was set aside. False if there is no such graph, or `tenant` has none. Rejects with 503. */
  removeUnreadable(graphId: string, tenant?: string): Promise<boolean>
  /**
   * The replica that has the graph. Undefined if the graph is here, or callers find it nowhere: those of `tenant` find its
   * graphs only. Adopts it if its owner is gone. Rejects with 503 while it has no owner, and with `Unreadable`.
   */
  ownerOf(named: NamedGraph, tenant?: string): Promise<AskedReplica | undefined>
  /**
   * Replicas that nobody has declared dead, this one included, and the numbers of those that are gone and whose graphs
   * nobody has adopted yet.
   * Rejects with 503.
   */
  all(): Promise<{ readonly live: readonly OtherReplica[]; readonly gone: readonly number[] }>
  /** Resolves when the other replica has begun to answer. Rejects with 503. */
  ask(replica: AskedReplica, request: ReplicaRequest): Promise<Response>
}

/** Past events, and those that happen now. */
export interface KeptEvents {
  readonly events: Pick<EventFeed, 'delivered' | 'settle' | 'subscribe'>
  readonly history: Pick<EventHistory, 'last' | 'oldest' | 'read'>
  readonly numbers: Pick<EventNumbers, 'reserved'> & {
    /** Whether a stream of all events, or of those of a graph, cannot be resumed after the number. */
    isLost(seq: number, graphId?: string): boolean
    /** With a database: the blocks of numbers of this replica. */
    blocks?(): NumberBlocks
  }
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
