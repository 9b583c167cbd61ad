/**
 * What changed since the state file was written, on disk before anybody is told.
 *
 * Frames go to the newest of the segments `journal-<number>.log` with a plain write, in order: from then on they survive
 * the end of the process. `sync` makes them survive the end of the machine: all who wait share one `fdatasync`, which
 * runs beside the event loop (group commit). What nobody needs before it is synced is appended: it is written together
 * with all else that is appended until the next sync begins, which is at the earliest when the event loop has seen to all
 * sockets that were ready. A snapshot begins with a new segment; once the state file is in place the older ones go.
 * A large frame is written aside and becomes a segment of its own, between the one before and a new one.
 *
 * When the disk does not take a write, what was written of it is cut off again, callers are told (503) and nothing of
 * theirs is kept; outcomes of tasks stay in memory and are written when the disk has room again. After a failed sync the
 * segment is not trusted any more: only a new segment and a whole new state file end that condition. After each sync the
 * data directory is looked at (`shared/held-directory.ts`): once it is lost, only a restart of the service ends that condition.
 */
import { closeSync, fdatasync, openSync, readdirSync, renameSync, rmSync, unlinkSync, writeSync } from 'node:fs'
import { unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { syncDirectory } from '../../shared/atomic-file.ts'
import { messageOf, ServiceError, systemCodeOf } from '../../shared/errors.ts'
import { DataDirectoryLost, HeldDirectory } from '../../shared/held-directory.ts'
import type { Log } from '../../shared/log.ts'
import { nextTurn } from '../../shared/steps.ts'
import { FrameBuffer, type FrameKind } from './journal-format.ts'
import { type LargeFrame, writeLargeFrame } from './large-frame.ts'
import { Preallocation } from './preallocation.ts'

/** Number of the first segment of a data directory. */
export const FIRST_SEGMENT = 1

export const segmentName = (number: number): string => `journal-${String(number).padStart(10, '0')}.log`

/** Names of large frames that are being written. A start removes what a crash left of them. */
const ASIDE_NAME = /^journal-large-\d+\.new$/

/** The number in the name of a segment, or undefined for other files. */
export const segmentNumber = (name: string): number | undefined => {
  const match = /^journal-(\d{10})\.log$/.exec(name)
  return match === null ? undefined : Number(match[1])
}

/** What a caller is told whose request was carried out, while the disk may not keep that. */
export const durabilityUnknown = (cause: unknown): ServiceError =>
  new ServiceError(503, `this was done, but a crash may undo it: ${messageOf(cause)}; repeat the request later`, {
    cause,
  })

/** What a caller is told while the disk does not keep what we would have to acknowledge. */
export const storageUnavailable = (cause: unknown): ServiceError =>
  new ServiceError(503, `cannot keep this on disk now: ${messageOf(cause)}; nothing was stored, try again later`, {
    cause,
  })

/** What was appended could not be written: nothing of it is in the journal. `cause` is what the disk said. */
export class NotWritten extends Error {
  override name = 'NotWritten'
}

/** Bytes of appended frames that wait for the next sync. More are written at once: they need no company, but memory. */
const MAX_APPENDED_BYTES = 1024 * 1024

/** Bytes of a frame from which it is written aside: 5 ms to copy, sum and write at once. */
export const LARGE_FRAME_BYTES = 4 * 1024 * 1024

/** What a sync is taken to last before there was one, and how much longer than those before it one may seem to last. */
const FIRST_SYNC_MS = 1
const SLOWER_SYNC = 1.1

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
  readonly #directory: HeldDirectory
  readonly #log: Log
  readonly #frame = new FrameBuffer()
  /** What is to be written with the next sync, and who waits for that. */
  readonly #appended = new FrameBuffer()
  #appenders: Waiting[] = []
  readonly #syncFile: (fd: number) => Promise<void>
  #oldestSegment: number
  #segment: number
  #fd: number
  #preallocation: Preallocation
  /** Bytes in the newest segment, and how many of them are known to be on disk. */
  #length = 0
  #synced = 0
  /** Bytes of segments with one large frame since the last segment that a snapshot began. */
  #largeBytes = 0
  /** Large frames so far. */
  #largeFrames = 0
  /** A large frame became a segment, and its new name is not on disk yet. */
  #isRenameUnsynced = false
  /** Older segments that still have to be synced. */
  #unsynced: number[] = []
  #waiting: Waiting[] = []
  #isSyncing = false
  /** When the first of those came that wait for a sync which has not begun; undefined while there are none. */
  #collectingSince: number | undefined
  /** Milliseconds that a sync takes. What is measured holds the time until the event loop comes back to it, too. */
  #syncMs = FIRST_SYNC_MS
  /** The newest segment when a sync failed: nothing is acknowledged until a snapshot makes up for it. */
  #distrusted: number | undefined
  #lost: DataDirectoryLost | undefined
  #isClosed = false

  constructor({ dataDir, oldestSegment, firstSegment, log, syncFile = fdatasyncFile }: JournalOptions) {
    this.#syncFile = syncFile
    this.#dataDir = dataDir
    this.#directory = new HeldDirectory(dataDir)
    this.#log = log
    for (const name of readdirSync(dataDir)) if (ASIDE_NAME.test(name)) unlinkSync(join(dataDir, name))
    this.#oldestSegment = oldestSegment
    this.#segment = firstSegment
    this.#fd = this.#open(firstSegment)
    this.#preallocation = new Preallocation(this.#fd)
  }

  /** Bytes in the newest segment. */
  get length(): number {
    return this.#length
  }

  /** Bytes in the journal since the last snapshot began. */
  get size(): number {
    return this.#length + this.#largeBytes
  }

  /** True until a snapshot has made up for a failed sync. */
  get isDistrusted(): boolean {
    return this.#distrusted !== undefined
  }

  /** Why nothing can be acknowledged; undefined when all is well. */
  get fault(): Error | undefined {
    if (this.#isClosed) return stopped()
    if (this.#lost !== undefined) return this.#lost
    return this.isDistrusted ? new Error('the disk failed to sync') : undefined
  }

  /** True once the data directory was found deleted or replaced, and once closed: no write reaches a restart. */
  get isLost(): boolean {
    return this.#lost !== undefined || this.#isClosed
  }

  /** True once closed: the number of its descriptor may be that of another file by now. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Throws when the data directory is not there any more, or cannot be asked for. */
  checkDirectory(): void {
    if (this.isLost) throw this.fault
    try {
      this.#directory.check(this.#fd)
    } catch (error) {
      if (error instanceof DataDirectoryLost) {
        this.#lost = error
        this.#log.error(error.message, { data_dir: this.#dataDir })
      }
      throw error
    }
  }

  /** Writes a frame whose payload is `parts`, all of it or nothing. Throws what the disk said. */
  write(kind: FrameKind, parts: readonly (string | Uint8Array)[]): void {
    this.#writeAppended()
    this.#frame.add(kind, parts, this.#synced)
    this.#writeAll(this.#frame)
  }

  /**
   * Writes a frame with the next sync; resolves when it is on disk. Rejects with `NotWritten`, or, when it may have been
   * written but cannot be said to be on disk, with the reason for that.
   */
  append(kind: FrameKind, parts: readonly (string | Uint8Array)[]): Promise<void> {
    const { fault } = this
    if (fault !== undefined) return Promise.reject(fault)
    if (parts.reduce((sum, part) => sum + part.length, 0) >= LARGE_FRAME_BYTES)
      return this.#appendLarge({ kind, parts })
    this.#appended.add(kind, parts, this.#synced)
    return new Promise((resolve, reject) => {
      this.#appenders.push({ resolve, reject })
      if (this.#appended.length > MAX_APPENDED_BYTES) this.#writeAppended()
      this.#startSyncing()
    })
  }

  async #appendLarge(frame: LargeFrame): Promise<void> {
    const aside = join(this.#dataDir, `journal-large-${++this.#largeFrames}.new`)
    const size = await notWritten(async () => {
      this.checkDirectory()
      return writeLargeFrame(aside, frame, this.#syncFile)
    })
    const { fault } = this // which came meanwhile
    if (fault !== undefined) {
      if (this.#lost === undefined) rmSync(aside, { force: true })
      throw fault
    }
    await notWritten(() => this.#insertSegment(aside, size))
    await this.sync()
  }

  /** Makes the file `aside` the segment behind the newest one, and goes on in another one behind that. */
  #insertSegment(aside: string, size: number): void {
    try {
      this.checkDirectory()
      this.#writeAppended()
      const next = this.#open(this.#segment + 2)
      try {
        renameSync(aside, join(this.#dataDir, segmentName(this.#segment + 1)))
      } catch (error) {
        closeSync(next)
        unlinkSync(join(this.#dataDir, segmentName(this.#segment + 2)))
        throw error
      }
      this.#goOnIn(next, this.#segment + 2)
      this.#largeBytes += size
      this.#isRenameUnsynced = true
    } catch (error) {
      if (this.#lost === undefined) rmSync(aside, { force: true })
      throw error
    }
  }

  #goOnIn(fd: number, segment: number): void {
    if (this.isDistrusted) closeSync(this.#fd)
    else this.#unsynced.push(this.#fd)
    this.#fd = fd
    this.#preallocation = new Preallocation(fd)
    this.#segment = segment
    this.#length = 0
    this.#synced = 0
  }

  #writeAppended(): void {
    if (this.#appenders.length === 0) return
    const appenders = this.#appenders
    this.#appenders = []
    try {
      this.#writeAll(this.#appended)
      for (const appender of appenders) this.#waiting.push(appender)
    } catch (cause) {
      for (const { reject } of appenders) reject(new NotWritten(messageOf(cause), { cause }))
    }
  }

  /** All or nothing. */
  #writeAll(frames: FrameBuffer): void {
    if (this.#isClosed) {
      frames.clear()
      throw stopped()
    }
    const before = this.#length
    try {
      const { bytes } = frames
      for (let written = 0; written < bytes.length; ) {
        const count = writeSync(this.#fd, bytes, written, bytes.length - written, this.#length)
        written += count
        this.#length += count
      }
      this.#preallocation.follow(this.#length)
    } catch (error) {
      // Half a frame with whole ones behind it would be damage, not a torn tail.
      this.#length = before
      this.#preallocation.cut(before)
      throw error
    } finally {
      frames.clear()
    }
  }

  /** Resolves when all that was written before this call is on disk; rejects when that cannot be said. */
  sync(): Promise<void> {
    const { fault } = this
    if (fault !== undefined) return Promise.reject(fault)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      this.#startSyncing()
    })
  }

  /**
   * After what this turn of the event loop still brings in: of 32 requests that arrive together the first would otherwise
   * have a sync of its own, and the rest would wait for it. But when collecting them takes longer than a sync does, that
   * is begun in the middle: on a fast disk it is done by the time that the rest is collected (with 32 clients 6 % more
   * graphs per second).
   */
  #startSyncing(): void {
    if (this.#isSyncing) return
    if (this.#collectingSince === undefined) {
      this.#collectingSince = performance.now()
      setImmediate(() => this.#endCollecting())
    } else if (performance.now() - this.#collectingSince > this.#syncMs) this.#endCollecting()
  }

  #endCollecting(): void {
    if (this.#collectingSince === undefined) return
    this.#collectingSince = undefined
    this.#isSyncing = true
    void this.#syncWaiting()
  }

  async #syncWaiting(): Promise<void> {
    for (;;) {
      this.#writeAppended()
      if (this.#waiting.length === 0) break
      const served = this.#waiting
      const older = this.#unsynced
      const [current, length] = [this.#fd, this.#length] // a new segment may begin while we wait
      this.#waiting = []
      this.#unsynced = []
      try {
        const begin = performance.now()
        for (const fd of older) await this.#syncFile(fd)
        await this.#syncFile(current)
        if (this.#isRenameUnsynced) await this.#syncRename()
        this.checkDirectory()
        this.#syncMs = Math.min(performance.now() - begin, this.#syncMs * SLOWER_SYNC)
        if (current === this.#fd) this.#synced = length
        for (const { resolve } of served) resolve()
      } catch (error) {
        if (!this.isLost) this.#distrust(error)
        for (const { reject } of [...served, ...this.#waiting, ...this.#appenders]) reject(error)
        this.#waiting = []
        this.#appenders = []
        this.#appended.clear()
      }
      for (const fd of older) closeSync(fd)
    }
    this.#isSyncing = false
  }

  async #syncRename(): Promise<void> {
    this.#isRenameUnsynced = false
    await syncDirectory(this.#dataDir)
  }

  /** Nothing is acknowledged any more until a snapshot holds all that was written until now. */
  #distrust(error: unknown): void {
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
    this.#writeAppended()
    if (this.#length > 0 || this.#distrusted === this.#segment) {
      this.#goOnIn(this.#open(this.#segment + 1), this.#segment + 1)
    }
    this.#largeBytes = 0
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

  /** Ends the writing: from then on nothing is taken, as `fault` says. A segment without a frame is removed. */
  async close(): Promise<void> {
    await this.sync().catch(() => {})
    while (this.#isSyncing || this.#collectingSince !== undefined) await nextTurn()
    this.#isClosed = true
    this.#preallocation.cut(this.#length)
    closeSync(this.#fd)
    this.#directory.close()
    if (this.#length === 0) await unlink(join(this.#dataDir, segmentName(this.#segment)))
  }

  #open(number: number): number {
    return openSync(join(this.#dataDir, segmentName(number)), 'wx', 0o600)
  }
}

/** What `work` gives. What it throws becomes the cause of a `NotWritten`. */
async function notWritten<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    throw new NotWritten(messageOf(cause), { cause })
  }
}

const stopped = (): Error => new Error('the service is stopping')

const fdatasyncFile = (fd: number): Promise<void> =>
  new Promise((resolve, reject) => fdatasync(fd, (error) => (error ? reject(error) : resolve())))
