/**
 * Recovery: reads the log at a start: the packs, then the segments of the journal after them.
 *
 * The state file is read only where there is no log, or one of an earlier version, whose segments come after the state file.
 * All files are read and checked before any is changed. `replay.ts` combines them. A torn tail of a segment is cut off. Any
 * other damage ends the start.
 */
import { join } from 'node:path'
import { UsageError } from '../../shared/contract/errors.ts'
import type { ProcessIdentity } from '../../shared/process/processes.ts'
import { StartProgress } from '../../shared/process/start-progress.ts'
import { runCooperatively, START_SLICE_MS, type Steps } from '../../shared/process/steps.ts'
import type { Graph, Task } from '../task/graph.ts'
import { NOTES_FORMAT, NUMBERS_FORMAT, PACKS_FORMAT, refuseNewerFormat } from './data-format.ts'
import type { EventRow, NumberedChange } from './event-rows.ts'
import { type FoundHistory, findHistory, lastKept } from './found-history.ts'
import { GcSchedule } from './gc-schedule.ts'
import type { Frame } from './journal-format.ts'
import { type ReadFrame, readJournal, segmentNumbersIn, truncateTails } from './journal-reader.ts'
import { graphOrdinalIn } from './journaled-graph.ts'
import { LostEvents, unnumbered } from './lost-events.ts'
import { Mentions } from './mentions.ts'
import type { Notes } from './notes.ts'
import { framesOfPack } from './pack-reader.ts'
import { PackedGraphs } from './packed-graphs.ts'
import { type Pack, type PackedGraph, type PackRange, packName, packsIn } from './packs.ts'
import { Replay } from './replay.ts'
import { FIRST_SEGMENT, segmentName } from './segment.ts'
import { readNumbers, readSideFiles, sideFiles } from './side-files.ts'
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
  readonly notes: Notes
  /** The highest numbers used so far. */
  readonly lastSeq: number
  readonly lastOrdinal: number
  /** Graphs that the next snapshot has to write. */
  readonly changed: readonly Graph[]
  /** Graphs of packs that are gone. */
  readonly gone: readonly PackedGraph[]
  readonly packs: readonly Pack[]
  /** Numbers of the oldest segment in the directory and of the newest one so far; undefined if there was none. */
  readonly segments: { readonly oldest: number; readonly newest: number } | undefined
  /** Whether the journal may hold changes that the state file lacks. */
  readonly isStateFileBehind: boolean
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

/** The files with inputs of tasks: the state file, the packs, the segments of the journal, and files of earlier formats. */
export const filesWithInput = (dataDir: string): string[] => [
  statePath(dataDir),
  ...sideFiles(dataDir),
  ...[...packsIn(dataDir).map(packName), ...segmentNumbersIn(dataDir).map(segmentName)].map((name) =>
    join(dataDir, name),
  ),
]

/**
 * Throws `UsageError`, which names the file, the place and a remedy. Then no file was changed. Others get a turn of the event loop
 * every `sliceMs`, but while a state file is read.
 */
export async function recover(
  dataDir: string,
  progress = new StartProgress(),
  sliceMs = START_SLICE_MS,
): Promise<Recovered> {
  const format = refuseNewerFormat(dataDir)
  const found = findHistory(dataDir)
  const present = segmentNumbersIn(dataDir)
  // Before the format was raised, a pack may lack what an older service has written since.
  const packs = format < PACKS_FORMAT ? [] : packsIn(dataDir)
  const packedTo = packs.at(-1)?.to ?? FIRST_SEGMENT - 1
  const numbers = present.filter((number) => number > packedTo)
  // The packs and segments replace the state file, unless there are none, or only segments of an earlier version.
  const isStateRead = packs.length === 0 && (format < PACKS_FORMAT || numbers.length === 0) && hasSnapshot(dataDir)
  if (!isStateRead) assertNoGap(dataDir, packs, numbers)
  const inputs = [
    ...(isStateRead ? [statePath(dataDir)] : []),
    ...[...packs.map(packName), ...numbers.map(segmentName)].map((name) => join(dataDir, name)),
  ]
  const bytes = inputs.reduce((sum, path) => sum + Bun.file(path).size, 0)
  if (bytes > COMPILED_BYTES) Bun.unsafe.setJITPolicy(1) // until now START_JIT_POLICY of scripts/build.ts
  progress.begin('reading the journal')
  const { frames, tornTails } = readJournal(dataDir, numbers)
  const mentions = new Mentions()
  if (isStateRead || packs.length > 0) for (const { frame } of frames) mentions.add(frame)
  const collections = new GcSchedule()
  const refuse = refuseFile(isStateRead ? 'state file' : 'log', isStateRead ? statePath(dataDir) : dataDir)
  const parts = { dataDir, mentions, collections, refuse, progress }
  const replay = isStateRead ? await readState(parts) : await runCooperatively(replayOfPacks(parts, packs), sliceMs)
  if (format < NOTES_FORMAT && !replay.notes.isPacked) readSideFiles(dataDir, replay.notes)
  if (format < NUMBERS_FORMAT && !replay.notes.of('numbers').size) readNumbers(dataDir, replay.notes)
  for (const { frame } of frames) replay.note(frame)
  progress.begin('replaying the journal', frames.length)
  const highest = await runCooperatively(applied(replay, frames, progress), sliceMs)
  const lastSeq = Math.max(replay.lastSeq, found.synced)
  const kept = lastKept(found, lastSeq)
  const late = kept === undefined ? [] : frames.flatMap(({ frame }, i) => (highest[i]! > kept ? frame : []))
  frames.length = 0 // frees the bytes of the segments before the graphs are built
  progress.begin('building graphs')
  const graphs = await runCooperatively(replay.graphsInSteps(refuse, late.length > 0), sliceMs)
  if (packs.length > 0) graphs.sort((a, b) => a.createdAt - b.createdAt || a.ordinal - b.ordinal)
  if (collections.hasCollected) Bun.gc(true)
  const { lastOrdinal, notes } = replay
  const { processes, toKillRemotely, toForget } = replay.built
  const newest = Math.max(packedTo, present.at(-1) ?? 0)
  return {
    ...{ graphs, processes, toKillRemotely, toForget, notes, lastSeq, lastOrdinal },
    ...unpacked(graphs, replay.packed),
    packs: withNeededBytes(dataDir, packs, [...graphs, ...replay.packed.values()]),
    segments: newest === 0 ? undefined : { oldest: present[0] ?? newest + 1, newest },
    isStateFileBehind: numbers.length > 0,
    cutBytes: truncateTails(tornTails),
    history: recoveredHistory(found, kept, { replay, graphs, late }),
  }
}

/** Throws if a pack or a segment is missing. Segments are removed only when a pack holds their content. */
function assertNoGap(dataDir: string, packs: readonly PackRange[], numbers: readonly number[]): void {
  let next = FIRST_SEGMENT
  for (const pack of packs) {
    if (pack.from !== next) throw gap(dataDir, packName(pack))
    next = pack.to + 1
  }
  if (numbers.length > 0 && numbers[0] !== next) throw gap(dataDir, segmentName(numbers[0]!))
}

/** The graphs that a snapshot has to write, and those in packs that are gone. */
function unpacked(graphs: readonly Graph[], packed: Map<number, PackedGraph>) {
  const changed: Graph[] = []
  for (const graph of graphs) {
    const place = packed.get(graph.ordinal)
    if (place === undefined && graph.pack > 0) continue
    changed.push(graph)
    if (place !== undefined) Object.assign(graph, { pack: place.pack, packBytes: place.packBytes })
    packed.delete(graph.ordinal)
  }
  return { changed, gone: [...packed.values()] }
}

const withNeededBytes = (dataDir: string, ranges: readonly PackRange[], graphs: readonly PackedGraph[]): Pack[] => {
  const packs = ranges.map((range) => ({ ...range, bytes: Bun.file(join(dataDir, packName(range))).size, needed: 0 }))
  const byNumber = new Map(packs.map((pack) => [pack.to, pack]))
  for (const { pack, packBytes } of graphs) if (pack > 0) byNumber.get(pack)!.needed += packBytes
  return packs
}

/**
 * Reads the packs, the newest first: of each graph only the frames of the newest pack that has it count. Builds graphs that the
 * journal does not mention, so that memory never holds all entries.
 */
function* replayOfPacks(parts: StateParts, packs: readonly PackRange[]): Steps<Replay> {
  const { dataDir, mentions, collections, progress } = parts
  const replay = new Replay(collections, mentions)
  const known = new Set<number>()
  for (const pack of packs.toReversed()) {
    const path = join(dataDir, packName(pack))
    progress.begin(`reading ${packName(pack)}`)
    const reader = new PackedGraphs(pack.to, replay, refuseFile('pack', path))
    for (const frame of framesOfPack(path)) {
      progress.count()
      yield
      if (frame.kind === 'n' && pack !== packs.at(-1)) continue
      if (frame.kind === 'c' && known.has(graphOrdinalIn(frame.payload))) continue
      reader.add(frame)
    }
    for (const ordinal of reader.end()) known.add(ordinal)
  }
  replay.endEntries(refuseFile('log', dataDir))
  return replay
}

/** Bytes of the graph of a frame that is decoded in one go, which takes less time. */
const SMALL_FRAME_BYTES = 256 * 1024

/** Applies the frames. Returns the highest number in each. */
function* applied(replay: Replay, frames: readonly ReadFrame[], progress: StartProgress): Steps<number[]> {
  const highest: number[] = []
  for (const { frame, refuse } of frames) {
    const isSmall = frame.payload.length < SMALL_FRAME_BYTES
    highest.push(isSmall ? replay.apply(frame, refuse) : yield* replay.applyInSteps(frame, refuse))
    progress.count()
    yield
  }
  return highest
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
 * Reads the state file and builds its graphs meanwhile, so that memory never holds the whole file or all entries. If the file is
 * not in the form of `writeSnapshot`, because it was edited, reads it again as a whole.
 */
async function readState({ dataDir, mentions, collections, refuse }: StateParts): Promise<Replay> {
  try {
    const replay = new Replay(collections, mentions)
    readSnapshotLines(dataDir, (id, entry) => replay.addEntry(id, entry, refuse))
    replay.endEntries(refuse)
    return replay
  } catch (error) {
    if (error instanceof UsageError) throw error // for any other one, the whole file may do
  }
  const entries = new Map<string, StoredTask>()
  await readSnapshot(dataDir, (id, entry) => entries.set(id, entry))
  const whole = new Replay(collections)
  for (const [id, entry] of entries) whole.addEntry(id, entry, refuse)
  whole.endEntries(refuse)
  return whole
}

interface StateParts {
  readonly dataDir: string
  readonly mentions: Mentions
  readonly collections: GcSchedule
  readonly progress: StartProgress
  readonly refuse: (detail: string) => Error
}

const gap = (dataDir: string, name: string) =>
  new UsageError(
    `what came before ${join(dataDir, name)} is gone, which holds only what came after it: ` +
      'put the missing pack or journal file back, or move all of them away to begin anew',
  )
