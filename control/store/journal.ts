/**
 * What changed since the state file was written, on disk before anybody is told.
 *
 * Frames go to the newest of the segments `journal-<number>.log` with a plain write, in order: from then on they survive
 * the end of the process. `sync` makes them survive the end of the machine: all who wait share one `fdatasync`, which
 * runs beside the event loop (group commit). A snapshot begins with a new segment; once the state file is in place the
 * older ones go.
 *
 * When the disk does not take a write, what was written of it is cut off again, callers are told (503) and nothing of
 * theirs is kept; outcomes of tasks stay in memory and are written when the disk has room again. After a failed sync the
 * segment is not trusted any more: only a new segment and a whole new state file end that condition.
 */
import { closeSync, fdatasync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { syncDirectory } from '../../shared/atomic-file.ts'
import { messageOf, ServiceError, systemCodeOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { nextTurn } from '../../shared/slices.ts'
import { FrameEncoder, type FrameKind } from './journal-format.ts'

export const segmentName = (number: number): string => `journal-${String(number).padStart(10, '0')}.log`

/** The number in the name of a segment, or undefined for other files. */
export const segmentNumber = (name: string): number | undefined => {
  const match = /^journal-(\d{10})\.log$/.exec(name)
  return match === null ? undefined : Number(match[1])
}

/** What a caller is told whose request was carried out, while the disk may not keep that. */
export const notSurelyKept = (cause: unknown): ServiceError =>
  new ServiceError(503, `this was done, but a crash may undo it: ${messageOf(cause)}; repeat the request later`, {
    cause,
  })

/** What a caller is told while the disk does not keep what we would have to acknowledge. */
export const notKept = (cause: unknown): ServiceError =>
  new ServiceError(503, `cannot keep this on disk now: ${messageOf(cause)}; nothing was stored, try again later`, {
    cause,
  })

export interface JournalOptions {
  readonly dataDir: string
  /** Number of the oldest segment in the directory; it and those after it stay until a snapshot replaces them. */
  readonly oldestSegment: number
  /** Number of the first segment to write. */
  readonly firstSegment: number
  readonly log: Log
  /** Puts what was written to a file on disk. Default: `fdatasync`, beside the event loop. */
  readonly syncFile?: (fd: number) => Promise<void>
}

type Waiting = { readonly resolve: () => void; readonly reject: (error: unknown) => void }

export class Journal {
  readonly #dataDir: string
  readonly #log: Log
  readonly #encoder = new FrameEncoder()
  readonly #syncFile: (fd: number) => Promise<void>
  #oldestSegment: number
  #segment: number
  #fd: number
  /** Bytes in the newest segment, and how many of them are known to be on disk. */
  #length = 0
  #synced = 0
  /** Older segments that still have to be synced. */
  #unsynced: number[] = []
  #waiting: Waiting[] = []
  #isSyncing = false
  /** The newest segment when a sync failed: nothing is acknowledged until a snapshot makes up for it. */
  #distrusted: number | undefined

  constructor({ dataDir, oldestSegment, firstSegment, log, syncFile = fdatasyncFile }: JournalOptions) {
    this.#syncFile = syncFile
    this.#dataDir = dataDir
    this.#log = log
    this.#oldestSegment = oldestSegment
    this.#segment = firstSegment
    this.#fd = this.#open(firstSegment)
  }

  /** Bytes in the newest segment. */
  get length(): number {
    return this.#length
  }

  /** True until a snapshot has made up for a failed sync. */
  get isDistrusted(): boolean {
    return this.#distrusted !== undefined
  }

  /** Writes a frame whose payload is `parts`, all of it or nothing. Throws what the disk said. */
  write(kind: FrameKind, parts: readonly (string | Uint8Array)[]): void {
    const before = this.#length
    try {
      this.#writeAll(this.#encoder.encode(kind, parts, this.#synced))
    } catch (error) {
      // Half a frame with whole ones behind it would be damage, not a torn tail.
      this.#length = before
      ftruncateSync(this.#fd, before)
      throw error
    }
  }

  #writeAll(bytes: Uint8Array): void {
    for (let written = 0; written < bytes.length; ) {
      const count = writeSync(this.#fd, bytes, written, bytes.length - written, this.#length)
      written += count
      this.#length += count
    }
  }

  /** Resolves when all that was written before this call is on disk; rejects when that cannot be said. */
  sync(): Promise<void> {
    if (this.isDistrusted) return Promise.reject(new Error('an earlier sync of the journal failed'))
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      if (!this.#isSyncing) void this.#syncWaiting()
    })
  }

  async #syncWaiting(): Promise<void> {
    this.#isSyncing = true
    while (this.#waiting.length > 0) {
      const served = this.#waiting
      const older = this.#unsynced
      const [current, length] = [this.#fd, this.#length] // a new segment may begin while we wait
      this.#waiting = []
      this.#unsynced = []
      try {
        for (const fd of older) await this.#syncFile(fd)
        await this.#syncFile(current)
        if (current === this.#fd) this.#synced = length
        for (const { resolve } of served) resolve()
      } catch (error) {
        this.distrust(error)
        for (const { reject } of [...served, ...this.#waiting]) reject(error)
        this.#waiting = []
      }
      for (const fd of older) closeSync(fd)
    }
    this.#isSyncing = false
  }

  /** Nothing is acknowledged any more until a snapshot holds all that was written until now. */
  distrust(error: unknown): void {
    if (!this.isDistrusted) {
      const cause = messageOf(error)
      this.#log.error('the journal cannot be relied on until the state file is written anew', { cause })
    }
    this.#distrusted = this.#segment
  }

  /**
   * Goes on in a new segment; gives its number once those before it are on disk, as far as they ever will be. One in which
   * nothing was written yet, and which nothing was lost in, is as good as new.
   */
  async startSegment(): Promise<number> {
    if (this.#length > 0 || this.#distrusted === this.#segment) {
      const next = this.#open(this.#segment + 1)
      if (this.isDistrusted) closeSync(this.#fd)
      else this.#unsynced.push(this.#fd)
      this.#fd = next
      this.#segment++
      this.#length = 0
      this.#synced = 0
    }
    const number = this.#segment
    await this.sync().catch(() => {})
    return number
  }

  /** A snapshot that began after segment `number` was started is in place: what was before is not needed any more. */
  async dropSegmentsBefore(number: number): Promise<void> {
    for (; this.#oldestSegment < number; this.#oldestSegment++) {
      await unlink(join(this.#dataDir, segmentName(this.#oldestSegment))).catch((error) => {
        if (systemCodeOf(error) !== 'ENOENT') throw error
      })
    }
    await syncDirectory(this.#dataDir)
    if (this.#distrusted !== undefined && this.#distrusted < number) this.#distrusted = undefined
  }

  /** Ends the writing. A segment without a frame goes. */
  async close(): Promise<void> {
    await this.sync().catch(() => {})
    while (this.#isSyncing) await nextTurn()
    closeSync(this.#fd)
    if (this.#length === 0) await unlink(join(this.#dataDir, segmentName(this.#segment)))
  }

  #open(number: number): number {
    return openSync(join(this.#dataDir, segmentName(number)), 'wx', 0o600)
  }
}

const fdatasyncFile = promisify(fdatasync)
