/** Reads and checks the segments of the journal at a start. Only `truncateTails` changes files. */
import { readdirSync, readFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { decodeSegment, type Frame } from './journal-format.ts'
import { segmentName, segmentNumber } from './segment.ts'
import { refuseAccess, refuseFile } from './unreadable-file.ts'

/** A frame. `refuse` makes an error that names the file of the frame. */
export interface ReadFrame {
  readonly frame: Frame
  readonly refuse: (detail: string) => Error
}

export interface TornTail {
  readonly path: string
  /** Bytes of whole frames before the tail. */
  readonly length: number
  /** Bytes of the tail. */
  readonly torn: number
}

export interface ReadJournal {
  /** In the order in which they were written. */
  readonly frames: ReadFrame[]
  readonly tornTails: readonly TornTail[]
}

/** Numbers of the segments in `dataDir`, oldest first. */
export const segmentNumbersIn = (dataDir: string): number[] =>
  readdirSync(dataDir)
    .map(segmentNumber)
    .filter((number) => number !== undefined)
    .sort((a, b) => a - b)

/** Reads the segments with these `numbers`. Throws `UsageError` for a damaged or unreadable one. */
export function readJournal(dataDir: string, numbers: readonly number[]): ReadJournal {
  const frames: ReadFrame[] = []
  const tornTails: TornTail[] = []
  for (const number of numbers) {
    const path = join(dataDir, segmentName(number))
    const bytes = readSegment(path)
    const segment = decodeSegment(bytes)
    const refuse = refuseFile('journal', path)
    if ('damagedAt' in segment) {
      throw refuse(`it is damaged at offset ${segment.damagedAt}, before records that were on disk for sure`)
    }
    for (const frame of segment.frames) frames.push({ frame, refuse })
    const { wholeBytes: length, end } = segment
    if (end === 'torn') tornTails.push({ path, length, torn: bytes.length - length })
  }
  return { frames, tornTails }
}

function readSegment(path: string): Uint8Array {
  try {
    return new Uint8Array(readFileSync(path))
  } catch (error) {
    throw refuseAccess('journal', path, error)
  }
}

/** Cuts off the tails. Returns their total bytes. */
export function truncateTails(tails: readonly TornTail[]): number {
  for (const { path, length } of tails) truncateSync(path, length)
  return tails.reduce((sum, { torn }) => sum + torn, 0)
}
