/**
 * Reads past events from the files of the history, a block at a time.
 *
 * At most `MAX_READERS` callers hold an open file and a block at the same time; the others wait for their turn before
 * each block. So a thousand clients that resume together need no more memory than a few. A caller that looks for one
 * graph decodes only the frames whose bytes contain the id of the graph.
 */
import { open } from 'node:fs/promises'
import type { ServiceEvent } from '../../shared/contract/events.ts'
import { nextTurn } from '../../shared/steps.ts'
import { type EventRow, eventsOf, isOfGraph } from './event-rows.ts'
import { decodeSegment } from './journal-format.ts'

/** Bytes that are read at a time: decoding them takes about 2 ms. */
const READ_BYTES = 128 * 1024

/** Callers that read at the same time. More would only share the processor. */
export const MAX_READERS = 4

/** Bytes of the largest frame that is looked for. A frame has the events of at most some thousand changes. */
const MAX_FRAME_BYTES = 64 * 1024 * 1024

/** The events to resume from are no longer kept. */
export class HistoryGone extends Error {}

export interface EventRange {
  /** The number before the first event. */
  readonly after: number
  /** The number of the last event. */
  readonly upTo: number
  /** Absent: of all graphs. */
  readonly graphId?: string | undefined
  /** Absent: all rows are wanted. */
  readonly isWanted?: ((row: EventRow) => boolean) | undefined
}

export interface EventPart {
  /** In order; there may be none. */
  readonly events: readonly ServiceEvent[]
  /** All wanted events up to this number have been read. */
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

  /** The events of `range` in the file `path`, from `offset` on. Ends with the file. Throws `HistoryGone` if it is gone. */
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
      else size *= 2 // a frame larger than that
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

/** The wanted events of the frames in a block, and how many bytes these frames are. Undefined at the end of the file. */
async function partIn(block: Block, range: EventRange): Promise<(EventPart & { bytes: number }) | undefined> {
  const segment = decodeSegment(await bytesOf(block))
  if ('damagedAt' in segment || (segment.wholeBytes === 0 && segment.end === 'whole')) return undefined
  const { upTo } = range
  const events: ServiceEvent[] = []
  let seq = range.after
  for (const { payload } of segment.frames) {
    const { first, last } = rangeIn(payload) ?? { first: 0, last: 0 }
    if (last <= seq) continue
    if (first > upTo) break
    for (const event of eventsOf(rowsIn(payload, range))) if (event.seq > seq && event.seq <= upTo) events.push(event)
    seq = Math.min(last, upTo)
  }
  return { events, seq, bytes: segment.wholeBytes }
}

async function bytesOf({ path, offset, size }: Block): Promise<Uint8Array> {
  await using file = await open(path, 'r').catch(() => {
    throw new HistoryGone()
  })
  const bytes = new Uint8Array(size)
  const { bytesRead } = await file.read(bytes, 0, size, offset)
  return bytes.subarray(0, bytesRead)
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
