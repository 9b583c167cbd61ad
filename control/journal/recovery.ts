/**
 * Recovery: reads the state file and the journal at a start.
 *
 * Both are read and checked as a whole before anything is changed, and `replay.ts` combines them. A torn tail of a
 * segment is cut off. Any other damage ends the start.
 */
import { readdirSync, readFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../../shared/errors.ts'
import type { ProcessIdentity } from '../../shared/processes.ts'
import type { Graph, Task } from '../graph/graph.ts'
import { GcSchedule } from './gc-schedule.ts'
import type { KeptKey } from './idempotency.ts'
import { readIdempotencyKeys } from './idempotency-file.ts'
import { decodeSegment, type Frame } from './journal-format.ts'
import { Mentions } from './mentions.ts'
import { OutOfOrder, Replay } from './replay.ts'
import { FIRST_SEGMENT, segmentName, segmentNumber } from './segment.ts'
import { hasSnapshot, statePath } from './snapshot.ts'
import { NotLineByLine, readSnapshot, readSnapshotLines } from './snapshot-reader.ts'
import type { StoredTask } from './stored-task.ts'
import { refuseAccess, refuseFile } from './unreadable-file.ts'

export interface Recovered {
  readonly graphs: readonly Graph[]
  /** Processes of attempts that a crash interrupted. Some may still run. */
  readonly processes: readonly ProcessIdentity[]
  /** Cancelled tasks whose attempts another service may not have ended yet. */
  readonly toKillRemotely: readonly Task[]
  /** Oldest first. The later of two with the same name counts. */
  readonly idempotencyKeys: readonly KeptKey[]
  /** The highest numbers given out so far. */
  readonly lastSeq: number
  readonly lastOrdinal: number
  /** Numbers of the oldest and the newest segment; undefined if there are none. */
  readonly segments: { readonly oldest: number; readonly newest: number } | undefined
  /** Bytes of torn tails that were cut off. */
  readonly cutBytes: number
}

/** The files that hold inputs of tasks: the state file and the segments of the journal. */
export const filesWithInput = (dataDir: string): string[] => [
  statePath(dataDir),
  ...readdirSync(dataDir)
    .filter((name) => segmentNumber(name) !== undefined)
    .map((name) => join(dataDir, name)),
]

/** Throws `UsageError` with the file, the place and a remedy, and then has changed nothing. */
export async function recover(dataDir: string): Promise<Recovered> {
  const idempotencyKeys = readIdempotencyKeys(dataDir)
  const numbers = readdirSync(dataDir)
    .map(segmentNumber)
    .filter((number) => number !== undefined)
    .sort((a, b) => a - b)
  // A segment is removed only when a state file holds its content: without a state file the first segment must exist.
  if (numbers.length > 0 && numbers[0] !== FIRST_SEGMENT && !hasSnapshot(dataDir))
    throw lostSnapshot(dataDir, numbers[0]!)
  const mentions = new Mentions()
  const hasState = hasSnapshot(dataDir)
  const cuts: { path: string; length: number; torn: number }[] = []
  const frames: [frame: Frame, refuse: (detail: string) => Error][] = []
  for (const number of numbers) {
    const path = join(dataDir, segmentName(number))
    const bytes = readSegment(path)
    const segment = decodeSegment(bytes)
    const refuse = refuseFile('journal', path)
    if ('damagedAt' in segment) {
      throw refuse(`it is damaged at offset ${segment.damagedAt}, before records that were on disk for sure`)
    }
    for (const frame of segment.frames) {
      if (hasState) mentions.add(frame)
      frames.push([frame, refuse])
    }
    if (segment.end === 'torn') cuts.push({ path, length: segment.wholeBytes, torn: bytes.length - segment.wholeBytes })
  }
  const collections = new GcSchedule()
  const refuseState = refuseFile('state file', statePath(dataDir))
  const replay = await readState({ dataDir, mentions, keys: idempotencyKeys, collections, refuse: refuseState })
  for (const [frame] of frames) replay.note(frame)
  for (const [frame, refuse] of frames) replay.apply(frame, refuse)
  frames.length = 0 // the bytes of the segments: the graphs are built without them
  const graphs = replay.graphs(refuseState)
  if (collections.hasCollected) Bun.gc(true)
  for (const { path, length } of cuts) truncateSync(path, length)
  const { lastSeq, lastOrdinal, processes, toKillRemotely } = replay
  const segments = numbers.length === 0 ? undefined : { oldest: numbers[0]!, newest: numbers.at(-1)! }
  return {
    graphs,
    processes,
    toKillRemotely,
    idempotencyKeys: replay.idempotencyKeys,
    lastSeq,
    lastOrdinal,
    segments,
    cutBytes: cuts.reduce((sum, { torn }) => sum + torn, 0),
  }
}

/**
 * Reads the state file in parts and builds its graphs meanwhile, so that neither the file nor all entries are in memory
 * at once. If somebody has edited the file, so that it is no longer as `writeSnapshot` writes it, reads it again as a
 * whole.
 */
async function readState({ dataDir, mentions, keys, collections, refuse }: StateParts): Promise<Replay> {
  const replay = new Replay([...keys], collections, mentions)
  try {
    readSnapshotLines(dataDir, (id, entry) => replay.addEntry(id, entry, refuse))
    replay.endEntries(refuse)
    return replay
  } catch (error) {
    if (!(error instanceof OutOfOrder || error instanceof NotLineByLine)) throw error
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

function readSegment(path: string): Uint8Array {
  try {
    return new Uint8Array(readFileSync(path))
  } catch (error) {
    throw refuseAccess('journal', path, error)
  }
}
