/** Keeps accepted work in the data directory: in the log, the state file, and files of results and past events. */

import { DiskReserve } from '../../shared/files/disk-reserve.ts'
import type { Log } from '../../shared/logs/log.ts'
import type { Pause } from '../rules/pause.ts'
import type { ScheduleDefinition, ScheduleProgress } from '../rules/schedule.ts'
import type { Graph, Task } from '../task/graph.ts'
import { GraphGroups } from '../task/graph-groups.ts'
import type { KeptPauses } from '../task/pauses.ts'
import type { TaskStore } from '../task/task-store.ts'
import { EventFeed } from './event-feed.ts'
import { EventHistory } from './event-history.ts'
import type { EventNumbers } from './event-numbers.ts'
import { IdempotencyKeys, type KeptKey } from './idempotency.ts'
import { Journal, type JournalOptions } from './journal.ts'
import type { StoredFanOut } from './journaled-fan-out.ts'
import type { SubmissionExtras } from './journaled-graph.ts'
import { encodePatch, type PatchToKeep } from './journaled-patch.ts'
import type { Keeper, OtherReplicas, Purpose } from './keeper.ts'
import type { Delivery, KeptCallbacks, StoredCallbacks } from './kept-callbacks.ts'
import { KeptOrphans, type Orphan } from './kept-orphans.ts'
import { type KeptSchedules, OwnSchedules, progressNote } from './kept-schedules.ts'
import { noOwner } from './no-owner.ts'
import type { Notes } from './notes.ts'
import { Persistence } from './persistence.ts'
import type { Recovered } from './recovery.ts'
import { ResultFiles } from './result-files.ts'
import { FIRST_SEGMENT } from './segment.ts'

export interface EmbeddedKeeperOptions extends Pick<JournalOptions, 'syncFile'> {
  /** Has the recovered graphs already. */
  readonly store: TaskStore
  readonly numbers: EventNumbers
  readonly recovered: Recovered
  readonly dataDir: string
  /** Milliseconds between two snapshots. */
  readonly intervalMs: number
  /** Minimum number of past events to keep. */
  readonly maxEvents: number
  readonly log: Log
}

export class EmbeddedKeeper implements Keeper {
  readonly results: ResultFiles
  readonly keys: IdempotencyKeys
  readonly callbacks: KeptCallbacks
  readonly orphans: KeptOrphans
  readonly schedules: KeptSchedules
  readonly pauses: KeptPauses
  readonly events: EventFeed
  readonly history: EventHistory
  readonly numbers: EventNumbers
  readonly others = NO_OTHERS
  readonly groups = new GraphGroups()
  readonly #journal: Journal
  readonly #notes: Notes
  readonly #persistence: Persistence

  constructor({ store, numbers, recovered, syncFile, dataDir, intervalMs, maxEvents, log }: EmbeddedKeeperOptions) {
    const { graphs, segments, lastSeq, notes } = recovered
    const firstSegment = segments === undefined ? FIRST_SEGMENT : segments.newest + 1
    const oldestSegment = segments?.oldest ?? firstSegment
    const journal = new Journal({ dataDir, oldestSegment, firstSegment, log, ...(syncFile && { syncFile }) })
    this.keys = new IdempotencyKeys(notes.of('key') as Map<string, KeptKey>)
    const resultFiles = new ResultFiles(dataDir, graphs, log)
    store.onResultDropped = (file) => resultFiles.drop(file)
    const { found, kept, lost, unnumbered } = recovered.history
    const history = new EventHistory({ dataDir, found, kept, lastSeq, maxEvents, log })
    history.appendAll(lost)
    const events = new EventFeed(history, () => journal.sync())
    this.results = resultFiles
    this.events = events
    this.history = history
    this.numbers = numbers
    this.#journal = journal
    this.#notes = notes
    const remembered = { notes, resultFiles, history, events, numbers }
    const parts = { store, journal, ...remembered, dataDir, intervalMs, log }
    this.callbacks = {
      found: callbacksIn(notes),
      keep: ({ id, graphId, delivery }) => {
        this.#persistence.note([null, 'callback', id, delivery ?? graphId])
        this.#persistence.flush() // a kill repeats no delivery that was logged
      },
    }
    this.orphans = new KeptOrphans(
      ({ id, orphan }) => this.#persistence.note([null, 'orphan', id, orphan ?? null]),
      notes.of('orphan') as ReadonlyMap<string, Orphan>,
    )
    const pauses = notes.of('pause') as ReadonlyMap<string, Pause>
    this.pauses = {
      all: pauses,
      onChange: () => {},
      set: (key, pause) => {
        this.#persistence.note([null, 'pause', key, pause ?? null])
        this.pauses.onChange(key)
        return this.#persistence.durable()
      },
    }
    this.schedules = new OwnSchedules(
      (row) => this.#persistence.note(row),
      notes.of('schedule') as ReadonlyMap<string, ScheduleDefinition>,
      notes.of('schedule-progress') as ReadonlyMap<string, ScheduleProgress>,
    )
    store.watch((change) => {
      if (change.kind === 'tasks-retried' && change.idempotency !== undefined) this.keys.keep(change.idempotency)
    })
    this.#persistence = new Persistence({ ...parts, reserve: new DiskReserve(dataDir) }, recovered)
    for (const numbered of unnumbered) this.#persistence.noteNumbered(numbered(store.nextSeq(), Date.now()))
  }

  get fault(): string | undefined {
    return this.#persistence.fault
  }

  assertAccepting(): void {
    this.#persistence.assertAccepting()
  }

  assertWritable(): void {
    this.#persistence.assertWritable()
  }

  assertWritableWithReserve(): void {
    this.#persistence.assertWritableWithReserve()
  }

  /** Checks the data directory and probes the disk. */
  probe(): void {
    this.#persistence.probe()
  }

  /** Changes are written to the journal before an attempt, a kill or a caller acts on them, and synced before a promise. */
  kept(purpose: Purpose): Promise<void> | undefined {
    if (purpose === 'promise') return this.#persistence.durable()
    if (purpose === 'act') this.#persistence.flushOrThrow()
    else this.#persistence.flush()
    return undefined
  }

  flush(): void {
    this.#persistence.flush()
  }

  onWritableAgain(callback: () => void): void {
    this.#persistence.onWritableAgain = callback
  }

  async keepGraph(graph: Graph, body: Uint8Array, { schedule, ...extras }: SubmissionExtras = {}): Promise<void> {
    const note = schedule && progressNote(schedule.name, schedule.progress)
    await this.#persistence.appendGraph(graph, body, { ...extras, ...(note && { note }) })
    if (extras.idempotency !== undefined) this.keys.keep(extras.idempotency)
    if (note !== undefined) this.#notes.apply(note)
  }

  revoke(graph: Graph): void {
    this.#persistence.revoke(graph)
  }

  keepPatch(graph: Graph, patch: PatchToKeep, tasks: string): void {
    this.#persistence.writePatch(graph, encodePatch(graph, patch, tasks))
    if (patch.idempotency !== undefined) this.keys.keep(patch.idempotency)
  }

  keepPatchWith(graph: Graph, patch: PatchToKeep, tasks: string, change: () => void): void {
    this.#persistence.writePatchWith(encodePatch(graph, patch, tasks), change)
  }

  keepFanOut(task: Task, fanOut: StoredFanOut): Promise<void> {
    return this.#persistence.appendFanOut(task, fanOut)
  }

  noteReused(task: Task, seq: number, at: number): void {
    this.#persistence.noteNumbered({ kind: 'reused', task, seq, at })
  }

  deleteGraph(graph: Graph): void {
    this.#persistence.deleteGraph(graph)
  }

  /** Takes the last snapshot and closes the journal. */
  async stop(): Promise<void> {
    await this.#persistence.stop()
  }

  abandon(): Promise<void> {
    return this.#journal.close()
  }
}

function callbacksIn(notes: Notes): StoredCallbacks {
  const found: StoredCallbacks = { waiting: new Map(), over: new Map() }
  for (const [id, value] of notes.of('callback')) {
    if (typeof value === 'string') found.over.set(id, value)
    else found.waiting.set(id, value as Delivery)
  }
  return found
}

/** The other replicas of a service without a database: there are none. */
export const NO_OTHERS: OtherReplicas = {
  hopHeader: '',
  replicaHeader: '',
  adopting: [],
  isHere: () => true,
  unreadable: async () => [], // a file that cannot be read stops the start
  removeUnreadable: async () => false,
  ownerOf: async () => undefined,
  all: async () => ({ live: [], gone: [] }),
  ask: async ({ id }) => {
    throw noOwner(`there is no replica ${id}`)
  },
}
