/**
 * Reads past events from the files of the history, a block at a time.
 *
 * At most `MAX_READERS` callers have an open file and a block in memory at the same time. The others wait for their
 * turn before each block. So a thousand clients that resume together need no more memory than four. A caller that wants
 * one graph decodes only frames whose bytes contain the id of that graph.
 */
import { open } from 'node:fs/promises'
import type { ServiceEvent } from '../../shared/contract/events.ts'
import { nextTurn } from '../../shared/process/steps.ts'
import { type EventRow, eventsOf, isOfGraph } from './event-rows.ts'
import { decodeSegment } from './journal-format.ts'

/** Bytes of a block. Decoding a block takes about 2 ms. */
const READ_BYTES = 128 * 1024

/** Concurrent reads. More would not be faster: decoding is bound by the CPU. */
export const MAX_READERS = 4

/** Maximum bytes of a frame. Frames hold at most some thousand events. */
const MAX_FRAME_BYTES = 64 * 1024 * 1024

/** Thrown when the history no longer has the wanted events, or the disk does not give them. */
export class HistoryGone extends Error {}

export interface EventRange {
  /** The number before the first event. */
  readonly after: number
  /** The number of the last event. */
  readonly upTo: number
  /** Absent: events of all graphs. */
  readonly graphId?: string | undefined
  /** Absent: all rows are wanted. */
  readonly isWanted?: ((row: EventRow) => boolean) | undefined
}

export interface EventPart {
  /** In order. May be empty. */
  readonly events: readonly ServiceEvent[]
  /** The part ends with this number. */
  readonly seq: number
}

interface Block {
  readonly path: string
  readonly offset: number
  readonly size: number
}

export class EventReader {
  #readers = 0
  readonly #waiting: (() => void)[] = []

  /** Yields the events of `range` in the file `path`, from `offset` on. Throws `HistoryGone` if the file cannot be read. */
  async *read(path: string, offset: number, range: EventRange): AsyncGenerator<EventPart> {
    let size = READ_BYTES
    let seq = range.after
    for (let at = offset; seq < range.upTo; ) {
      const part = await this.#inTurn(() => partIn({ path, offset: at, size }, { ...range, after: seq }))
      if (part === undefined) return
      if (part.bytes > 0) {
        at += part.bytes
        seq = part.seq
        size = READ_BYTES
        yield part
      } else if (size > MAX_FRAME_BYTES) return
      else size *= 2 // the frame is larger than the block
    }
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#readers >= MAX_READERS) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#readers++
    try {
      await nextTurn()
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#readers--
      else next()
    }
  }
}

/** Reads a block. Returns its wanted events and the bytes of its whole frames; undefined at the end of the file. */
async function partIn(block: Block, range: EventRange): Promise<(EventPart & { bytes: number }) | undefined> {
  const segment = decodeSegment(await bytesOf(block))
  if ('damagedAt' in segment || (segment.wholeBytes === 0 && segment.end === 'whole')) return undefined
  const { upTo } = range
  const events: ServiceEvent[] = []
  let seq = range.after
  for (const { payload } of segment.frames) {
    const { first, last } = rangeIn(payload) ?? { first: 0, last: 0 }
    if (last <= seq) continue
    if (first > upTo) {
      seq = upTo // a number without an event
      break
    }
    for (const event of eventsOf(rowsIn(payload, range))) if (event.seq > seq && event.seq <= upTo) events.push(event)
    seq = Math.min(last, upTo)
  }
  return { events, seq, bytes: segment.wholeBytes }
}

async function bytesOf({ path, offset, size }: Block): Promise<Uint8Array> {
  try {
    await using file = await open(path, 'r')
    const bytes = new Uint8Array(size)
    const { bytesRead } = await file.read(bytes, 0, size, offset)
    return bytes.subarray(0, bytesRead)
  } catch (cause) {
    throw new HistoryGone('the history cannot be read', { cause })
  }
}

function rowsIn(payload: Uint8Array, { graphId, isWanted }: EventRange): readonly EventRow[] {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  if (graphId !== undefined && !bytes.includes(graphId)) return []
  const rows = JSON.parse(bytes.toString())[3] as EventRow[]
  const ofGraph = graphId === undefined ? rows : rows.filter((row) => isOfGraph(row, graphId))
  return isWanted === undefined ? ofGraph : ofGraph.filter(isWanted)
}

/** The numbers of a frame and the count of its events. Reads only the beginning of the payload. */
export function rangeIn(payload: Uint8Array): { first: number; last: number; count: number } | undefined {
  const found = /^\[(\d+),(\d+),(\d+),/.exec(String.fromCharCode(...payload.subarray(0, 64)))
  return found === null ? undefined : { first: Number(found[1]), last: Number(found[2]), count: Number(found[3]) }
}
