/**
 * Snapshots: compact the log, and write the state file.
 *
 * A snapshot starts a new segment of the journal, and writes a pack with what has changed since the last snapshot, and all
 * notes. Then it removes the older segments and unused result files. A crash between any two of these steps loses
 * nothing. The state file is for other programs: a start reads it only where there is no log.
 */
import { messageOf } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import { nextTurn } from '../../shared/process/steps.ts'
import type { Graph, Task } from '../task/graph.ts'
import type { TaskStore } from '../task/task-store.ts'
import { beginFormat, raiseFormat } from './data-format.ts'
import type { EventHistory } from './event-history.ts'
import type { Journal } from './journal.ts'
import type { Notes } from './notes.ts'
import { type PackedGraph, Packs } from './packs.ts'
import type { Recovered } from './recovery.ts'
import type { ResultFiles } from './result-files.ts'
import { removeSideFiles } from './side-files.ts'
import { writeSnapshot } from './snapshot-writer.ts'

export interface SnapshotOptions {
  readonly store: TaskStore
  readonly journal: Journal
  readonly notes: Notes
  readonly resultFiles: ResultFiles
  readonly history: EventHistory
  readonly dataDir: string
  readonly log: Log
}

/** What a start has found in the log of the graphs in the store. */
export type FoundPacks = Pick<Recovered, 'changed' | 'gone' | 'packs' | 'isStateFileBehind'>

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
  readonly #packs: Packs
  /** Graphs that the packs do not have as they are now. */
  #changed: Set<Graph>
  /** Graphs that only the packs have. */
  #gone: PackedGraph[]
  #isPacked: boolean
  /** The number of the last change in the state file. */
  #writtenSeq: number
  #underway: Promise<void> | undefined
  #isStateFileDue = false

  constructor(options: SnapshotOptions, found: FoundPacks, states: ChangedStates) {
    const { dataDir, store } = options
    this.#options = options
    this.#states = states
    this.#packs = new Packs(dataDir, found.packs)
    this.#changed = new Set(found.changed)
    this.#gone = [...found.gone]
    this.#isPacked = this.#changed.size + this.#gone.length === 0 && !found.isStateFileBehind
    this.#writtenSeq = found.isStateFileBehind ? -1 : store.seq
    store.onReplaced = ({ graph }) => this.noteChange(graph)
  }

  /** Bytes that the last snapshot wrote to the log. */
  get packBytes(): number {
    return this.#packs.newestBytes
  }

  /** A graph has changed: the next snapshot writes it. */
  noteChange(graph: Graph): void {
    this.#changed.add(graph)
    this.#isPacked = false
  }

  /** A graph is gone. Only its place in a pack is kept: the graph would stay in memory until the next snapshot. */
  noteGone(graph: Graph): void {
    this.noteChange(graph)
    if (this.#underway !== undefined) return // which may give the graph another place
    this.#changed.delete(graph)
    const { ordinal, pack, packBytes } = graph
    if (pack > 0) this.#gone.push({ ordinal, pack, packBytes })
  }

  /** Compacts the log and writes the state file, unless a snapshot is in progress. Logs an error; the next interval tries again. */
  async takeOrLog(): Promise<void> {
    this.#isStateFileDue = true
    await this.compactOrLog()
  }

  /** As `takeOrLog`, without the state file. */
  async compactOrLog(): Promise<void> {
    const { log, journal } = this.#options
    if (this.#underway !== undefined) return // the disk is slow; the next interval tries again
    if (journal.isLost) return // the journal has logged it
    try {
      await this.#take()
    } catch (error) {
      if (!journal.isLost) log.error('cannot write a snapshot; it will be tried again', { cause: messageOf(error) })
    }
  }

  /** Waits for a snapshot in progress, then takes the last one. Throws if it cannot be written. */
  async takeLast(): Promise<void> {
    await this.#underway?.catch(() => {}) // the error was logged
    this.#isStateFileDue = true
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
    const isPacked = this.#isPacked && journal.size === 0 && !journal.isDistrusted
    if (isPacked && store.seq === this.#writtenSeq) return
    journal.checkDirectory() // prevents a write into a directory that replaced ours
    this.#states.flush()
    const dropped = resultFiles.takeDropped()
    try {
      if (isPacked) await this.#writeStateFile()
      else await this.#compact()
    } catch (error) {
      resultFiles.giveBack(dropped)
      throw error
    }
    await resultFiles.remove(dropped)
  }

  /** Does nothing if only the log is to be compacted. */
  async #writeStateFile(): Promise<void> {
    if (!this.#isStateFileDue) return
    const { store, dataDir } = this.#options
    const { seq } = store
    await writeSnapshot(store, dataDir)
    this.#writtenSeq = seq
    this.#isStateFileDue = false
  }

  async #compact(): Promise<void> {
    const { store, journal } = this.#options
    const segment = await journal.startSegment()
    // Graphs that were synced with the older segment become visible in this turn. The snapshot must include them.
    await nextTurn()
    // Packs do not hold deleted tasks. Those that still run are copied to the new segment.
    for (const task of store.hiddenRunning) this.#states.carry(task)
    this.#states.flush()
    const changed = this.#changed
    this.#changed = new Set()
    this.#isPacked = true
    const { dataDir } = this.#options
    try {
      beginFormat(dataDir)
      await this.#writePack(segment, changed)
      raiseFormat(dataDir)
      removeSideFiles(dataDir)
      try {
        await this.#writeStateFile()
      } finally {
        await this.#packs.removeOthers()
        await journal.dropSegmentsBefore(segment) // last, as a sign that all is written
      }
    } catch (error) {
      for (const graph of changed) this.#changed.add(graph)
      this.#isPacked = false
      throw error
    }
  }

  /** Writes a pack with what the segments before `segment` say. */
  async #writePack(segment: number, changed: ReadonlySet<Graph>): Promise<void> {
    const { store, journal, history, notes } = this.#options
    const start = { last_seq: store.seq, last_ordinal: store.ordinal }
    // A start adds missing events to the history from the segments, which are removed afterwards.
    const { last } = history
    await history.sync(
      await journal.sync().then(
        () => last,
        () => undefined,
      ),
    )
    const beforeNotes = () => this.#eventsFirst(last)
    const parts = { store, changed, gone: this.#gone, notes, start, beforeNotes }
    await this.#packs.write(segment - 1, parts)
    this.#gone = []
  }

  /**
   * Writes the changes that were made while the pack was written. The pack may hold them too, but a start finds their
   * events only in the journal. Of a graph whose tasks were all deleted meanwhile, the pack has nothing, so a start could not
   * make its events: the history must have them. It was synced up to the number `synced`. If the journal fails, the pack must
   * still replace it.
   */
  async #eventsFirst(synced: number): Promise<void> {
    const { journal, history } = this.#options
    this.#states.flush()
    await journal.sync().catch(() => {})
    if (history.last !== synced) await history.sync()
  }
}
