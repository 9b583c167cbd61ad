/**
 * Keeps accepted work in PostgreSQL.
 *
 * Many replicas share a database. Each owns graphs and runs them in memory, as a service without a database does. What
 * changes is written in turns (`turn-writer.ts`). When a replica is gone, others adopt its graphs (`adoption.ts`).
 */
import type { Log } from '../../../shared/logs/log.ts'
import { runCooperatively } from '../../../shared/process/steps.ts'
import type { Change } from '../../task/change.ts'
import type { Graph, Task } from '../../task/graph.ts'
import type { SharedRoom } from '../../task/retention.ts'
import type { TaskStore } from '../../task/task-store.ts'
import { EventFeed } from '../event-feed.ts'
import type { EventHistory } from '../event-history.ts'
import { type NumberedChange, outcomeOf, patchDetail, retriedDetail } from '../event-rows.ts'
import { KEY_LIFETIME_MS } from '../idempotency.ts'
import { encodeFanOut, type StoredFanOut } from '../journaled-fan-out.ts'
import type { SubmissionExtras } from '../journaled-graph.ts'
import { encodePatch, type PatchToKeep } from '../journaled-patch.ts'
import type { Keeper, KeptEvents, Purpose, ReplicaView } from '../keeper.ts'
import type { KeptCallbacks, StoredCallbacks } from '../kept-callbacks.ts'
import { PLACES, SCHEDULES } from './database.ts'
import { patchPayload } from './frame-payloads.ts'
import { claimOf, keepSubmitted, submissionOf } from './graph-submission.ts'
import { Lease } from './lease.ts'
import { Others } from './others.ts'
import { OwnAddress } from './own-address.ts'
import { PastEvents } from './past-events.ts'
import { SharedAudit } from './shared-audit.ts'
import { SharedGroups } from './shared-groups.ts'
import { SharedHistory } from './shared-history.ts'
import { SharedKeys } from './shared-keys.ts'
import type { SharedOrphans } from './shared-orphans.ts'
import { SharedPauses } from './shared-pauses.ts'
import { SharedResults } from './shared-results.ts'
import type { SharedRows } from './shared-rows.ts'
import { SharedRuntimes } from './shared-runtimes.ts'
import { SharedSchedules } from './shared-schedules.ts'
import { type OnTakeover, type RecoveredRows, Takeover, type TakeoverEvents } from './takeover.ts'
import { TurnWriter } from './turn-writer.ts'
import type { NewGraph } from './turn-writes.ts'
import { UnkeptWrites } from './unkept-writes.ts'

/** Milliseconds between two removals of what is out of date. */
const SWEEP_MS = 3_600_000

export interface SharedKeeperOptions {
  readonly rows: SharedRows
  readonly store: TaskStore
  /** The event history of this run, in the data directory. */
  readonly history: EventHistory
  /** Minimum number of past events to keep. */
  readonly maxEvents: number
  readonly leaseMs: number
  /** What becomes of an attempt that a replica carried out itself before it was gone. */
  readonly onTakeover: OnTakeover
  /** The token that callers of all replicas send. */
  readonly token: string | undefined
  readonly log: Log
}

export class SharedKeeper implements Keeper {
  readonly #store: TaskStore
  readonly #rows: SharedRows
  readonly #writes = new UnkeptWrites()
  readonly #options: SharedKeeperOptions
  /** More changes belong to the same frame: nothing is encoded before they are there. */
  #isGathering = false
  readonly results: SharedResults
  readonly keys: SharedKeys
  readonly callbacks: { found: StoredCallbacks } & KeptCallbacks
  readonly events: EventFeed
  readonly history: SharedHistory
  readonly #ownHistory: EventHistory
  readonly #past: PastEvents
  readonly others: Others
  readonly runtimes: SharedRuntimes
  readonly groups: SharedGroups
  readonly pauses: SharedPauses
  readonly schedules: SharedSchedules
  readonly audit: SharedAudit
  /** Numbers of a graph rise over all takeovers. A client of all events has positions in those of each replica. */
  readonly numbers: KeptEvents['numbers'] = {
    isLost: () => false,
    reserved: Number.MAX_SAFE_INTEGER,
    blocks: () => this.#takeover.blocks,
  }
  readonly #turns: TurnWriter
  readonly #takeover: Takeover
  readonly #address: OwnAddress
  readonly #sweep: Timer
  constructor(options: SharedKeeperOptions) {
    const { rows, store, history, leaseMs, token, log } = options
    this.#options = options
    this.#store = store
    this.#rows = rows
    this.#turns = new TurnWriter({
      rows,
      writes: this.#writes,
      encode: () => this.#encode(),
      lease: new Lease(leaseMs),
      log,
    })
    this.#takeover = new Takeover({
      ...{ rows, store, writes: this.#writes, turns: this.#turns, onTakeover: options.onTakeover, log },
      noteTask: (task) => this.#note(() => this.#writes.addTask(task)),
      noteNumbered: (change) => this.#noteNumbered(change),
      encode: () => this.#encode(),
    })
    this.others = new Others({ rows, store, token, takeover: this.#takeover })
    this.runtimes = new SharedRuntimes({
      ...{ database: rows.database, replica: rows.replicas, leaseMs, log },
      write: (orphan) => this.#note(() => this.#writes.addOrphan(orphan)),
    })
    this.groups = new SharedGroups({ database: rows.database, turns: this.#turns, leaseMs, log })
    this.pauses = new SharedPauses({ database: rows.database, leaseMs, log })
    this.audit = new SharedAudit({ database: rows.database, replica: rows.replicas, log })
    this.schedules = new SharedSchedules({ database: rows.database, replica: rows.replicas, turns: this.#turns })
    rows.onNews = (news) => this.schedules.told(news)
    this.runtimes.pool.onScheduleChanges = (changes) => this.schedules.changed(changes)
    rows.stored = () => ({ all: store.taskCount, ended: store.endedTaskCount })
    rows.onRing = (about) => {
      if (about === SCHEDULES) {
        this.schedules.onChange()
        return
      }
      this.groups.looks.ring()
      if (about === PLACES) return
      this.#takeover.ring()
      this.runtimes.looks.ring()
      this.pauses.looks.ring()
    }
    this.#address = new OwnAddress({ others: this.others, log })
    this.results = new SharedResults(rows, (name, change) => this.#writes.useResult(name, change))
    this.callbacks = {
      found: { waiting: new Map(), over: new Map() },
      keep: (callback) => this.#note(() => this.#writes.addCallback(callback)),
    }
    this.keys = new SharedKeys({ rows, turns: this.#turns, others: this.others })
    this.#ownHistory = history
    this.#past = new PastEvents(rows.database, () => store.graphs)
    this.history = new SharedHistory(history, this.#past, () => this.#takeover.blocks.own)
    this.events = new EventFeed(history, async () => this.kept('show'))
    this.events.flush = () => this.#encode()
    store.onResultDropped = (file) => this.results.drop(file)
    store.watch((change, seq) => this.#watch(change, seq))
    this.#sweep = setInterval(() => void this.#removeOld().catch(() => {}), SWEEP_MS)
  }

  #watch(change: Change, seq: number): void {
    switch (change.kind) {
      case 'graph-recovered':
        this.#encode() // later changes get higher numbers
        this.history.recovered(this.#store.seq)
        return
      case 'graph-accepted':
        this.#noteNumbered({ kind: 'accepted', graph: change.graph, seq, at: change.graph.createdAt })
        break
      case 'graph-paused':
        this.#noteNumbered({ kind: 'paused', graph: change.graph, seq, at: change.at, pause: change.pause })
        break
      case 'graph-resumed':
        this.#noteNumbered({ ...change, kind: 'resumed', seq })
        break
      case 'graph-ended':
        this.#noteNumbered({ kind: 'ended', graph: change.graph, seq, at: change.at, outcome: outcomeOf(change.graph) })
        this.#removeIfEmpty(change.graph, seq, change.at)
        break
      case 'tasks-retried': {
        const { graph, tasks, at, idempotency } = change
        this.#note(() => this.#writes.retry(graph, tasks))
        this.#noteNumbered({ kind: 'retried', graph, seq, at, retried: retriedDetail(change), idempotency })
        if (idempotency !== undefined) this.#encode() // a frame has one key
        void this.#decideAgain(graph)
        break
      }
      case 'graph-patched':
        this.#noteNumbered({ kind: 'patched', graph: change.graph, seq, at: change.at, patch: patchDetail(change) })
        break
      case 'graph-retired':
        this.#noteNumbered({ kind: 'removed', graph: change.graph, seq, at: change.at })
        this.#writes.remove(change.graph.ordinal)
        this.#takeover.removed(change.graph.ordinal)
        break
      case 'deleted':
        this.#noteNumbered({ kind: 'deleted', task: change.task, seq, at: change.at })
        this.#freeId(change.task)
        this.#note(() => this.#writes.addTask(change.task))
        this.#removeIfEmpty(change.task.graph, seq, change.at)
        break
      default:
        this.#note(() => this.#writes.addTask(change.task))
        this.events.changed(change.task.graph.id)
    }
  }

  /** A graph that runs again waits for a place, or has one. A look makes up for what fails. */
  async #decideAgain(graph: Graph): Promise<void> {
    try {
      await this.kept('promise')
      await this.groups.decide(graph)
    } catch {}
  }

  /** Once all of its tasks were deleted and none runs any more, nobody finds the graph: `graph-retired` never comes. */
  #removeIfEmpty(graph: Graph, seq: number, at: number): void {
    if (graph.visible > 0 || graph.live > 0) return
    this.#writes.removeEmpty(graph, seq, at)
    this.#takeover.removed(graph.ordinal)
  }

  async #removeOld(): Promise<void> {
    await this.#rows.sweep(Date.now() - KEY_LIFETIME_MS)
    await this.#past.sweep(this.#options.maxEvents)
  }

  #freeId(task: Task): void {
    if (!task.graph.isScoped && task.childOf === undefined) this.#writes.freeId(task)
  }

  #noteNumbered(change: NumberedChange): void {
    this.#note(() => this.#writes.addNumbered(change))
    this.events.changed('graph' in change ? change.graph.id : change.task.graph.id)
  }

  #note(add: () => void): void {
    add()
    this.#writeSoon()
  }

  #writeSoon(): void {
    if (this.#writes.isFull) this.flush()
    else this.#turns.writeSoon()
  }

  /** What limits the tasks of all replicas. */
  get room(): SharedRoom {
    return this.#rows.storedTasks
  }

  get orphans(): SharedOrphans {
    return this.runtimes.orphans
  }

  get replica(): ReplicaView {
    const { id, epoch } = this.#rows.replicas
    const { lease, times } = this.#turns
    const { adoptedTotal, fencedTotal } = this.#takeover
    const counted = { turnSeconds: times, adoptedTotal, fencedTotal }
    return { id, epoch, leaseMsLeft: Math.floor(lease.leftMs), ...counted, addressFault: this.#address.fault }
  }

  /** Throws 503 while the database is away, or the lease may be over. */
  assertAccepting(): void {
    this.#turns.assertAccepting()
  }

  assertWritable(): void {
    this.assertAccepting()
  }

  assertWritableWithReserve(): void {
    this.assertAccepting()
  }

  probe(): void {
    this.assertAccepting()
  }

  kept(_purpose: Purpose): Promise<void> | undefined {
    return this.#turns.kept()
  }

  flush(): void {
    this.#encode()
    this.#turns.run()
  }

  /** Encodes the newest states, for the next turn, and their events. */
  #encode(): void {
    if (this.#isGathering) return
    this.events.written(this.#writes.encode())
    this.#ownHistory.trim()
    this.#takeover.makeRoomForNumbers()
  }

  onWritableAgain(callback: () => void): void {
    this.#turns.onWritableAgain = callback
  }

  async keepGraph(graph: Graph, body: Uint8Array, extras: SubmissionExtras = {}): Promise<void> {
    const replaced = [...this.#store.replacedBy(graph)]
    const submission = submissionOf(graph, body, extras)
    if (replaced.length > 0) {
      for (const task of replaced) this.#freeId(task)
      await this.kept('promise') // the ends of these tasks come before the graph
    }
    await this.#keepSubmitted(submission)
    try {
      await this.groups.decide(graph)
    } catch (error) {
      this.#writes.refuse(submission)
      await this.kept('promise') // nothing of it is stored when its caller is told
      throw error
    }
  }

  /** No replica recovers the graph. */
  revoke({ ordinal }: Graph): void {
    this.#writes.remove(ordinal)
    this.#turns.run()
  }

  #keepSubmitted(submission: NewGraph): Promise<void> {
    const { others } = this
    return keepSubmitted({ rows: this.#rows, writes: this.#writes, turns: this.#turns, others }, submission)
  }

  async claimIds(graph: Graph, added: readonly Task[]): Promise<() => void> {
    const claim = claimOf(graph, added)
    if (claim.taskIds.length === 0) return () => {}
    for (const id of claim.taskIds) {
      const ended = this.#store.get(id)
      if (ended?.isTerminal) this.#freeId(ended)
    }
    await this.kept('promise') // a turn does not free an id and take it
    await this.#keepSubmitted(claim)
    return () => this.#note(() => this.#writes.refuse(claim))
  }

  keepPatch(graph: Graph, patch: PatchToKeep, tasks: string): void {
    this.assertWritable()
    const { remove, replaced, seq, idempotency: key } = patch
    const stay = new Set(replaced)
    const freedIds = graph.isScoped ? [] : remove.filter((id) => !stay.has(id))
    this.#encode()
    this.#writes.addFrame(graph, patchPayload(encodePatch(graph, patch, tasks)), { seq, freedIds, key })
  }

  keepPatchWith(graph: Graph, patch: PatchToKeep, tasks: string, change: () => void): void {
    this.assertWritable()
    this.#encode()
    this.#writes.addPatch(graph, encodePatch(graph, patch, tasks))
    this.#isGathering = true
    try {
      change()
    } finally {
      this.#isGathering = false
    }
    this.flush()
  }

  async keepFanOut(task: Task, fanOut: StoredFanOut): Promise<void> {
    const payload = (await runCooperatively(encodeFanOut(task, fanOut))).join('')
    this.#encode()
    this.#writes.addFrame(task.graph, payload)
    await this.kept('promise')
  }

  noteReused(task: Task, seq: number, at: number): void {
    this.#noteNumbered({ kind: 'reused', task, seq, at })
  }

  deleteGraph(): void {
    this.assertWritable() // its retirement removes the rows
  }

  /** A task of another replica gets the ids of these ended tasks. Resolves when that is certain. */
  async giveUpIds(tasks: readonly Task[]): Promise<void> {
    this.assertWritable()
    for (const task of tasks) {
      this.#freeId(task)
      this.#store.replaceElsewhere(task)
    }
    await this.kept('promise')
  }

  /** Calls `callback` once, when another replica has declared this one dead: the service must end. */
  onLost(callback: (why: string) => void): void {
    this.#turns.lease.onLost = callback
  }

  /** Adopts the graphs of all replicas that are gone. To be called once, before callers are answered. */
  async recover(): Promise<RecoveredRows> {
    const finding = this.history.find(this.#options.maxEvents)
    finding.catch(() => {}) // perhaps another read fails before
    await this.pauses.look()
    const { callbacks, ...found } = await this.#takeover.recover()
    this.callbacks.found = callbacks
    await finding
    return found
  }

  /** Others reach this replica at `address` from now on, and it adopts graphs for `events`. */
  async serve(address: string, events: TakeoverEvents): Promise<void> {
    await this.#takeover.serve(address, events)
    for (const { looks } of [this.runtimes, this.groups, this.pauses]) {
      looks.start()
      looks.ring()
    }
    this.schedules.serve()
    void this.#address.check({ id: this.#rows.replicas.id, address })
  }

  /** Writes the last turn, and gives all graphs back. */
  async stop(): Promise<void> {
    this.#stopLooks()
    this.#turns.stopTimers()
    clearInterval(this.#sweep)
    await this.kept('promise')
    this.#turns.stop()
    await this.audit.close()
    await this.#rows.replicas.release().catch(() => {}) // the lease ends by itself
    await this.#rows.close()
    await this.#ownHistory.close()
  }

  async abandon(): Promise<void> {
    await this.#rows.replicas.release().catch(() => {}) // the lease ends by itself
    await this.close()
  }

  #stopLooks(): void {
    this.#takeover.stop()
    for (const { looks } of [this.runtimes, this.groups, this.pauses]) looks.stop()
    this.#address.stop()
  }

  /** Ends without a last turn. */
  async close(): Promise<void> {
    clearInterval(this.#sweep)
    this.#turns.stop()
    this.#stopLooks()
    await this.#rows.close()
  }
}
