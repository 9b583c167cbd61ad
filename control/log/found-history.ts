/** Finds the files of the history at a start, and decides how much of them to keep (`event-history.ts`). */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { rangeIn } from './event-reader.ts'
import { decodeSegment } from './journal-format.ts'

const NAME = /^events-(\d{16})\.log$/

/** Events in the file have higher numbers than `base`. */
export const historyFileName = (base: number): string => `events-${String(base).padStart(16, '0')}.log`

/** The history before the start changes anything. */
export interface FoundHistory {
  readonly bases: readonly number[]
  /** The frames of the newest file, in order. */
  readonly frames: readonly { readonly last: number; readonly count: number; readonly end: number }[]
  /** Changes up to this number were synced, even if the journal no longer holds them. */
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

/** Returns no bytes for a file that cannot be read. */
function readOrNothing(path: string): Uint8Array {
  try {
    return new Uint8Array(readFileSync(path))
  } catch {
    return new Uint8Array()
  }
}

/**
 * The number of the last event to keep. Later events than `seq`, the highest number known to be synced, are not kept.
 * Undefined if there is no history.
 */
export const lastKept = (found: FoundHistory, seq: number): number | undefined =>
  found.bases.length === 0 ? undefined : (keptFrames(found, seq).at(-1)?.last ?? found.bases.at(-1))

/** The frames before the first one with an event after `seq`, without marks. */
export function keptFrames({ frames }: FoundHistory, seq: number): FoundHistory['frames'] {
  const end = frames.findIndex(({ last }) => last > seq)
  return (end < 0 ? frames : frames.slice(0, end)).filter(({ count }) => count > 0)
}
