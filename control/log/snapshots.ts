/**
 * Snapshots: write the state file, and remove the files that it replaces.
 *
 * A snapshot starts a new segment of the journal, and writes the state file and the idempotency keys. Then it removes
 * the older segments and unused result files. A crash between any two of these steps loses nothing.
 */
import { messageOf } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import { nextTurn } from '../../shared/process/steps.ts'
import type { Task } from '../graph/graph.ts'
import type { TaskStore } from '../store/tasks.ts'
import type { EventHistory } from './event-history.ts'
import type { IdempotencyKeys } from './idempotency.ts'
import { writeIdempotencyKeys } from './idempotency-file.ts'
import type { Journal } from './journal.ts'
import type { ResultFiles } from './result-files.ts'
import { MIN_STATE_BYTES } from './short-form-writer.ts'
import { lacksShortForm, writeSnapshot } from './snapshot-writer.ts'

export interface SnapshotOptions {
  readonly store: TaskStore
  readonly journal: Journal
  readonly idempotencyKeys: IdempotencyKeys
  readonly resultFiles: ResultFiles
  readonly history: EventHistory
  readonly dataDir: string
  readonly log: Log
  /**
   * Whether the journal holds changes that the state file lacks. Then the first snapshot is taken even without changes.
   */
  readonly isStateFileBehind: boolean
  /** Bytes of a state file that gets a short form in the last snapshot. Default: `MIN_STATE_BYTES`. */
  readonly shortFormFrom?: number
}

/** Changes that are not in the journal yet. */
export interface ChangedStates {
  /** Writes them to the journal. */
  flush(): void
  /** Adds the state of an unchanged task, so that the new segment holds it. */
  carry(task: Task): void
}

export class Snapshots {
  readonly #options: SnapshotOptions
  readonly #states: ChangedStates
  /** Size of the last state file, in bytes. */
  stateFileSize = 0
  #writtenSeq: number
  #writtenKeys = 0
  #underway: Promise<void> | undefined
  #isLast = false

  constructor(options: SnapshotOptions, states: ChangedStates) {
    this.#options = options
    this.#states = states
    this.#writtenSeq = options.isStateFileBehind ? -1 : options.store.seq
  }

  /** Takes a snapshot unless one is in progress. Logs an error; the next interval tries again. */
  async takeOrLog(): Promise<void> {
    const { log, journal } = this.#options
    if (this.#underway !== undefined) return // the disk is slow; the next interval tries again
    if (journal.isLost) return // the journal has logged it
    try {
      await this.#take()
    } catch (error) {
      if (!journal.isLost) log.error('cannot write the state file; it will be tried again', { cause: messageOf(error) })
    }
  }

  /** Waits for a snapshot in progress, then takes the last one. Throws if it cannot be written. */
  async takeLast(): Promise<void> {
    await this.#underway?.catch(() => {}) // the error was logged
    this.#isLast = true
    await this.#take()
  }

  /** One at a time. Further callers share the one in progress. */
  #take(): Promise<void> {
    this.#underway ??= nextTurn()
      .then(() => this.#takeIfChanged())
      .finally(() => {
        this.#underway = undefined
      })
    return this.#underway
  }

  async #takeIfChanged(): Promise<void> {
    const { store, journal, resultFiles, dataDir } = this.#options
    const isWritten = store.seq === this.#writtenSeq && journal.size === 0 && !journal.isDistrusted
    if (isWritten && !(this.#isLast && lacksShortForm(dataDir, this.#shortFormFrom))) return
    journal.checkDirectory() // prevents a write into a directory that replaced ours
    this.#states.flush()
    const dropped = resultFiles.takeDropped()
    try {
      await this.#write()
    } catch (error) {
      resultFiles.giveBack(dropped)
      throw error
    }
    await resultFiles.remove(dropped)
  }

  get #shortFormFrom(): number {
    return this.#options.shortFormFrom ?? MIN_STATE_BYTES
  }

  async #write(): Promise<void> {
    const { store, journal, idempotencyKeys, history, dataDir } = this.#options
    const segment = await journal.startSegment()
    // Graphs that were synced with the older segment become visible in this turn. The snapshot must include them.
    await nextTurn()
    // The state file does not hold deleted tasks. Those that still run are copied to the new segment.
    for (const task of store.hiddenRunning) this.#states.carry(task)
    this.#states.flush()
    // A start adds missing events to the history from the segments, which are removed below.
    const { last } = history
    await history.sync(
      await journal.sync().then(
        () => last,
        () => undefined,
      ),
    )
    const { seq } = store
    this.stateFileSize = await writeSnapshot(store, dataDir, {
      beforeRename: () => this.#eventsFirst(last),
      // The next start needs it soon. Before that, the time that it takes would be lost with each snapshot.
      shortFormFrom: this.#isLast ? this.#shortFormFrom : undefined,
    })
    const { revision } = idempotencyKeys
    if (revision !== this.#writtenKeys) await writeIdempotencyKeys(idempotencyKeys, dataDir)
    this.#writtenKeys = revision
    await journal.dropSegmentsBefore(segment)
    this.#writtenSeq = seq
  }

  /**
   * Writes the changes that were made while the state file was written. The state file holds them too, but a start
   * finds their events only in the journal. Of a graph whose tasks were all deleted meanwhile, the state file has
   * nothing, so a start could not make its events: the history must have them. It was synced up to the number `synced`.
   * If the journal fails, the state file must still replace it.
   */
  async #eventsFirst(synced: number): Promise<void> {
    const { journal, history } = this.#options
    this.#states.flush()
    await journal.sync().catch(() => {})
    if (history.last !== synced) await history.sync()
  }
}
