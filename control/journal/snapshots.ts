/**
 * Snapshots: writing the state file, and removing what it replaces.
 *
 * A snapshot starts a new segment of the journal, writes the state file and the idempotency keys, and only then removes
 * the older segments and unused result files. A crash between any two of these steps loses nothing.
 */
import { messageOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { nextTurn } from '../../shared/steps.ts'
import type { Task } from '../graph/graph.ts'
import type { TaskStore } from '../store/tasks.ts'
import type { EventHistory } from './event-history.ts'
import type { IdempotencyKeys } from './idempotency.ts'
import { writeIdempotencyKeys } from './idempotency-file.ts'
import type { Journal } from './journal.ts'
import type { ResultFiles } from './result-files.ts'
import { writeSnapshot } from './snapshot-writer.ts'

export interface SnapshotOptions {
  readonly store: TaskStore
  readonly journal: Journal
  readonly idempotencyKeys: IdempotencyKeys
  readonly resultFiles: ResultFiles
  readonly history: EventHistory
  readonly dataDir: string
  readonly log: Log
  /** Older segments hold changes that the state file lacks. The first snapshot is taken even if nothing changes. */
  readonly isStateFileBehind: boolean
}

/** Access to the states of changed tasks that are not in the journal yet. */
export interface ChangedStates {
  /** Writes them to the journal. */
  flush(): void
  /** Adds the state of a task that has not changed, so that the new segment holds it. */
  carry(task: Task): void
}

export class Snapshots {
  readonly #options: SnapshotOptions
  readonly #states: ChangedStates
  /** Size of the last state file, in characters. */
  stateFileSize = 0
  #writtenSeq: number
  #writtenKeys = 0
  #underway: Promise<void> | undefined

  constructor(options: SnapshotOptions, states: ChangedStates) {
    this.#options = options
    this.#states = states
    this.#writtenSeq = options.isStateFileBehind ? -1 : options.store.seq
  }

  /** Takes a snapshot unless one is in progress. Logs an error; the next snapshot makes up for it. */
  async takeOrLog(): Promise<void> {
    const { log, journal } = this.#options
    if (this.#underway !== undefined) return // the disk is slow: the next interval will do
    if (journal.isLost) return // the journal has logged it
    try {
      await this.#take()
    } catch (error) {
      if (!journal.isLost) log.error('cannot write the state file; it will be tried again', { cause: messageOf(error) })
    }
  }

  /** Takes the last snapshot, after one that may be in progress. Throws if it cannot be written. */
  async takeLast(): Promise<void> {
    await this.#underway?.catch(() => {}) // it was logged
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
    const { store, journal, resultFiles } = this.#options
    if (store.seq === this.#writtenSeq && journal.size === 0 && !journal.isDistrusted) return
    journal.checkDirectory() // do not write into a directory that replaced ours
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

  async #write(): Promise<void> {
    const { store, journal, idempotencyKeys, history, dataDir } = this.#options
    const segment = await journal.startSegment()
    // Graphs that were synced with the older segment become visible in this turn. The snapshot must include them.
    await nextTurn()
    // The state file has no place for deleted tasks that still run: their states are copied to the new segment.
    for (const task of store.hiddenRunning) this.#states.carry(task)
    this.#states.flush()
    // A start adds events that the history lacks from the segments, which are removed below.
    const { last } = history
    await history.sync(
      await journal.sync().then(
        () => last,
        () => undefined,
      ),
    )
    const { seq } = store
    this.stateFileSize = await writeSnapshot(store, dataDir, () => this.#journalFirst())
    const { revision } = idempotencyKeys
    if (revision !== this.#writtenKeys) await writeIdempotencyKeys(idempotencyKeys, dataDir)
    this.#writtenKeys = revision
    await journal.dropSegmentsBefore(segment)
    this.#writtenSeq = seq
  }

  /**
   * The state file also holds changes made while it was written. A start finds their events in the journal alone. If the
   * journal does not take them, the state file still has to replace it.
   */
  async #journalFirst(): Promise<void> {
    this.#states.flush()
    await this.#options.journal.sync().catch(() => {})
  }
}
