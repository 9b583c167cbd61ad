/** The files of past events as a start finds them, and what of them it keeps. `event-history.ts` explains the files. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { rangeIn } from './event-reader.ts'
import { decodeSegment } from './journal-format.ts'

const NAME = /^events-(\d{16})\.log$/

/** Events in the file have higher numbers than `base`. */
export const historyFileName = (base: number): string => `events-${String(base).padStart(16, '0')}.log`

/** What a start finds, before it changes anything. */
export interface FoundHistory {
  readonly bases: readonly number[]
  /** The frames of the newest file, in order. */
  readonly frames: readonly { readonly last: number; readonly count: number; readonly end: number }[]
  /** The changes up to this number were synced, whatever the journal holds by now. */
  readonly synced: number
}

export function findHistory(dataDir: string): FoundHistory {
  const bases = readdirSync(dataDir)
    .flatMap((name) => NAME.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b)
  const newest = bases.at(-1)
  if (newest === undefined) return { bases, frames: [], synced: 0 }
  const frames = framesOf(join(dataDir, historyFileName(newest)))
  return { bases, frames, synced: frames.findLast(({ count }) => count === 0)?.last ?? newest }
}

function framesOf(path: string): FoundHistory['frames'] {
  const segment = decodeSegment(readOrNothing(path))
  if ('damagedAt' in segment) return []
  const frames: { last: number; count: number; end: number }[] = []
  for (const { payload, end } of segment.frames) {
    const range = rangeIn(payload)
    if (range === undefined) break
    frames.push({ last: range.last, count: range.count, end })
  }
  return frames
}

/** A file that cannot be read has no events. */
function readOrNothing(path: string): Uint8Array {
  try {
    return new Uint8Array(readFileSync(path))
  } catch {
    return new Uint8Array()
  }
}

/**
 * The last event to keep of what was found: the last one that is not after `seq`, the highest number that is known to
 * have been synced. Undefined if there is no history.
 */
export const lastKept = (found: FoundHistory, seq: number): number | undefined =>
  found.bases.length === 0 ? undefined : (keptFrames(found, seq).at(-1)?.last ?? found.bases.at(-1))

/** The frames with events, up to the first one that has an event after `seq`. */
export function keptFrames({ frames }: FoundHistory, seq: number): FoundHistory['frames'] {
  const end = frames.findIndex(({ last }) => last > seq)
  return (end < 0 ? frames : frames.slice(0, end)).filter(({ count }) => count > 0)
}
