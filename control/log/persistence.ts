/**
 * Persistence: writes the changes of the store to disk, and refuses requests that the disk cannot store.
 *
 * Changed tasks are collected for 20 ms, then their newest states are written to the journal together. `flush` writes
 * them at once: before a caller sees a change, before an attempt acts, and after it has ended. Operations that promise
 * something wait for `durable` or `appendGraph`. A snapshot replaces the journal at intervals if something changed, and
 * when the journal is large (`snapshots.ts`).
 */

import { messageOf } from '../../shared/contract/errors.ts'
import type { DiskReserve } from '../../shared/files/disk-reserve.ts'
import { nextTurn, runCooperatively } from '../../shared/process/steps.ts'
import type { Change } from '../task/change.ts'
import type { Graph, Task } from '../task/graph.ts'
import { beginFormat } from './data-format.ts'
import { DiskHealth, RETRY_MS } from './disk-health.ts'
import type { EventFeed } from './event-feed.ts'
import type { EventNumbers } from './event-numbers.ts'
import { type NumberedChange, outcomeOf, patchDetail, retriedDetail } from './event-rows.ts'
import { encodeFanOut, type StoredFanOut } from './journaled-fan-out.ts'
import { encodeGraph, encodeRemoval, type SubmissionExtras } from './journaled-graph.ts'
import { withStates } from './journaled-patch.ts'
import { graphPauseNote, type NoteRow, NUMBERS_NOTE } from './notes.ts'
import { type FoundPacks, type SnapshotOptions, Snapshots } from './snapshots.ts'
import { durabilityUnknown, NotWritten, storageUnavailable } from './storage-errors.ts'
import { UnwrittenChanges } from './unwritten-changes.ts'

/** Maximum milliseconds between a change and its write. Changes of that time share a write and a sync. */
const OUTCOME_WAIT_MS = 20

/**
 * Bytes of journal that trigger a snapshot before its interval. A smaller limit writes graphs that go on changing all the
 * time. A larger one makes a start replay the journal for seconds.
 */
const MAX_JOURNAL_BYTES = 64 * 1024 * 1024

/** The journal may also grow to this many times the size of the last pack: the next one may be as costly. */
const PACKS_OF_JOURNAL = 2

export interface PersistenceOptions extends SnapshotOptions {
  readonly reserve: DiskReserve
  /** Is told of every change, and of every write. */
  readonly events: EventFeed
  readonly numbers: EventNumbers
  /** Milliseconds between two snapshots. */
  readonly intervalMs: number
}

export class Persistence {
  readonly #options: PersistenceOptions
  readonly #changed = new UnwrittenChanges()
  /** More changes belong to the same frame: nothing is written before they are there. */
  #isGathering = false
  readonly #disk: DiskHealth
  readonly snapshots: Snapshots
  readonly #snapshotTimer: Timer
  #writeTimer: Timer | undefined
  /** Of the states of a large retry. */
  #encoding: Promise<void> | undefined
  #isFormatBegun = false
  /** Time from which a refused request may trigger a snapshot. */
  #nextRescue = 0

  constructor(options: PersistenceOptions, found: FoundPacks) {
    this.#options = options
    const { reserve, journal, log } = options
    this.#disk = new DiskHealth(
      reserve,
      log,
      () => journal.continueInReserve(reserve),
      () => this.#writeLater(RETRY_MS),
    )
    this.snapshots = new Snapshots(options, found, {
      flush: () => this.flush(),
      carry: (task) => this.#noteChange(task),
    })
    this.#snapshotTimer = setInterval(() => void this.snapshots.takeOrLog(), options.intervalMs)
    options.events.flush = () => this.flush()
    options.numbers.keep = (upTo) => this.#keepNumbers(upTo)
    options.store.watch((change, seq) => this.#watch(change, seq))
  }

  #watch(change: Change, seq: number): void {
    if (change.kind === 'graph-retired') this.snapshots.noteGone(change.graph)
    else this.snapshots.noteChange('graph' in change ? change.graph : change.task.graph)
    switch (change.kind) {
      case 'graph-recovered':
        return
      case 'graph-accepted':
        this.noteNumbered({ kind: 'accepted', graph: change.graph, seq, at: change.graph.createdAt })
        break
      case 'graph-paused':
        this.#options.notes.apply(graphPauseNote(change.graph.ordinal, change.pause))
        this.noteNumbered({ kind: 'paused', graph: change.graph, seq, at: change.at, pause: change.pause })
        break
      case 'graph-resumed':
        this.#options.notes.apply(graphPauseNote(change.graph.ordinal, undefined))
        this.noteNumbered({ ...change, kind: 'resumed', seq })
        break
      case 'graph-ended':
        this.#options.notes.apply(graphPauseNote(change.graph.ordinal, undefined))
        this.noteNumbered({ kind: 'ended', graph: change.graph, seq, at: change.at, outcome: outcomeOf(change.graph) })
        break
      case 'tasks-retried': {
        const { graph, tasks, at, idempotency } = change
        if (!this.#options.journal.isClosed) this.#encodeTogether(tasks)
        this.noteNumbered({ kind: 'retried', graph, seq, at, retried: retriedDetail(change), idempotency })
        this.#tell(this.#options.store.seq, graph.id)
        break
      }
      case 'graph-patched':
        this.noteNumbered({ kind: 'patched', graph: change.graph, seq, at: change.at, patch: patchDetail(change) })
        break
      case 'graph-retired':
        this.noteNumbered({ kind: 'removed', graph: change.graph, seq, at: change.at })
        break
      case 'deleted':
        this.noteNumbered({ kind: 'deleted', task: change.task, seq, at: change.at })
        this.#noteChange(change.task)
        break
      default:
        this.#noteChange(change.task)
        this.#tell(seq, change.task.graph.id)
    }
  }

  /** Nothing is written meanwhile, unless somebody has to see it. */
  #encodeTogether(tasks: readonly Task[]): void {
    const encoding = runCooperatively(this.#changed.addTogether(tasks))
    if (encoding instanceof Promise)
      this.#encoding = encoding.finally(() => {
        this.#encoding = undefined
        this.#writeSoon()
      })
  }

  /** Adds a numbered change to the next write. */
  noteNumbered(change: NumberedChange): void {
    if (this.#options.journal.isClosed) return
    this.#changed.addNumbered(change)
    this.#writeSoon()
    this.#tell(change.seq, 'graph' in change ? change.graph.id : change.task.graph.id)
  }

  #tell(seq: number, graphId: string): void {
    this.#options.numbers.use(seq)
    this.#options.events.changed(graphId)
  }

  /** Not in the turn that used the number: its change is not complete yet. */
  async #keepNumbers(upTo: number): Promise<void> {
    await nextTurn()
    this.note([null, 'numbers', NUMBERS_NOTE, upTo])
    await this.durable()
  }

  /** Has a note written with the changes so far, all or nothing. */
  note(row: NoteRow): void {
    const { journal, notes } = this.#options
    if (journal.isClosed) return
    notes.apply(row)
    this.#changed.addNote(row)
    this.#writeSoon()
  }

  #noteChange(task: Task): void {
    if (this.#options.journal.isClosed) return
    this.#changed.add(task)
    this.#writeSoon()
  }

  #writeSoon(): void {
    if (this.#encoding !== undefined) return
    if (this.#changed.isFull && !this.#isGathering && this.#disk.failure === undefined) this.flush()
    else this.#writeLater(OUTCOME_WAIT_MS)
  }

  /** Sets the timer unless it is set. Each of two timers would set two more. */
  #writeLater(ms: number): void {
    this.#writeTimer ??= setTimeout(() => this.#writeAndSync(), ms)
  }

  #writeAndSync(): void {
    this.#writeTimer = undefined
    if (this.#encoding !== undefined) return
    try {
      this.#writeAndRecover()
      this.#options.journal.sync().catch(() => {}) // the journal has logged it
    } catch {
      this.#writeLater(RETRY_MS)
    }
  }

  /** Writes the changes and ends a failure of the disk. Throws while the failure lasts. */
  #writeAndRecover(): void {
    this.#write(() => {
      if (this.#disk.recover()) this.onWritableAgain()
    })
  }

  /** Writes the changes, then calls `whenWritten`. Throws an error of either, and notes it as one of the disk. */
  #write(whenWritten?: () => void): void {
    const { journal } = this.#options
    if (journal.isLost) throw journal.fault
    try {
      this.#writeChanged()
      whenWritten?.()
    } catch (error) {
      this.#disk.noteFailure(error)
      throw error
    }
  }

  /** Called when the disk takes writes again after a failure. */
  onWritableAgain: () => void = () => {}

  /** Writes the changes. Throws the error of the disk; then the next call writes the rest. */
  #writeChanged(): void {
    const { journal, events } = this.#options
    if (this.#changed.hasNotes) this.#beginFormat()
    const write = (states: readonly string[], patch?: readonly string[]) =>
      patch === undefined ? journal.write('t', states) : journal.write('m', withStates(patch, states.join('')))
    events.written(this.#changed.writeWith((...frame) => this.#disk.writeWithReserve(() => write(...frame))))
    const maxBytes = Math.max(MAX_JOURNAL_BYTES, PACKS_OF_JOURNAL * this.snapshots.packBytes)
    if (journal.size > maxBytes) void this.snapshots.compactOrLog()
  }

  /** The mark needs a file of its own, which takes nothing of the reserve. */
  #beginFormat(): void {
    if (this.#isFormatBegun) return
    beginFormat(this.#options.dataDir)
    this.#isFormatBegun = true
  }

  /**
   * Writes the changes. Called before a change becomes visible, so that a kill of the process loses nothing that was
   * seen. If the write fails, it is repeated later.
   */
  flush(): void {
    if (this.#changed.isEmpty || this.#isGathering || this.#options.journal.isClosed || this.#disk.isPaused) return
    try {
      this.#writeChanged()
    } catch (error) {
      this.#disk.noteFailure(error)
    }
  }

  /**
   * Writes the changes, or throws. Called before an attempt acts: an attempt whose start is not written must not act.
   */
  flushOrThrow(): void {
    if (this.#options.journal.isLost) throw this.#options.journal.fault
    if (this.#disk.failure !== undefined) this.#writeAndRecover()
    else {
      this.#writeChanged()
      if (this.#disk.failure !== undefined) throw this.#disk.failure
    }
  }

  /** Why changes cannot be written; undefined if they can. */
  get fault(): string | undefined {
    const fault = this.#disk.failure ?? this.#options.journal.fault
    return fault && `control cannot write to its data directory: ${messageOf(fault)}`
  }

  /** Throws 503 if the disk does not take writes. Called before a change that will be promised to a caller. */
  assertWritable(): void {
    this.#assertTrustedAfter(() => this.#writeAndRecover())
  }

  /** As `assertWritable`, for cancels and deletions, for which the reserve is enough. */
  assertWritableWithReserve(): void {
    this.#assertTrustedAfter(() => this.#write())
  }

  #assertTrustedAfter(write: () => void): void {
    try {
      write()
    } catch (error) {
      throw storageUnavailable(error)
    }
    this.#assertTrusted()
  }

  /** Throws 503 if no graph can be promised. Writes only if the disk refused the last write. */
  assertAccepting(): void {
    if (this.#disk.failure !== undefined) this.assertWritable()
    else this.#assertTrusted()
  }

  /** Checks the data directory and probes the disk. Throws 503 if no graph can be promised. */
  probe(): void {
    const { journal } = this.#options
    try {
      journal.checkDirectory()
      this.#disk.probe()
    } catch (error) {
      if (!journal.isLost) this.#disk.noteFailure(error)
      throw storageUnavailable(error)
    }
    this.assertAccepting()
  }

  #assertTrusted(): void {
    const { journal } = this.#options
    const { fault } = journal
    if (fault === undefined) return
    if (!journal.isLost && Date.now() >= this.#nextRescue) {
      this.#nextRescue = Date.now() + RETRY_MS
      void this.snapshots.compactOrLog()
    }
    throw storageUnavailable(fault)
  }

  /** Resolves when every change so far is on disk. Rejects with 503 if that is uncertain. */
  async durable(): Promise<void> {
    try {
      await this.#encoding
      this.#writeChanged()
      await this.#options.journal.sync()
    } catch (error) {
      throw durabilityUnknown(error)
    }
  }

  /**
   * Writes a claimed graph that was submitted as `body`, with `extras`. Resolves when all of that is on disk. Rejects
   * with 503; then the graph does not exist after a restart. Callers call `assertAccepting` in the same turn of the
   * event loop.
   */
  async appendGraph(graph: Graph, body: Uint8Array, extras?: SubmissionExtras): Promise<void> {
    try {
      this.#beginFormat() // if the disk is full once the graph is there, its states cannot make the mark
    } catch (error) {
      this.#disk.noteFailure(error)
      throw storageUnavailable(error)
    }
    try {
      await this.#options.journal.append('g', encodeGraph(graph, body, extras))
    } catch (error) {
      if (error instanceof NotWritten) this.#disk.noteFailure(error.cause ?? error)
      else this.revoke(graph)
      throw storageUnavailable(error)
    }
  }

  /**
   * Resolves when the list of a task with `for_each` is on disk, behind the changes so far: a start must not find it without
   * the ends that let the task run. Rejects if that is not certain.
   */
  async appendFanOut(task: Task, fanOut: StoredFanOut): Promise<void> {
    const payload = await runCooperatively(encodeFanOut(task, fanOut))
    this.flushOrThrow()
    try {
      await this.#options.journal.append('x', payload)
    } catch (error) {
      if (error instanceof NotWritten) this.#disk.noteFailure(error.cause ?? error)
      throw error
    }
  }

  /** Revokes a graph that was written but is refused. Otherwise the next start would recover the graph. */
  revoke(graph: Graph): void {
    const { journal } = this.#options
    try {
      journal.write('r', encodeRemoval(graph))
    } catch (error) {
      // The next snapshot removes the graph together with its segment.
      if (!journal.isLost) this.#disk.noteFailure(error)
    }
  }

  /** Writes what a caller changes of a live graph, behind the changes so far. Throws 503; then the graph must not change. */
  writePatch(graph: Graph, payload: readonly string[]): void {
    this.assertWritable()
    try {
      this.#beginFormat()
      this.#options.journal.write('m', payload)
    } catch (error) {
      this.#disk.noteFailure(error)
      throw storageUnavailable(error)
    }
    this.snapshots.noteChange(graph)
  }

  /**
   * Has all that `change` changes written in one frame with the patch that it makes: now, or once the disk takes it. Throws 503; then
   * `change` was not called.
   */
  writePatchWith(payload: readonly string[], change: () => void): void {
    this.assertWritable()
    try {
      this.#beginFormat()
    } catch (error) {
      this.#disk.noteFailure(error)
      throw storageUnavailable(error)
    }
    this.#changed.addPatch(payload)
    this.#isGathering = true
    try {
      change()
    } finally {
      this.#isGathering = false
    }
    this.flush()
  }

  /**
   * Writes the deletion of an ended graph with all its tasks. Throws 503; then nothing is written. The caller removes
   * the graph from the store in the same turn of the event loop, then waits for `durable`.
   */
  deleteGraph(graph: Graph): void {
    this.assertWritableWithReserve()
    try {
      this.#disk.writeWithReserve(() => this.#options.journal.write('d', encodeRemoval(graph)))
    } catch (error) {
      this.#disk.noteFailure(error)
      throw storageUnavailable(error)
    }
  }

  /**
   * Takes the last snapshot and closes the journal. Throws if the snapshot fails; then the journal still holds the
   * changes. Later requests get 503 and change nothing.
   */
  async stop(): Promise<void> {
    clearInterval(this.#snapshotTimer)
    await this.snapshots.takeLast()
    clearTimeout(this.#writeTimer)
    this.flush() // requests may have changed something meanwhile
    await this.#options.journal.close()
    await this.#options.history.close()
  }
}
