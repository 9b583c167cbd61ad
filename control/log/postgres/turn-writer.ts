/**
 * Writes turns: one at a time, each with all that came meanwhile. Each renews the lease.
 *
 * While the database is away, requests get 503, and attempts that have not begun wait. A turn that got no answer is
 * repeated until one comes, or another replica has taken the lease.
 */
import { messageOf } from '../../../shared/contract/errors.ts'
import { Histogram } from '../../../shared/logs/histogram.ts'
import type { Log } from '../../../shared/logs/log.ts'
import { nextTurn } from '../../../shared/process/steps.ts'
import { InUse } from './database.ts'
import { type DatabaseFault, type FaultKind, wordsOf } from './database-fault.ts'
import { type Lease, now } from './lease.ts'
import { Fenced, type SharedRows } from './shared-rows.ts'
import { ANSWER_WITHIN_MS, CHARACTERS_PER_MS, unavailable } from './unavailable.ts'
import type { Turn, UnkeptWrites } from './unkept-writes.ts'

/** Seconds. A turn takes a round trip and a commit: some milliseconds, and more while a server fails over. */
const TURN_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** Maximum milliseconds between a change that nobody waits for and its turn. */
const OUTCOME_WAIT_MS = 20

/** Turns of a lease. If none of them is committed, another replica takes the lease. */
const TURNS_PER_LEASE = 4

/**
 * Callers who got an answer often send the next graph at once. A turn that would begin without them waits for them, at most this
 * part of the time of the turn before, and so many milliseconds. Otherwise two halves of the callers would take turns, each
 * with a statement and a commit of its own.
 */
const GATHERING_PART = 0.3
const MAX_GATHERING_MS = 5

/** Why nothing is promised any more. */
const LOST = 'this replica ends'

export interface TurnWriterOptions {
  readonly rows: Pick<SharedRows, 'turn'>
  readonly writes: UnkeptWrites
  /** Encodes the newest states into `writes`. */
  readonly encode: () => void
  readonly lease: Lease
  readonly log: Log
}

interface Cause {
  readonly kind: FaultKind
  readonly text: string
}

export class TurnWriter {
  readonly #options: TurnWriterOptions
  readonly #writes: UnkeptWrites
  readonly #heartbeat: Timer
  #writeTimer: Timer | undefined
  /** The requests that wait for the turn under way, and for the turn after it. */
  #current: { readonly waiting: PromiseWithResolvers<void>; readonly isEmpty: boolean } | undefined
  #next: PromiseWithResolvers<void> | undefined
  #isRunning = false
  /** The turn that is to begin waits for so many graphs. */
  #gathering: { readonly graphs: number; readonly end: () => void } | undefined
  /** Why nothing can be kept; undefined while the database answers. */
  #fault: string | undefined
  /** What the database has said since it was there last. Undefined: nothing. */
  #cause: Cause | undefined
  /** Kinds of faults that it has told since. */
  readonly #told = new Set<FaultKind>()
  #isStopped = false
  /** Seconds of each turn. */
  readonly times = new Histogram(TURN_SECONDS)
  /** Called when changes can be kept again after a failure. */
  onWritableAgain: () => void = () => {}

  constructor(options: TurnWriterOptions) {
    this.#options = options
    this.#writes = options.writes
    this.#heartbeat = setInterval(() => this.#beat(), options.lease.ms / TURNS_PER_LEASE / 2)
  }

  /** Writes a turn soon. */
  writeSoon(): void {
    this.#writeTimer ??= setTimeout(() => this.run(), OUTCOME_WAIT_MS)
  }

  get lease(): Lease {
    return this.#options.lease
  }

  /** Throws 503 while the database is away, or the lease may be over. */
  assertAccepting(): void {
    const fault = this.#whyNot
    if (fault !== undefined) throw unavailable(fault)
  }

  get #whyNot(): string | undefined {
    if (this.#isStopped) return 'the service is stopping'
    if (this.lease.isLost) return LOST
    if (this.#fault !== undefined) return this.#fault
    if (this.lease.leftMs > 0) return undefined
    this.run(true)
    return 'the lease of this replica is being renewed'
  }

  /** Resolves once all changes so far are in a committed turn. Undefined: they are already. Rejects with 503. */
  kept(): Promise<void> | undefined {
    if (this.lease.isLost || this.#isStopped || this.#fault !== undefined)
      return Promise.reject(unavailable(this.#whyNot ?? 'the database is away'))
    this.#options.encode()
    if (!this.#writes.isEmpty || this.lease.leftMs === 0) {
      this.#next ??= newWaiting()
      this.run(true)
      return this.#next.promise
    }
    if (this.#current === undefined || this.#current.isEmpty) return undefined
    return this.#current.waiting.promise
  }

  /** Throws 503 while the database is known to be away. */
  assertReachable(): void {
    if (this.#fault !== undefined) throw unavailable(this.#fault)
  }

  /** A turn without changes renews the lease. */
  #beat(): void {
    const { ageMs, ms } = this.lease
    if (ageMs > ms / TURNS_PER_LEASE) this.run(true)
  }

  /** Writes turns until nothing is left. `isForced` writes at least one. */
  run(isForced = false): void {
    if (isForced) this.#next ??= newWaiting()
    if (this.#gathering !== undefined && this.#writes.graphCount >= this.#gathering.graphs) this.#gathering.end()
    if (this.#isRunning || this.lease.isLost) return
    clearTimeout(this.#writeTimer)
    this.#writeTimer = undefined
    this.#isRunning = true
    void this.#writeTurns()
  }

  async #writeTurns(): Promise<void> {
    await nextTurn() // further changes of this turn of the event loop join
    while (!this.lease.isLost && (this.#next !== undefined || !this.#writes.isEmpty)) {
      clearTimeout(this.#writeTimer)
      this.#writeTimer = undefined
      this.#options.encode()
      const waiting = this.#next
      this.#next = undefined
      const turn = this.#writes.take()
      this.#current = { waiting: waiting ?? newWaiting(), isEmpty: turn.isEmpty }
      const beganAt = performance.now()
      await this.#write(turn, this.#current.waiting)
      this.#current = undefined
      if (this.#next !== undefined) await this.#gather(turn.graphs.length, performance.now() - beganAt)
    }
    this.#isRunning = false // in the same turn of the event loop as the last look for work
  }

  /** Waits for graphs of the callers whose `answered` graphs were in the turn before, which took `turnMs`. */
  async #gather(answered: number, turnMs: number): Promise<void> {
    if (answered === 0) return
    const { promise, resolve: end } = Promise.withResolvers<void>()
    this.#gathering = { graphs: this.#writes.graphCount + answered, end }
    const late = setTimeout(end, Math.min(turnMs * GATHERING_PART, MAX_GATHERING_MS))
    await promise
    clearTimeout(late)
    this.#gathering = undefined
  }

  async #write(turn: Turn, waiting: PromiseWithResolvers<void>): Promise<void> {
    const beganAt = now()
    const limitMs = ANSWER_WITHIN_MS + charactersOf(turn) / CHARACTERS_PER_MS
    const late = setTimeout(() => this.#goAway(turn, waiting, limitMs), limitMs)
    try {
      const refused = await this.#commit(turn, (fault) => this.#noteFault(fault))
      this.lease.confirm(beganAt)
      this.times.add(Math.max(0, now() - beganAt) / 1_000)
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
  async #commit(
    { graphs, writes }: Turn,
    onFault: (fault: DatabaseFault) => void,
  ): Promise<ReadonlyMap<number, Error>> {
    const refused = new Map<number, Error>()
    const nothing = {
      frames: [],
      removed: [],
      freedIds: [],
      freedKeys: [],
      resultUses: [],
      callbacks: [],
      orphans: [],
      removals: [],
      revived: [],
    }
    try {
      await this.#options.rows.turn({ ...writes, graphs: graphs.map(({ graph }) => graph) }, onFault)
      return refused
    } catch (error) {
      if (error instanceof Fenced || graphs.length === 0) throw error
    }
    await this.#options.rows.turn({ ...writes, graphs: [] }, onFault)
    for (const { graph } of graphs) {
      try {
        await this.#options.rows.turn({ ...nothing, graphs: [graph] }, onFault)
      } catch (error) {
        if (error instanceof Fenced) throw error
        refused.set(graph.ordinal, error instanceof InUse ? error : unavailable(messageOf(error)))
      }
    }
    return refused
  }

  /**
   * Requests that wait get 503. The turn goes on: nobody knows whether the database has kept it, and it is repeated until that
   * is certain. The next turn then removes its graphs with their keys, before anything else is answered. A schedule waits for its
   * graph until that is certain: it would otherwise submit another one for the same due time.
   */
  #goAway({ graphs }: Turn, waiting: PromiseWithResolvers<void>, limitMs: number): void {
    const silent = `the database has not answered for ${(limitMs / 1_000).toFixed(1)} s`
    const fault = this.#cause?.text ?? silent
    if (this.#fault === undefined) this.#tell(this.#cause ?? { kind: 'silent', text: silent })
    this.#fault = fault
    waiting.reject(unavailable(fault))
    this.#next?.reject(unavailable(fault))
    this.#next = undefined // whoever waits once the database is back must not get this answer
    for (const { graph, reject } of graphs) {
      if (graph.schedule !== undefined) continue
      this.#writes.refuse(graph)
      reject(unavailable(fault))
    }
    for (const { reject } of this.#writes.takeGraphs()) reject(unavailable(fault))
  }

  #noteFault(fault: DatabaseFault): void {
    const text = wordsOf(fault)
    if (text !== undefined) this.#cause = { kind: fault.kind, text }
    if (this.#fault === undefined || this.#cause === undefined) return
    this.#fault = this.#cause.text
    this.#tell(this.#cause)
  }

  /** While the database is away, each kind of fault is logged once. */
  #tell({ kind, text }: Cause): void {
    if (this.#told.has(kind)) return
    this.#told.add(kind)
    this.#options.log.error('the database is away', { cause: text })
  }

  #comeBack(): void {
    this.#cause = undefined
    this.#told.clear()
    if (this.#fault === undefined) return
    this.#fault = undefined
    this.#options.log.info('the database is back')
    this.onWritableAgain()
  }

  #lose(error: unknown): void {
    if (this.lease.isLost || this.#isStopped) return
    const fault = unavailable(LOST)
    this.#current?.waiting.reject(fault)
    this.#next?.reject(fault)
    this.lease.lose(error instanceof Error ? error.message : String(error))
  }

  /** No later change is promised. */
  stop(): void {
    this.stopTimers()
    this.#isStopped = true
  }

  stopTimers(): void {
    clearInterval(this.#heartbeat)
  }
}

const charactersOf = ({ graphs, writes }: Turn): number =>
  [...graphs.map(({ graph }) => graph), ...writes.frames].reduce((sum, { payload }) => sum + payload.length, 0)

function newWaiting(): PromiseWithResolvers<void> {
  const waiting = Promise.withResolvers<void>()
  waiting.promise.catch(() => {}) // perhaps nobody waits
  return waiting
}
