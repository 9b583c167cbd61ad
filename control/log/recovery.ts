/**
 * Recovery: reads the state file and the journal at a start.
 *
 * All files are read and checked before any is changed. `replay.ts` combines the state file and the journal. A torn
 * tail of a segment is cut off. Any other damage ends the start.
 */
import { join } from 'node:path'
import { UsageError } from '../../shared/contract/errors.ts'
import type { ProcessIdentity } from '../../shared/process/processes.ts'
import type { Graph, Task } from '../graph/graph.ts'
import { refuseNewerFormat } from './data-format.ts'
import type { EventRow, NumberedChange } from './event-rows.ts'
import { type FoundHistory, findHistory, lastKept } from './found-history.ts'
import { GcSchedule } from './gc-schedule.ts'
import type { KeptKey } from './idempotency.ts'
import { readIdempotencyKeys } from './idempotency-file.ts'
import type { Frame } from './journal-format.ts'
import { cutOff, readJournal, segmentNumbersIn } from './journal-reader.ts'
import { LostEvents, unnumbered } from './lost-events.ts'
import { Mentions } from './mentions.ts'
import { Replay } from './replay.ts'
import { FIRST_SEGMENT, segmentName } from './segment.ts'
import { readShortForm } from './short-form-reader.ts'
import { shortFormPath } from './short-form-writer.ts'
import { readSnapshot, readSnapshotLines } from './snapshot-reader.ts'
import { hasSnapshot, statePath } from './snapshot-writer.ts'
import type { StoredTask } from './stored-task.ts'
import { refuseFile } from './unreadable-file.ts'

export interface Recovered {
  readonly graphs: readonly Graph[]
  /** Processes of attempts that a crash interrupted. They may still run. */
  readonly processes: readonly ProcessIdentity[]
  /** Cancelled tasks whose attempts another service may not have ended yet. */
  readonly toKillRemotely: readonly Task[]
  /** Tasks of deleted graphs that another service may not have removed yet. */
  readonly toForget: readonly Task[]
  /** Oldest first. If a key is there twice, the later one counts. */
  readonly idempotencyKeys: readonly KeptKey[]
  /** The highest numbers used so far. */
  readonly lastSeq: number
  readonly lastOrdinal: number
  /** Numbers of the oldest and the newest segment; undefined if there are none. */
  readonly segments: { readonly oldest: number; readonly newest: number } | undefined
  /** Bytes of torn tails that were cut off. */
  readonly cutBytes: number
  readonly history: RecoveredHistory
}

/** The history, and the events that it lacks. */
export interface RecoveredHistory {
  readonly found: FoundHistory
  /** The last number to keep of the found files; undefined if the history begins anew. */
  readonly kept: number | undefined
  /** Rows of later events, in order. */
  readonly lost: readonly EventRow[]
  /** Changes without a number, oldest first, as functions that take the number and the time. */
  readonly unnumbered: readonly ((seq: number, now: number) => NumberedChange)[]
}

/** Bytes to read from which on it pays to compile the loops over them: a fifth of the CPU time for 100,000 tasks. */
const COMPILED_BYTES = 1024 * 1024

/** The files with inputs of tasks: the state file, its short form, and the segments of the journal. */
export const filesWithInput = (dataDir: string): string[] => [
  statePath(dataDir),
  shortFormPath(dataDir),
  ...segmentNumbersIn(dataDir).map((number) => join(dataDir, segmentName(number))),
]

/** Throws `UsageError`, which names the file, the place and a remedy. Then no file was changed. */
export async function recover(dataDir: string): Promise<Recovered> {
  refuseNewerFormat(dataDir)
  const keys = readIdempotencyKeys(dataDir)
  const found = findHistory(dataDir)
  const numbers = segmentNumbersIn(dataDir)
  const hasState = hasSnapshot(dataDir)
  // Segments are removed only when a state file holds their content. So without a state file the first one must exist.
  if (numbers.length > 0 && numbers[0] !== FIRST_SEGMENT && !hasState) throw lostSnapshot(dataDir, numbers[0]!)
  const bytes = filesWithInput(dataDir).reduce((sum, path) => sum + Bun.file(path).size, 0)
  if (bytes > COMPILED_BYTES) Bun.unsafe.setJITPolicy(1) // until now START_JIT_POLICY of scripts/build.ts
  const { frames, tornTails } = readJournal(dataDir, numbers)
  const mentions = new Mentions()
  if (hasState) for (const { frame } of frames) mentions.add(frame)
  const collections = new GcSchedule()
  const refuse = refuseFile('state file', statePath(dataDir))
  const replay = await readState({ dataDir, mentions, keys, collections, refuse })
  for (const { frame } of frames) replay.note(frame)
  const highest = frames.map(({ frame, refuse }) => replay.apply(frame, refuse))
  const lastSeq = Math.max(replay.lastSeq, found.synced)
  const kept = lastKept(found, lastSeq)
  const late = kept === undefined ? [] : frames.flatMap(({ frame }, i) => (highest[i]! > kept ? frame : []))
  frames.length = 0 // frees the bytes of the segments before the graphs are built
  const graphs = replay.graphs(refuse, late.length > 0)
  if (collections.hasCollected) Bun.gc(true)
  const { lastOrdinal, idempotencyKeys } = replay
  const { processes, toKillRemotely, toForget } = replay.built
  return {
    ...{ graphs, processes, toKillRemotely, toForget, idempotencyKeys, lastSeq, lastOrdinal },
    segments: numbers.length === 0 ? undefined : { oldest: numbers[0]!, newest: numbers.at(-1)! },
    cutBytes: cutOff(tornTails),
    history: recoveredHistory(found, kept, { replay, graphs, late }),
  }
}

/** A history that begins anew lacks nothing. */
function recoveredHistory(
  found: FoundHistory,
  kept: number | undefined,
  { replay, graphs, late }: { replay: Replay; graphs: readonly Graph[]; late: readonly Frame[] },
): RecoveredHistory {
  if (kept === undefined) return { found, kept, lost: [], unnumbered: [] }
  const lost = late.length === 0 ? [] : new LostEvents([...graphs, ...replay.built.gone]).rowsAfter(kept, late)
  return { found, kept, lost, unnumbered: unnumbered(graphs, replay) }
}

/**
 * Reads the state file and builds its graphs meanwhile, so that memory never holds the whole file or all entries: graphs
 * that have ended from their short form if the state file has one, else all from their entries. If the file is not in the
 * form of `writeSnapshot`, because it was edited, reads it again as a whole.
 */
async function readState({ dataDir, mentions, keys, collections, refuse }: StateParts): Promise<Replay> {
  const addEntry = (replay: Replay) => (id: string, entry: StoredTask) => replay.addEntry(id, entry, refuse)
  const readings = [
    (replay: Replay) =>
      readShortForm(dataDir, {
        entry: addEntry(replay),
        ended: (graph, lastSeq) => replay.addEnded(graph, lastSeq, refuse),
      }),
    (replay: Replay) => {
      readSnapshotLines(dataDir, addEntry(replay))
      return true
    },
  ]
  for (const read of readings) {
    const replay = new Replay([...keys], collections, mentions)
    try {
      if (!read(replay)) continue
      replay.endEntries(refuse)
      return replay
    } catch (error) {
      if (error instanceof UsageError) throw error // for any other one, the next reading may do
    }
  }
  const entries = new Map<string, StoredTask>()
  await readSnapshot(dataDir, (id, entry) => entries.set(id, entry))
  const whole = new Replay([...keys], collections)
  for (const [id, entry] of entries) whole.addEntry(id, entry, refuse)
  whole.endEntries(refuse)
  return whole
}

interface StateParts {
  readonly dataDir: string
  readonly mentions: Mentions
  readonly keys: readonly KeptKey[]
  readonly collections: GcSchedule
  readonly refuse: (detail: string) => Error
}

const lostSnapshot = (dataDir: string, oldest: number) =>
  new UsageError(
    `the state file ${statePath(dataDir)} is gone, and ${segmentName(oldest)} holds only what came after it: ` +
      'put it back, or move the journal files away as well to begin anew',
  )
