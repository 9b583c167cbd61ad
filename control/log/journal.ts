/**
 * The journal: the newest part of the log, all changes since the last snapshot. A change is on disk before a caller sees it.
 *
 * `write` appends a frame to the newest segment at once; the frame survives a kill of the process. `sync` makes frames
 * survive a power cut; one `fdatasync` serves all waiting callers (`group-commit.ts`). `append` is for frames that are
 * needed only once they are synced: they are buffered, and the next sync writes them together. A large frame gets a
 * file of its own, which becomes a segment between the newest one and a new one. A snapshot starts a new segment, and
 * removes the older ones once a pack has taken their place (`packs.ts`).
 *
 * If the disk refuses a write, the written part is cut off, callers get a 503, and their changes are dropped. Outcomes
 * of tasks stay in memory and are written once the disk has space again. After a failed sync the journal is distrusted,
 * because the kernel may have dropped unwritten pages. A new segment and a snapshot end the distrust. After each
 * sync the journal checks the data directory (`shared/files/held-directory.ts`). If the directory is lost, only a restart
 * helps.
 */
import { readdirSync, renameSync, rmSync, unlinkSync } from 'node:fs'
import { unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, systemCodeOf } from '../../shared/contract/errors.ts'
import { syncDirectory } from '../../shared/files/atomic-file.ts'
import type { DiskReserve } from '../../shared/files/disk-reserve.ts'
import { DataDirectoryLost, HeldDirectory } from '../../shared/files/held-directory.ts'
import type { Log } from '../../shared/logs/log.ts'
import { AppendBuffer } from './append-buffer.ts'
import { GroupCommit, type Waiter } from './group-commit.ts'
import { FrameBuffer, type FrameKind } from './journal-format.ts'
import { type LargeFrame, writeLargeFrame } from './large-frame.ts'
import { Segment, segmentName, syncData } from './segment.ts'
import { orNotWritten } from './storage-errors.ts'

/** Names of files with large frames that are not segments yet. A start removes those that a crash left. */
const LARGE_FRAME_FILE = /^journal-large-\d+\.new$/

/** Maximum bytes of buffered frames. A larger buffer uses memory and saves nothing. */
const MAX_APPENDED_BYTES = 1024 * 1024

/** Minimum bytes of a large frame. To copy, checksum and write that many would block the event loop for 5 ms. */
export const LARGE_FRAME_BYTES = 4 * 1024 * 1024

export interface JournalOptions {
  readonly dataDir: string
  /** Number of the oldest segment in the directory. Existing segments stay until a snapshot replaces them. */
  readonly oldestSegment: number
  /** Number of the first segment to write. */
  readonly firstSegment: number
  readonly log: Log
  /** Syncs the data of an open file. Default: `fdatasync`, beside the event loop. */
  readonly syncFile?: (fd: number) => Promise<void>
}

export class Journal {
  readonly #dataDir: string
  readonly #directory: HeldDirectory
  readonly #log: Log
  readonly #frame = new FrameBuffer()
  readonly #appended = new AppendBuffer()
  readonly #commits = new GroupCommit({
    prepare: () => this.#writeAppended(),
    sync: () => this.#syncSegments(),
    syncFailed: (error) => this.#syncFailed(error),
  })
  readonly #syncFile: (fd: number) => Promise<void>
  #oldestSegment: number
  #segment: Segment
  /** Older segments with unsynced frames. */
  #unsynced: Segment[] = []
  /** Bytes of large frames since the last snapshot started. */
  #largeBytes = 0
  /** Number of large frames so far. */
  #largeFrames = 0
  /** Whether a file was renamed to a segment and the directory has not been synced since. */
  #isRenameUnsynced = false
  /** Number of the newest segment when a sync failed; undefined while the journal is trusted. */
  #distrusted: number | undefined
  #lost: DataDirectoryLost | undefined
  #isClosed = false

  constructor({ dataDir, oldestSegment, firstSegment, log, syncFile = syncData }: JournalOptions) {
    this.#syncFile = syncFile
    this.#dataDir = dataDir
    this.#directory = new HeldDirectory(dataDir)
    this.#log = log
    for (const name of readdirSync(dataDir)) if (LARGE_FRAME_FILE.test(name)) unlinkSync(join(dataDir, name))
    this.#oldestSegment = oldestSegment
    this.#segment = new Segment(dataDir, firstSegment)
  }

  /** Bytes in the newest segment. */
  get length(): number {
    return this.#segment.length
  }

  /** Bytes in the journal since the last snapshot started. */
  get size(): number {
    return this.#segment.length + this.#largeBytes
  }

  /** Whether a sync failed and no snapshot has replaced the journal since. */
  get isDistrusted(): boolean {
    return this.#distrusted !== undefined
  }

  /** Why the journal cannot promise anything; undefined if it can. */
  get fault(): Error | undefined {
    if (this.#isClosed) return stoppedError()
    if (this.#lost !== undefined) return this.#lost
    return this.isDistrusted ? new Error('the disk failed to sync') : undefined
  }

  /**
   * Whether the data directory was deleted or replaced, or the journal is closed. The next start sees no further write.
   */
  get isLost(): boolean {
    return this.#lost !== undefined || this.#isClosed
  }

  /** Whether the segment is closed. Its file descriptor may belong to another file by now. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Throws if the data directory is lost, or cannot be checked. */
  checkDirectory(): void {
    if (this.isLost) throw this.fault
    try {
      this.#directory.check(this.#segment.fd)
    } catch (error) {
      if (error instanceof DataDirectoryLost) {
        this.#lost = error
        this.#log.error('the data directory is lost', { cause: error.message, data_dir: this.#dataDir })
      }
      throw error
    }
  }

  /** Writes a frame with the payload `parts`. Throws the error of the disk, and then nothing is written. */
  write(kind: FrameKind, parts: readonly (string | Uint8Array)[]): void {
    this.#writeAppended()
    this.#frame.add(kind, parts, this.#segment.synced)
    this.#writeFrames(this.#frame)
  }

  /**
   * Buffers a frame for the next sync. Resolves when the frame is on disk. Rejects with `NotWritten` if the frame was
   * not written, and with another error if it was written but may not be on disk.
   */
  append(kind: FrameKind, parts: readonly (string | Uint8Array)[]): Promise<void> {
    const { fault } = this
    if (fault !== undefined) return Promise.reject(fault)
    if (parts.reduce((sum, part) => sum + part.length, 0) >= LARGE_FRAME_BYTES)
      return this.#appendLarge({ kind, parts })
    const synced = this.#appended.add(kind, parts, this.#segment.synced)
    if (this.#appended.length > MAX_APPENDED_BYTES) this.#writeAppended()
    this.#commits.schedule()
    return synced
  }

  async #appendLarge(frame: LargeFrame): Promise<void> {
    const file = join(this.#dataDir, `journal-large-${++this.#largeFrames}.new`)
    const size = await orNotWritten(async () => {
      this.checkDirectory()
      return writeLargeFrame(file, frame, this.#syncFile)
    })
    const { fault } = this // a sync may have failed meanwhile
    if (fault !== undefined) {
      if (this.#lost === undefined) rmSync(file, { force: true })
      throw fault
    }
    await orNotWritten(() => this.#insertSegment(file, size))
    await this.sync()
  }

  /** Makes `file` the segment after the newest one, and starts another segment after it. */
  #insertSegment(file: string, size: number): void {
    try {
      this.checkDirectory()
      this.#writeAppended()
      const { number } = this.#segment
      const next = new Segment(this.#dataDir, number + 2)
      try {
        renameSync(file, join(this.#dataDir, segmentName(number + 1)))
      } catch (error) {
        next.close()
        unlinkSync(next.path)
        throw error
      }
      this.#continueIn(next)
      this.#largeBytes += size
      this.#isRenameUnsynced = true
    } catch (error) {
      if (this.#lost === undefined) rmSync(file, { force: true })
      throw error
    }
  }

  #continueIn(segment: Segment): void {
    if (this.isDistrusted) this.#segment.close()
    else this.#unsynced.push(this.#segment)
    this.#segment = segment
  }

  /** Continues in the file of the reserve, whose space is allocated. Returns false if there is none. */
  continueInReserve(reserve: DiskReserve): boolean {
    if (this.isLost || !reserve.exists) return false
    this.#continueIn(new Segment(this.#dataDir, this.#segment.number + 1, reserve))
    this.#isRenameUnsynced = true
    return true
  }

  #writeFrames(frames: FrameBuffer): void {
    try {
      if (this.#isClosed) throw stoppedError()
      this.#segment.write(frames.bytes)
    } finally {
      frames.clear()
    }
  }

  /** Resolves when everything written before this call is on disk. Rejects if that is uncertain. */
  sync(): Promise<void> {
    const { fault } = this
    return fault === undefined ? this.#commits.wait() : Promise.reject(fault)
  }

  /** Writes the appended frames. Their callers wait for the next sync. */
  #writeAppended(): void {
    this.#commits.join(this.#appended.writeTo((frames) => this.#writeFrames(frames)))
  }

  async #syncSegments(): Promise<void> {
    const older = this.#unsynced
    const newest = this.#segment // a new segment may start during the sync
    const { length } = newest
    this.#unsynced = []
    try {
      for (const { fd } of older) await this.#syncFile(fd)
      await this.#syncFile(newest.fd)
      if (this.#isRenameUnsynced) await this.#syncRename()
      this.checkDirectory()
      newest.synced = length
    } finally {
      for (const segment of older) segment.close()
    }
  }

  async #syncRename(): Promise<void> {
    this.#isRenameUnsynced = false
    await syncDirectory(this.#dataDir)
  }

  /** Distrusts the journal until a snapshot replaces it. Returns the callers of buffered frames, which are dropped. */
  #syncFailed(error: unknown): readonly Waiter[] {
    if (!this.isLost) {
      if (!this.isDistrusted) {
        const cause = messageOf(error)
        this.#log.error('the journal cannot be relied on before the next snapshot', { cause })
      }
      this.#distrusted = this.#segment.number
    }
    return this.#appended.clear()
  }

  /**
   * Starts a new segment. Returns its number after a sync of the older ones, which may fail.
   */
  async startSegment(): Promise<number> {
    this.#writeAppended()
    const next = new Segment(this.#dataDir, this.#segment.number + 1)
    // The reserve was taken because the disk is full: it still has room for outcomes, which a file without space has not.
    if (this.#segment.isReserve) next.allocateOrRemove()
    this.#continueIn(next)
    this.#largeBytes = 0
    const started = this.#segment.number
    await this.sync().catch(() => {})
    return started
  }

  /**
   * Removes the segments before `number`. Called when a snapshot that began after the start of `number` is in place.
   */
  async dropSegmentsBefore(number: number): Promise<void> {
    for (; this.#oldestSegment < number; this.#oldestSegment++) {
      await unlink(join(this.#dataDir, segmentName(this.#oldestSegment))).catch((error) => {
        if (systemCodeOf(error) !== 'ENOENT') throw error
      })
    }
    await syncDirectory(this.#dataDir)
    if (this.#distrusted !== undefined && this.#distrusted < number) this.#distrusted = undefined
  }

  /** Closes the journal. From then on, `fault` is set. Removes the newest segment if it is empty. */
  async close(): Promise<void> {
    await this.sync().catch(() => {})
    await this.#commits.whenIdle()
    this.#isClosed = true
    this.#segment.finish()
    this.#directory.close()
    if (this.#segment.length === 0) await unlink(this.#segment.path)
  }
}

const stoppedError = (): Error => new Error('the service is stopping')
