/**
 * The history: past events on disk, in `<data-dir>/events-<number>.log`, beside the journal.
 *
 * A file holds the events with higher numbers than the one in its name, up to the number of the next file. Files
 * consist of journal frames of kind `h`. The payload `[first,last,count,rows]` holds the events of one write of the
 * journal.
 *
 * The history is derived from the journal, so it is written without a sync. A start adds the events that it lacks, and
 * removes those that the journal does not hold (`recovery.ts`). Before a snapshot removes segments of the journal, it
 * syncs the history and appends a frame without rows: a mark of the number up to which the journal was synced. If the
 * disk refuses a write, the history is dropped and begins anew, so it never has a gap.
 *
 * Memory holds the unwritten bytes and an index of the newest file, with an entry for each 64 KiB.
 */
import { closeSync, ftruncateSync, openSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, systemCodeOf } from '../../shared/contract/errors.ts'
import type { ServiceEvent } from '../../shared/contract/events.ts'
import type { Log } from '../../shared/logs/log.ts'
import { type EventRange, EventReader, HistoryGone } from './event-reader.ts'
import { type EventRow, rangeOf } from './event-rows.ts'
import { type FoundHistory, historyFileName, keptFrames } from './found-history.ts'
import { FrameBuffer } from './journal-format.ts'
import { syncData, writeAll } from './segment.ts'

/** Buffered bytes that trigger a write. A smaller buffer costs more system calls. */
const BUFFER_BYTES = 64 * 1024

/** Bytes between two entries of the index. */
const INDEX_STEP_BYTES = 64 * 1024

/** Maximum rows of a frame that `appendAll` writes. */
const MAX_FRAME_ROWS = 1_000

/** Milliseconds between a refused write and the next attempt to begin a history. */
const RETRY_MS = 1_000

/** An index entry: events after `seq` begin at `offset`. */
interface Place {
  readonly seq: number
  readonly offset: number
}

interface HistoryFile {
  /** All events in the file have higher numbers. */
  readonly base: number
  /** Empty for files of earlier runs, which are read from the beginning. */
  readonly index: Place[]
}

export interface EventHistoryOptions {
  readonly dataDir: string
  readonly found: FoundHistory
  /** The last number to keep of the found files. Undefined: the history begins anew at `lastSeq`. */
  readonly kept: number | undefined
  readonly lastSeq: number
  /** Minimum number of events to keep. */
  readonly maxEvents: number
  readonly log: Log
}

export class EventHistory {
  readonly #dataDir: string
  readonly #maxEvents: number
  readonly #log: Log
  readonly #frames = new FrameBuffer()
  /** Oldest first. Events are appended to the last one. */
  #files: HistoryFile[]
  /** Undefined while the disk refuses the history. */
  #fd: number | undefined
  /** Bytes and events of the newest file, including buffered ones. */
  #length = 0
  #count = 0
  #last: number
  /** The number of the last mark. */
  #marked = 0
  #retryAt = 0
  #isClosed = false
  readonly #reader = new EventReader()

  constructor({ dataDir, found, kept, lastSeq, maxEvents, log }: EventHistoryOptions) {
    this.#dataDir = dataDir
    this.#maxEvents = maxEvents
    this.#log = log
    this.#last = kept ?? lastSeq
    this.#files = found.bases.map((base) => ({ base, index: [] }))
    if (kept === undefined) this.#begin()
    else this.#continue(found)
  }

  /** The number of the last event. */
  get last(): number {
    return this.#last
  }

  /** Whether the history has all events after `seq`. */
  reaches(seq: number): boolean {
    const oldest = this.#files[0]
    return oldest !== undefined && seq >= oldest.base && seq <= this.#last
  }

  /** The history has all events after this number. */
  get oldest(): number {
    return this.#files[0]?.base ?? this.#last
  }

  /** Continues the newest file behind its last valid frame. */
  #continue(found: FoundHistory): void {
    const newest = this.#files.at(-1)!
    const kept = keptFrames(found, this.#last)
    this.#length = kept.at(-1)?.end ?? 0
    let seq = newest.base
    let start = 0
    for (const { last, count, end } of kept) {
      this.#note(newest, seq, start)
      this.#count += count
      seq = last
      start = end
    }
    try {
      const fd = openSync(join(this.#dataDir, historyFileName(newest.base)), 'r+')
      this.#fd = fd
      ftruncateSync(fd, this.#length)
    } catch (error) {
      this.#drop(error)
    }
  }

  #note(file: HistoryFile, seq: number, offset: number): void {
    if (offset >= (file.index.at(-1)?.offset ?? 0) + INDEX_STEP_BYTES) file.index.push({ seq, offset })
  }

  /** Removes all files and begins anew. */
  #begin(): void {
    this.#removeFiles(this.#files.length)
    try {
      this.#startFile()
    } catch (error) {
      this.#drop(error)
    }
  }

  #beginAgain(): void {
    this.#begin()
    if (this.#fd !== undefined) this.#log.info('past events are kept again')
  }

  #startFile(): void {
    const base = this.#last
    const fd = openSync(join(this.#dataDir, historyFileName(base)), 'wx', 0o600)
    this.#close()
    this.#fd = fd
    this.#files.push({ base, index: [] })
    this.#length = 0
    this.#count = 0
  }

  #close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
  }

  #removeFiles(count: number): void {
    for (const { base } of this.#files.splice(0, count)) {
      try {
        unlinkSync(join(this.#dataDir, historyFileName(base)))
      } catch (error) {
        if (systemCodeOf(error) !== 'ENOENT') this.#log.warn('cannot remove old events', { cause: messageOf(error) })
      }
    }
  }

  /** Removes all files after a failed write. Kept files would have a gap, and the journal needs the space more. */
  #drop(error: unknown): void {
    this.#log.warn('past events cannot be kept: streams can be resumed from now on only', { cause: messageOf(error) })
    this.#retryAt = performance.now() + RETRY_MS
    this.#close()
    this.#frames.clear()
    this.#removeFiles(this.#files.length)
  }

  /** Adds the events of one write of the journal. Their numbers are higher than those of all earlier events. */
  append(rows: readonly EventRow[]): void {
    if (rows.length === 0) return
    const { first, last, count } = rangeOf(rows)
    if (this.#fd === undefined && !this.#isClosed && performance.now() >= this.#retryAt) this.#beginAgain()
    if (this.#fd === undefined) {
      this.#last = last
      return
    }
    const file = this.#files.at(-1)!
    this.#note(file, this.#last, this.#length)
    this.#add(`[${first},${last},${count},${JSON.stringify(rows)}]`)
    this.#count += count
    this.#last = last
    if (this.#frames.length >= BUFFER_BYTES) this.flush()
  }

  #add(payload: string): void {
    const before = this.#frames.length
    this.#frames.add('h', [payload], 0)
    this.#length += this.#frames.length - before
  }

  /** As `append`, for any number of rows in order. */
  appendAll(rows: readonly EventRow[]): void {
    for (let from = 0; from < rows.length; from += MAX_FRAME_ROWS) this.append(rows.slice(from, from + MAX_FRAME_ROWS))
  }

  /** Writes the buffered frames. */
  flush(): void {
    const { length } = this.#frames
    if (this.#fd === undefined || length === 0) return
    try {
      writeAll(this.#fd, this.#frames.bytes, this.#length - length)
      this.#frames.clear()
    } catch (error) {
      this.#drop(error)
    }
  }

  /**
   * Syncs the history. Resolves when all events so far are on disk, or were dropped. Called before the journal removes
   * segments. The journal was synced up to the number `synced`. Starts a new file if the newest one is large.
   */
  async sync(synced?: number): Promise<void> {
    if (synced !== undefined && synced > this.#marked && this.#fd !== undefined) {
      this.#add(`[${synced},${synced},0,[]]`)
      this.#marked = synced
    }
    this.flush()
    const fd = this.#fd
    if (fd === undefined) return
    try {
      await syncData(fd)
      if (this.#fd === fd && this.#frames.length === 0 && synced === this.#last && this.#isLarge) this.#rotate()
    } catch (error) {
      if (this.#fd === fd) this.#drop(error)
    }
  }

  /**
   * Starts a new file if the newest one is large, without a sync: for a history that no start
   * continues.
   */
  trim(): void {
    if (!this.#isLarge || this.#fd === undefined) return
    this.flush()
    try {
      if (this.#fd !== undefined) this.#rotate()
    } catch (error) {
      this.#drop(error)
    }
  }

  get #isLarge(): boolean {
    return this.#count >= this.#maxEvents / 2
  }

  #rotate(): void {
    this.#startFile()
    // Each file but the newest one holds at least half of `maxEvents`.
    this.#removeFiles(Math.max(0, this.#files.length - 3))
  }

  /** Yields the events of `range` in parts. Throws `HistoryGone` if the history lacks some of them. */
  async *read(range: EventRange): AsyncGenerator<readonly ServiceEvent[]> {
    const { upTo } = range
    for (let seq = range.after; seq < upTo; ) {
      if (!this.reaches(seq)) throw new HistoryGone()
      this.flush()
      const at = this.#files.findLastIndex(({ base }) => base <= seq)
      const { base, index } = this.#files[at]!
      const next = this.#files[at + 1]
      const offset = index.findLast((place) => place.seq <= seq)?.offset ?? 0
      const parts = this.#reader.read(join(this.#dataDir, historyFileName(base)), offset, { ...range, after: seq })
      for await (const part of parts) {
        seq = part.seq
        if (part.events.length > 0) yield part.events
      }
      // The next file begins where this one ends. Otherwise this file is damaged.
      if (seq < upTo && (next === undefined || seq < next.base)) throw new HistoryGone()
    }
  }

  /** Syncs and closes the newest file. */
  async close(): Promise<void> {
    await this.sync()
    this.#isClosed = true
    this.#close()
  }
}
