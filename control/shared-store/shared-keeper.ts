/**
 * Keeps accepted work in PostgreSQL.
 *
 * One replica at a time has the lease. It runs all graphs in memory, as a service without a database does. What changes is
 * written in turns: one at a time, each with all that came meanwhile. A turn that was committed also says that the replica
 * had the lease when the turn began. Once that is longer ago than the lease, nothing is answered, started or killed before
 * the next turn.
 *
 * While the database is away, requests get 503, and attempts that have not begun wait. A turn that got no answer is
 * repeated until one comes. If another replica has taken the lease meanwhile, the service ends (`onLost`).
 */
import { messageOf, ServiceError, UsageError } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { nextTurn, runCooperatively, SLICE_MS } from '../../shared/steps.ts'
import type { Graph, Task } from '../graph/graph.ts'
import { EventFeed } from '../journal/event-feed.ts'
import type { EventHistory } from '../journal/event-history.ts'
import { type NumberedChange, outcomeOf } from '../journal/event-rows.ts'
import { KEY_LIFETIME_MS } from '../journal/idempotency.ts'
import { encodeExpansion, type StoredFanOut } from '../journal/journaled-expansion.ts'
import { encodeGraph, type SubmissionExtras } from '../journal/journaled-graph.ts'
import type { Keeper, KeptEvents, Purpose, ReplicaView } from '../journal/keeper.ts'
import type { Change } from '../store/change.ts'
import type { TaskStore } from '../store/tasks.ts'
import { recoveredGraph } from './recovered-graphs.ts'
import { SharedKeys } from './shared-keys.ts'
import { SharedResults } from './shared-results.ts'
import { Fenced, InUse, type KeptGraph, type SharedRows } from './shared-rows.ts'
import { TURN_BOUNDS, TurnTimes } from './turn-times.ts'
import { ANSWER_WITHIN_MS, unavailable } from './unavailable.ts'
import { type Turn, UnkeptWrites } from './unkept-writes.ts'

/** Maximum milliseconds between a change that nobody waits for and its turn. */
const OUTCOME_WAIT_MS = 20

/** Turns of a lease. If none of them is committed, another replica takes the lease. */
const TURNS_PER_LEASE = 4

/** Why nothing is promised any more. */
const LOST = 'this replica ends'

/** Graphs that are read together. */
const GRAPHS_PER_READ = 200

/** Milliseconds between two removals of what is out of date. */
const SWEEP_MS = 3_600_000

export interface SharedKeeperOptions {
  readonly rows: SharedRows
  readonly store: TaskStore
  readonly history: EventHistory
  readonly leaseMs: number
  readonly log: Log
}

/** What a start found in the database. */
export interface RecoveredRows {
  readonly graphCount: number
  /** Cancelled tasks whose attempts another service may not have ended yet. */
  readonly toKillRemotely: readonly Task[]
}

export class SharedKeeper implements Keeper {
  readonly #options: SharedKeeperOptions
  readonly #rows: SharedRows
  readonly #writes = new UnkeptWrites()
  readonly results: SharedResults
  readonly keys: SharedKeys
  readonly events: EventFeed
  readonly history: EventHistory
  /** No crash can lose a number that a caller has seen: a replica that starts has higher ones. */
  readonly numbers: KeptEvents['numbers'] = { isLost: () => false, reserved: Number.MAX_SAFE_INTEGER }
  readonly #heartbeat: Timer
  readonly #sweep: Timer
  #writeTimer: Timer | undefined
  /** Those who wait for the turn under way, and for the one after it. */
  #current: { readonly waiting: PromiseWithResolvers<void>; readonly isEmpty: boolean } | undefined
  #next: PromiseWithResolvers<void> | undefined
  #isRunning = false
  /** When the last turn that was committed began. */
  #confirmedAt = now()
  /** Why nothing can be kept; undefined while the database answers. */
  #fault: string | undefined
  #isLost = false
  #isStopped = false
  #onLost: (why: string) => void = () => {}
  #onWritableAgain: () => void = () => {}
  readonly #turnTimes = new TurnTimes()

  constructor(options: SharedKeeperOptions) {
    const { rows, store, history, leaseMs } = options
    this.#options = options
    this.#rows = rows
    this.results = new SharedResults(rows, (name) => this.#writes.dropResult(name))
    this.keys = new SharedKeys(rows)
    this.history = history
    this.events = new EventFeed({ history, numbers: { use: () => {} }, sync: async () => this.kept('show') })
    this.events.flush = () => this.#encode()
    store.onResultDropped = (file) => this.results.drop(file)
    store.watch((change, seq) => this.#watch(change, seq))
    this.#heartbeat = setInterval(() => this.#beat(), leaseMs / TURNS_PER_LEASE / 2)
    this.#sweep = setInterval(() => void rows.sweep(Date.now() - KEY_LIFETIME_MS).catch(() => {}), SWEEP_MS)
  }

  #watch(change: Change, seq: number): void {
    switch (change.kind) {
      case 'graph-recovered':
        return
      case 'graph-accepted':
        this.#noteNumbered({ kind: 'accepted', graph: change.graph, seq, at: change.graph.createdAt })
        break
      case 'graph-ended':
        this.#noteNumbered({ kind: 'ended', graph: change.graph, seq, at: change.at, outcome: outcomeOf(change.graph) })
        break
      case 'graph-retired':
        this.#noteNumbered({ kind: 'removed', graph: change.graph, seq, at: change.at })
        this.#writes.remove(change.graph.ordinal)
        break
      case 'deleted':
        this.#noteNumbered({ kind: 'deleted', task: change.task, seq, at: change.at })
        this.#freeId(change.task)
        this.#noteTask(change.task)
        break
      default:
        this.#noteTask(change.task)
        this.events.changed(seq, change.task.graph.id)
    }
  }

  #freeId(task: Task): void {
    if (!task.graph.isScoped && task.childOf === undefined) this.#writes.freeId(task)
  }

  #noteNumbered(change: NumberedChange): void {
    this.#writes.addNumbered(change)
    this.#writeSoon()
    this.events.changed(change.seq, 'graph' in change ? change.graph.id : change.task.graph.id)
  }

  #noteTask(task: Task): void {
    this.#writes.addTask(task)
    this.#writeSoon()
  }

  #writeSoon(): void {
    if (this.#writes.isFull) this.flush()
    else this.#writeTimer ??= setTimeout(() => this.#run(), OUTCOME_WAIT_MS)
  }

  /** Whether this replica owned its graphs less than a lease ago. */
  get #isCertain(): boolean {
    return this.leaseLeftMs > 0
  }

  /** Milliseconds for which this replica owns its graphs for certain. */
  get leaseLeftMs(): number {
    return Math.max(0, this.#options.leaseMs - elapsedSince(this.#confirmedAt))
  }

  get replica(): ReplicaView {
    const { id, epoch } = this.#rows
    const { counts, sum } = this.#turnTimes
    return { id, epoch, leaseMsLeft: Math.floor(this.leaseLeftMs), turnSeconds: { bounds: TURN_BOUNDS, counts, sum } }
  }

  /** Throws 503 while the database is away, or the lease may be over. */
  assertAccepting(): void {
    const fault = this.#whyNot
    if (fault !== undefined) throw unavailable(fault)
  }

  assertWritable(): void {
    this.assertAccepting()
  }

  probe(): void {
    this.assertAccepting()
  }

  get #whyNot(): string | undefined {
    if (this.#isStopped) return 'the service is stopping'
    if (this.#isLost) return LOST
    if (this.#fault !== undefined) return this.#fault
    if (this.#isCertain) return undefined
    this.#run(true)
    return 'the lease of this replica is being renewed'
  }

  kept(_purpose: Purpose): Promise<void> | undefined {
    if (this.#isLost || this.#isStopped || this.#fault !== undefined)
      return Promise.reject(unavailable(this.#whyNot ?? 'the database is away'))
    this.#encode()
    if (!this.#writes.isEmpty || !this.#isCertain) {
      this.#next ??= newWaiting()
      this.#run(true)
      return this.#next.promise
    }
    if (this.#current === undefined || this.#current.isEmpty) return undefined
    return this.#current.waiting.promise
  }

  flush(): void {
    this.#encode()
    this.#run()
  }

  /** Encodes the newest states, for the next turn, and their events. */
  #encode(): void {
    this.events.written(this.#writes.encode())
  }

  onWritableAgain(callback: () => void): void {
    this.#onWritableAgain = callback
  }

  /** What needs files of its own would be lost with its machine. */
  checkGraph({ options, tasks }: Graph): void {
    if (options.callback !== undefined) throw notYet('callback')
    if (tasks.some(({ cache }) => cache !== undefined)) throw notYet('cache')
  }

  async keepGraph(graph: Graph, body: Uint8Array, { idempotency, reused }: SubmissionExtras = {}): Promise<void> {
    if (reused !== undefined) throw notYet('rerun')
    const { store } = this.#options
    const replaced = [...store.replacedBy(graph)]
    const payload = encodeGraph(graph, body, { idempotency }).map(textOf).join('')
    const taskIds = graph.isScoped ? [] : graph.tasks.map(({ id }) => id)
    if (taskIds.some((id) => id.includes('\0'))) {
      throw new ServiceError(400, 'an id of a task has U+0000, which the database cannot hold (use scope "graph")')
    }
    if (replaced.length > 0) {
      for (const task of replaced) this.#freeId(task)
      await this.kept('promise') // the ends of these tasks come before the graph
    }
    const waiting = this.#writes.addGraph({ ordinal: graph.ordinal, id: graph.id, payload, taskIds, key: idempotency })
    this.#run(true)
    await waiting.promise
  }

  /** No start recovers the graph. */
  revoke({ ordinal }: Graph): void {
    this.#writes.remove(ordinal)
    this.#run()
  }

  async keepFanOut(task: Task, fanOut: StoredFanOut): Promise<void> {
    const payload = (await runCooperatively(encodeExpansion(task, fanOut))).join('')
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

  /** Calls `callback` once, when another replica has taken the lease: the service must end. */
  onLost(callback: (why: string) => void): void {
    this.#onLost = callback
  }

  /** Reads all graphs into the store. To be called once, before callers are answered. */
  async recover(): Promise<RecoveredRows> {
    const { store } = this.#options
    const toKillRemotely: Task[] = []
    const untold: ((seq: number, now: number) => NumberedChange)[] = []
    let graphCount = 0
    let sliceEnd = performance.now() + SLICE_MS
    for (let reading = this.#rows.graphsAfter(0, GRAPHS_PER_READ); ; ) {
      const rows = await reading
      const isLast = rows.length < GRAPHS_PER_READ
      if (!isLast) reading = this.#rows.graphsAfter(rows.at(-1)!.ordinal, GRAPHS_PER_READ) // while these are built
      for (const row of rows) {
        const { graph, unnumbered, ...found } = this.#recovered(row)
        if (graph === undefined) continue
        graphCount++
        store.apply({ kind: 'graph-recovered', graph })
        this.results.recovered(graph)
        toKillRemotely.push(...found.toKillRemotely)
        untold.push(...unnumbered)
        if (performance.now() < sliceEnd) continue
        await nextTurn() // for the turns that renew the lease
        sliceEnd = performance.now() + SLICE_MS
      }
      if (isLast) break
    }
    for (const numbered of untold) this.#noteNumbered(numbered(store.nextSeq(), Date.now()))
    return { graphCount, toKillRemotely }
  }

  #recovered(row: KeptGraph) {
    this.#writes.raise(row.lastFrame)
    const found = recoveredGraph(row, (detail) => new UsageError(`graph ${row.ordinal} in the database: ${detail}`))
    this.#options.store.raise(found.lastSeq)
    return found
  }

  /** A turn without changes renews the lease. */
  #beat(): void {
    const { leaseMs } = this.#options
    if (elapsedSince(this.#confirmedAt) > leaseMs / TURNS_PER_LEASE) this.#run(true)
  }

  /** Writes turns until nothing is left. `isForced` writes at least one. */
  #run(isForced = false): void {
    if (isForced) this.#next ??= newWaiting()
    if (this.#isRunning || this.#isLost) return
    clearTimeout(this.#writeTimer)
    this.#writeTimer = undefined
    this.#isRunning = true
    void this.#writeTurns()
  }

  async #writeTurns(): Promise<void> {
    await nextTurn() // further changes of this turn of the event loop join
    while (!this.#isLost && (this.#next !== undefined || !this.#writes.isEmpty)) {
      clearTimeout(this.#writeTimer)
      this.#writeTimer = undefined
      this.#encode()
      const waiting = this.#next
      this.#next = undefined
      const turn = this.#writes.take()
      this.#current = { waiting: waiting ?? newWaiting(), isEmpty: turn.isEmpty }
      await this.#write(turn, this.#current.waiting)
      this.#current = undefined
    }
    this.#isRunning = false // in the same turn of the event loop as the last look for work
  }

  async #write(turn: Turn, waiting: PromiseWithResolvers<void>): Promise<void> {
    const beganAt = now()
    const late = setTimeout(() => this.#goAway(turn, waiting), ANSWER_WITHIN_MS)
    try {
      const refused = await this.#commit(turn)
      this.#confirmedAt = beganAt
      this.#turnTimes.add(Math.max(0, elapsedSince(beganAt)) / 1_000)
      waiting.resolve()
      for (const { graph, resolve, reject } of turn.graphs) {
        const error = refused.get(graph.ordinal)
        if (error === undefined) resolve()
        else reject(error)
      }
      this.#comeBack()
    } catch (error) {
      this.#lose(error)
      for (const { reject } of turn.graphs) reject(unavailable(LOST))
    } finally {
      clearTimeout(late)
    }
  }

  /** Commits a turn. Returns the errors of graphs that the database refuses, by their numbers. */
  async #commit({ graphs, writes }: Turn): Promise<ReadonlyMap<number, Error>> {
    const refused = new Map<number, Error>()
    const nothing = { frames: [], removed: [], freedIds: [], freedKeys: [], unusedResults: [] }
    try {
      await this.#rows.turn({ ...writes, graphs: graphs.map(({ graph }) => graph) })
      return refused
    } catch (error) {
      if (error instanceof Fenced || graphs.length === 0) throw error
    }
    await this.#rows.turn({ ...writes, graphs: [] })
    for (const { graph } of graphs) {
      try {
        await this.#rows.turn({ ...nothing, graphs: [graph] })
      } catch (error) {
        if (error instanceof Fenced) throw error
        refused.set(graph.ordinal, error instanceof InUse ? inUse(error) : unavailable(messageOf(error)))
      }
    }
    return refused
  }

  /** Those who wait get 503. The turn goes on, and a graph that it keeps after all is removed by the next one. */
  #goAway({ graphs }: Turn, waiting: PromiseWithResolvers<void>): void {
    const fault = `the database has not answered for ${ANSWER_WITHIN_MS / 1_000} s`
    if (this.#fault === undefined) this.#options.log.error('the database is away', { cause: fault })
    this.#fault = fault
    waiting.reject(unavailable(fault))
    this.#next?.reject(unavailable(fault))
    for (const { graph, reject } of graphs) {
      this.#writes.refuse(graph)
      reject(unavailable(fault))
    }
  }

  #comeBack(): void {
    if (this.#fault === undefined) return
    this.#fault = undefined
    this.#options.log.info('the database is back')
    this.#onWritableAgain()
  }

  #lose(error: unknown): void {
    if (this.#isLost || this.#isStopped) return
    this.#isLost = true
    const fault = unavailable(LOST)
    this.#current?.waiting.reject(fault)
    this.#next?.reject(fault)
    this.#onLost(error instanceof Error ? error.message : String(error))
  }

  /** Writes the last turn, and gives the lease back. */
  async stop(): Promise<void> {
    this.#stopTimers()
    await this.kept('promise')
    this.#isStopped = true
    await this.#rows.release().catch(() => {}) // the lease ends by itself
    await this.#rows.close()
    await this.history.close()
  }

  async abandon(): Promise<void> {
    await this.#rows.release().catch(() => {}) // the lease ends by itself
    await this.close()
  }

  /** Ends without a last turn. */
  async close(): Promise<void> {
    this.#stopTimers()
    this.#isStopped = true
    await this.#rows.close()
  }

  #stopTimers(): void {
    clearInterval(this.#heartbeat)
    clearInterval(this.#sweep)
  }
}

/** Monotonic time in milliseconds that goes on while the machine sleeps, as far as the system tells. */
const now = (): number => Math.max(Date.now(), performance.timeOrigin + performance.now())

const elapsedSince = (at: number): number => now() - at

function newWaiting(): PromiseWithResolvers<void> {
  const waiting = Promise.withResolvers<void>()
  waiting.promise.catch(() => {}) // perhaps nobody waits
  return waiting
}

/** Only a defect, or rows that somebody else wrote, cause it: all ids in use are known here. */
const inUse = (error: InUse): ServiceError => new ServiceError(409, `in use in the database: ${error.message}`)

const notYet = (what: string) => new ServiceError(501, `${what} is not available with --database yet`)

const textOf = (part: string | Uint8Array): string => (typeof part === 'string' ? part : new TextDecoder().decode(part))
