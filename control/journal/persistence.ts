/**
 * Keeps what the store holds on disk.
 *
 * Changed tasks are collected for a moment and their newest states written to the journal together, and at the latest
 * before anybody outside can see them, or an attempt that acts begins or has ended (`flush`). Whoever is promised
 * something waits for `durable` or for `appendGraph`. Every interval in which something changed, and when the journal has
 * grown large, a snapshot takes the place of the journal (`snapshots.ts`).
 */
import { messageOf } from '../../shared/errors.ts'
import { isoTime } from '../../shared/iso-time.ts'
import { withoutByteOrderMark } from '../../shared/json-bytes.ts'
import type { Graph, Task } from '../graph/graph.ts'
import type { DiskReserve } from './disk-reserve.ts'
import type { KeptKey } from './idempotency.ts'
import { encodeStates } from './journaled-state.ts'
import type { JournaledGraph } from './replay.ts'
import { type SnapshotOptions, Snapshots } from './snapshots.ts'
import { durabilityUnknown, NotWritten, storageUnavailable } from './storage-errors.ts'

/** Milliseconds that a change which nobody has seen may wait for others before it is written and synced with them. */
const OUTCOME_WAIT_MS = 20

/** Changed tasks that may wait. More would make one write a pause. */
const MAX_UNWRITTEN = 2_048

/** Milliseconds before states that the disk did not take are written again. */
const RETRY_MS = 500

/** Milliseconds that a write counts as a proof that the disk takes more. */
const PROBE_FRESH_MS = 1_000

/**
 * Bytes of journal after which the state file is written before its time. Less would write it all the time, more would
 * have a start replay for seconds. A large state file is not rewritten for a small journal: see `STATE_FILES_OF_JOURNAL`.
 */
const MAX_JOURNAL_BYTES = 64 * 1024 * 1024

/** The journal may also be as large as this many state files: writing a state file costs as much as it is large. */
const STATE_FILES_OF_JOURNAL = 2

export interface PersistenceOptions extends SnapshotOptions {
  readonly reserve: DiskReserve
  /** Milliseconds between two state files. */
  readonly intervalMs: number
}

export class Persistence {
  readonly #options: PersistenceOptions
  /** Tasks whose newest state is not in the journal yet. */
  #changed: Task[] = []
  readonly #timer: Timer
  #flushTimer: Timer | undefined
  /** What the disk said when it refused a write; undefined once it takes writes again. */
  #failure: Error | undefined
  /** When a disk that refused even with the room of the reserve is asked again. */
  #nextTry = 0
  /** When a write that was only a try last succeeded. */
  #probedAt = Number.NEGATIVE_INFINITY
  readonly #snapshots: Snapshots
  /** When a snapshot may be taken again because callers were refused. */
  #nextRescue = 0

  constructor(options: PersistenceOptions) {
    this.#options = options
    this.#snapshots = new Snapshots(options, { flush: () => this.flush(), carry: (task) => this.#noteChange(task) })
    this.#timer = setInterval(() => void this.#snapshots.takeOrLog(), options.intervalMs)
    options.store.watch((change) => {
      if ('task' in change) this.#noteChange(change.task)
    })
  }

  #noteChange(task: Task): void {
    if (this.#options.journal.isClosed) return
    if (!task.isUnwritten) {
      task.isUnwritten = true
      this.#changed.push(task)
    }
    if (this.#changed.length >= MAX_UNWRITTEN && this.#failure === undefined) this.flush()
    else this.#flushTimer ??= setTimeout(() => this.#writeAndSync(), OUTCOME_WAIT_MS)
  }

  #writeAndSync(): void {
    this.#flushTimer = undefined
    try {
      this.#writeOrThrow()
      this.#options.journal.sync().catch(() => {}) // the journal has said so
    } catch {
      this.#tryAgainLater()
    }
  }

  /** Writes what has changed, and throws what the disk said while it cannot be relied on to take more. */
  #writeOrThrow(): void {
    const { journal } = this.#options
    if (journal.isLost) throw journal.fault
    try {
      this.#writeChanged()
      if (this.#failure === undefined) return
      this.#options.reserve.restore()
      this.#failure = undefined
      this.#options.log.info('the journal can be written again')
      this.onWritableAgain()
    } catch (error) {
      this.#noteFailing(error)
      throw error
    }
  }

  /** Called when the disk takes writes again, after `flushOrThrow` had to refuse. */
  onWritableAgain: () => void = () => {}

  /** Writes the newest states of changed tasks, or throws what the disk said and forgets none of them. */
  #writeChanged(): void {
    const { journal } = this.#options
    while (this.#changed.length > 0) {
      const isAll = this.#changed.length <= MAX_UNWRITTEN
      const tasks = isAll ? this.#changed : this.#changed.slice(0, MAX_UNWRITTEN)
      this.#writeStates(encodeStates(tasks))
      this.#changed = isAll ? [] : this.#changed.slice(MAX_UNWRITTEN)
      for (const task of tasks) task.isUnwritten = false
    }
    const mayHave = Math.max(MAX_JOURNAL_BYTES, STATE_FILES_OF_JOURNAL * this.#snapshots.stateFileSize)
    if (journal.size > mayHave) void this.#snapshots.takeOrLog()
  }

  #writeStates(states: string): void {
    const { journal, reserve } = this.#options
    try {
      journal.write('t', [states])
    } catch (error) {
      this.#noteFailing(error)
      this.#nextTry = Date.now() + RETRY_MS
      if (!reserve.release()) throw error
      journal.write('t', [states])
      this.#nextTry = 0
    }
  }

  #noteFailing(error: unknown): void {
    if (this.#failure === undefined) {
      const cause = messageOf(error)
      this.#options.log.error('cannot write the journal: nothing new is taken in or started until it can be', { cause })
    }
    this.#failure = error instanceof Error ? error : new Error(messageOf(error))
    this.#tryAgainLater()
  }

  /** One timer at a time: each of two would set two more. */
  #tryAgainLater(): void {
    this.#flushTimer ??= setTimeout(() => this.#writeAndSync(), RETRY_MS)
  }

  /**
   * Writes what has changed. Called before a change is shown to anybody, so that a kill of the process loses nothing that
   * was seen. A failure is kept and the write is repeated later.
   */
  flush(): void {
    if (this.#options.journal.isClosed) return
    if (Date.now() < this.#nextTry) return // asking a full disk again and again helps nobody
    try {
      this.#writeChanged()
    } catch (error) {
      this.#noteFailing(error)
    }
  }

  /** Writes what has changed, or throws. Called before an attempt acts: if its start cannot be written, it must not act. */
  flushOrThrow(): void {
    if (this.#options.journal.isLost) throw this.#options.journal.fault
    if (this.#failure !== undefined) this.#writeOrThrow()
    else this.#writeTrusted()
  }

  #writeTrusted(): void {
    this.#writeChanged()
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Throws 503 when the disk does not take anything now: before a change that is to be promised. */
  assertWritable(): void {
    try {
      this.#writeOrThrow()
    } catch (error) {
      throw storageUnavailable(error)
    }
    this.#ensureTrusted()
  }

  /** Throws 503 when no graph can be promised now. Asks the disk again only where it refused before. */
  assertAccepting(): void {
    if (this.#failure !== undefined) this.assertWritable()
    else this.#ensureTrusted()
  }

  /**
   * Looks for the data directory, and tries at most once a second whether the disk takes a write. Throws 503 when no graph
   * can be promised.
   */
  probe(): void {
    const { journal, reserve } = this.#options
    try {
      journal.checkDirectory()
      if (this.#failure === undefined && performance.now() - this.#probedAt >= PROBE_FRESH_MS) {
        reserve.probe()
        this.#probedAt = performance.now()
      }
    } catch (error) {
      if (!journal.isLost) this.#noteFailing(error)
      throw storageUnavailable(error)
    }
    this.assertAccepting()
  }

  #ensureTrusted(): void {
    const { journal } = this.#options
    const { fault } = journal
    if (fault === undefined) return
    if (!journal.isLost && Date.now() >= this.#nextRescue) {
      this.#nextRescue = Date.now() + RETRY_MS
      void this.#snapshots.takeOrLog()
    }
    throw storageUnavailable(fault)
  }

  /** Resolves when every change so far is on disk; rejects with 503 when that cannot be said. */
  async durable(): Promise<void> {
    try {
      this.#writeChanged()
      await this.#options.journal.sync()
    } catch (error) {
      throw durabilityUnknown(error)
    }
  }

  /**
   * Resolves when a claimed graph, submitted as `body`, is on disk; rejects with 503, and then none of it counts. The caller
   * has asked `assertAccepting` in the same turn.
   */
  async appendGraph(graph: Graph, body: Uint8Array, idempotency?: KeptKey): Promise<void> {
    const identity: Omit<JournaledGraph, 'body'> = {
      graph_ordinal: graph.ordinal,
      graph_id: graph.id,
      trace_id: graph.traceId,
      created_at: isoTime(graph.createdAt),
      ...(idempotency && { idempotency }),
    }
    const head = `${JSON.stringify(identity).slice(0, -1)},"body":`
    try {
      await this.#options.journal.append('g', [head, withoutByteOrderMark(body), '}'])
    } catch (error) {
      if (error instanceof NotWritten) this.#noteFailing(error.cause ?? error)
      else this.revoke(graph)
      throw storageUnavailable(error)
    }
  }

  /** Takes back a graph that was written but not promised to anybody; a start would find it otherwise. */
  revoke({ ordinal }: Graph): void {
    try {
      this.#options.journal.write('r', [JSON.stringify({ graph_ordinal: ordinal })])
    } catch (error) {
      // It goes with its segment, once the state file was written anew.
      if (!this.#options.journal.isLost) this.#noteFailing(error)
    }
  }

  /**
   * Writes the last state, or throws: then the journal still holds what the state file lacks. Requests that come later are
   * refused with 503 before anything changes.
   */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#snapshots.takeLast()
    clearTimeout(this.#flushTimer)
    this.flush() // requests that came meanwhile
    await this.#options.journal.close()
  }
}
