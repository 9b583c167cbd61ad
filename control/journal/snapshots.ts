/**
 * When the state file is written anew, and what goes with it.
 *
 * A new segment of the journal is begun, the state file and the remembered keys are written, and only then the older
 * segments and the results that nobody needs go. A kill between any two of these steps changes nothing.
 */
import { messageOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { nextTurn } from '../../shared/steps.ts'
import type { Task } from '../graph/graph.ts'
import type { TaskStore } from '../store/tasks.ts'
import type { IdempotencyKeys } from './idempotency.ts'
import { writeIdempotencyKeys } from './idempotency-file.ts'
import type { Journal } from './journal.ts'
import type { ResultFiles } from './result-files.ts'
import { writeSnapshot } from './snapshot.ts'

export interface SnapshotOptions {
  readonly store: TaskStore
  readonly journal: Journal
  readonly idempotencyKeys: IdempotencyKeys
  readonly resultFiles: ResultFiles
  readonly dataDir: string
  readonly log: Log
  /** Older segments hold what the state file lacks: it is written even if nothing changes. */
  readonly isStateFileBehind: boolean
}

/** The states of changed tasks on their way to the journal. */
export interface ChangedStates {
  /** Writes them. */
  flush(): void
  /** Adds the state of a task that has not changed. */
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

  /** Takes one, unless one is under way; what goes wrong is logged, and the next one makes up for it. */
  async takeOrLog(): Promise<void> {
    const { log, journal } = this.#options
    if (this.#underway !== undefined) return // a slow disk: the next time will do
    if (journal.isLost) return // the journal has said so
    try {
      await this.#take()
    } catch (error) {
      if (!journal.isLost) log.error('cannot write the state file; it will be tried again', { cause: messageOf(error) })
    }
  }

  /** Takes the last one, after the one that may be under way. Throws when it cannot be written. */
  async takeLast(): Promise<void> {
    await this.#underway?.catch(() => {}) // it has been logged
    await this.#take()
  }

  /** One at a time, whoever asks. */
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
    journal.checkDirectory() // a directory that took its place is not ours to write in
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
    const { store, journal, idempotencyKeys, dataDir } = this.#options
    const segment = await journal.startSegment()
    // Graphs that were synced with the segment before become visible in this turn; the snapshot must hold them.
    await nextTurn()
    // The state file has no place for deleted tasks that still run: their states are carried into the new segment.
    for (const task of store.hiddenRunning) this.#states.carry(task)
    this.#states.flush()
    const { seq } = store
    this.stateFileSize = await writeSnapshot(store, dataDir)
    const { revision } = idempotencyKeys
    if (revision !== this.#writtenKeys) await writeIdempotencyKeys(idempotencyKeys, dataDir)
    this.#writtenKeys = revision
    await journal.dropSegmentsBefore(segment)
    this.#writtenSeq = seq
  }
}
