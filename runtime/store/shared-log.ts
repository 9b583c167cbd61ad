/**
 * One open output file for all its followers: one descriptor, one kernel watch, one timer, and one read for all who
 * want the same bytes.
 *
 * `fs.watch` reports when the file grows. Some file systems (network, some containers) do not support it, so the size
 * is also polled. The last chunk is kept for followers that are notified later than others.
 */
import { close, type FSWatcher, fstat, fstatSync, read, type Stats, watch } from 'node:fs'
import { promisify } from 'node:util'
import { nextTurn } from '../../shared/process/steps.ts'
import { GrowthWaiters } from '../../shared/streams/growth-waiters.ts'
import { openPlainFile } from './shown-output.ts'

/** Bytes handed on at once. */
const CHUNK_BYTES = 64 * 1024

/** Milliseconds between two polls of the size of a file whose watch is silent. */
const LOOK_MS = 1_000

const readAsync = promisify(read)
const statAsync = promisify(fstat)
const closeAsync = promisify(close)

const NO_BYTES = new Uint8Array(0)

interface Chunk {
  readonly position: number
  readonly bytes: Uint8Array
}

/** By device and inode: another file may get the same name, but no other file gets an inode that is still open. */
const openLogs = new Map<string, SharedLog>()

const keyOf = ({ dev, ino }: Pick<Stats, 'dev' | 'ino'>): string => `${dev}-${ino}`

export class SharedLog {
  readonly #fd: number
  readonly #key: string
  #users = 0
  #isClosed = false
  /** Ends the log: no more output follows. */
  #isComplete = false
  /** Reads that start with the next turn of the event loop, by position. */
  readonly #joinable = new Map<number, Promise<Uint8Array>>()
  readonly #reading = new Set<Promise<unknown>>()
  #last: Chunk | undefined
  readonly #waiting = new GrowthWaiters()
  #watcher: FSWatcher | undefined
  #timer: Timer | undefined
  /** As of the last poll. */
  #size = 0

  private constructor(fd: number, key: string) {
    this.#fd = fd
    this.#key = key
  }

  /** The plain file at `path`; undefined when there is none. To be given back with `leave`. */
  static enter(path: string): SharedLog | undefined {
    const fd = openPlainFile(path)
    if (fd === undefined) return undefined
    const key = keyOf(fstatSync(fd))
    let log = openLogs.get(key)
    if (log === undefined) {
      log = new SharedLog(fd, key)
      openLogs.set(key, log)
    } else close(fd, () => {})
    log.#users++
    return log
  }

  /** Stops reading after the last `leave`. */
  leave(): void {
    if (--this.#users > 0) return
    openLogs.delete(this.#key)
    this.#isClosed = true
    this.#watcher?.close()
    clearInterval(this.#timer)
    // A later read would hit another file that got the same descriptor.
    void Promise.allSettled(this.#reading).then(() => closeAsync(this.#fd))
  }

  /** Watches this file, which is at `path`, until `ended`. */
  follow(path: string, ended: Promise<unknown>): void {
    if (this.#timer !== undefined || this.#isComplete) return
    this.#watcher = tryWatch(path, () => this.#waiting.tell())
    this.#timer = setInterval(() => this.#look().catch(() => {}), LOOK_MS)
    void ended.finally(() => {
      this.#isComplete = true
      this.#waiting.tell()
    })
  }

  /** Whether nothing more will be written. What is read after this call is then complete. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /**
   * The bytes from `position` on, up to one chunk; none at the end. Readers share them, so they must not be changed.
   */
  read(position: number): Promise<Uint8Array> | Uint8Array {
    const { bytes = NO_BYTES, position: start = 0 } = this.#last ?? {}
    if (position >= start && position < start + bytes.length) return bytes.subarray(position - start)
    let joinable = this.#joinable.get(position)
    if (joinable === undefined) {
      joinable = this.#readNextTurn(position)
      this.#joinable.set(position, joinable)
    }
    return joinable
  }

  /** Reads in the next turn, for all who ask before it. */
  async #readNextTurn(position: number): Promise<Uint8Array> {
    await nextTurn()
    this.#joinable.delete(position)
    if (this.#isClosed) return NO_BYTES
    const buffer = new Uint8Array(CHUNK_BYTES)
    const reading = readAsync(this.#fd, buffer, 0, buffer.length, position)
    this.#reading.add(reading)
    try {
      const { bytesRead } = await reading
      // A copy: a short chunk must not keep the whole buffer.
      const bytes = bytesRead < CHUNK_BYTES / 2 ? buffer.slice(0, bytesRead) : buffer.subarray(0, bytesRead)
      if (bytesRead > 0 && this.#watcher !== undefined) this.#last = { position, bytes }
      return bytes
    } finally {
      this.#reading.delete(reading)
    }
  }

  /** Calls `told` once when the file has grown or is complete. Returns a function that cancels this. */
  whenGrown(told: () => void): () => void {
    return this.#waiting.add(told)
  }

  async #look(): Promise<void> {
    const look = statAsync(this.#fd)
    this.#reading.add(look)
    try {
      const { size } = await look
      if (size === this.#size) return
      this.#size = size
      this.#waiting.tell()
    } finally {
      this.#reading.delete(look)
    }
  }
}

function tryWatch(path: string, onChange: () => void): FSWatcher | undefined {
  try {
    return watch(path, { persistent: false }, onChange)
  } catch {
    return undefined // no watches left: polling goes on
  }
}
