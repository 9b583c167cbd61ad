/**
 * One open output file for all who follow it: one descriptor, one watch of the kernel, one timer, and one read for all who
 * want the same bytes.
 *
 * The kernel tells when the file grows (`fs.watch`). Not every file system does (network, some containers), so its size is
 * looked at from time to time as well. Followers are told a few at a time, so that ten thousand of them do not hold the
 * event loop; the last chunk is kept for those who are told later.
 */
import { close, type FSWatcher, fstat, fstatSync, read, watch } from 'node:fs'
import { promisify } from 'node:util'
import { nextTurn, STEPS_PER_YIELD } from '../../shared/steps.ts'
import { openPlainFile } from './output.ts'

/** Bytes handed on at once. */
const CHUNK_BYTES = 64 * 1024

/** Milliseconds between two looks at the size of a file of which nothing is heard. */
const LOOK_MS = 1_000

const readAsync = promisify(read)
const statAsync = promisify(fstat)
const closeAsync = promisify(close)

const NO_BYTES = new Uint8Array(0)

interface Chunk {
  readonly position: number
  readonly bytes: Uint8Array
}

/** By device and inode: a new file of the same name is another one, and an open inode is given to no other file. */
const openLogs = new Map<string, SharedLog>()

export class SharedLog {
  readonly #fd: number
  readonly #key: string
  #users = 0
  #isClosed = false
  /** Nothing is written any more. */
  #isComplete = false
  /** Reads that begin with the next turn of the event loop, by position. */
  readonly #joinable = new Map<number, Promise<Uint8Array>>()
  readonly #reading = new Set<Promise<unknown>>()
  #last: Chunk | undefined
  readonly #waiting = new Set<() => void>()
  #watcher: FSWatcher | undefined
  #timer: Timer | undefined
  /** At the last look. */
  #size = 0

  private constructor(fd: number, key: string) {
    this.#fd = fd
    this.#key = key
  }

  /** The plain file at `path`, to be given back with `leave`; undefined when there is none. */
  static enter(path: string): SharedLog | undefined {
    const fd = openPlainFile(path)
    if (fd === undefined) return undefined
    const { dev, ino } = fstatSync(fd)
    const key = `${dev}-${ino}`
    let log = openLogs.get(key)
    if (log === undefined) {
      log = new SharedLog(fd, key)
      openLogs.set(key, log)
    } else close(fd, () => {})
    log.#users++
    return log
  }

  /** From the last `leave` on nothing is read. */
  leave(): void {
    if (--this.#users > 0) return
    openLogs.delete(this.#key)
    this.#isClosed = true
    this.#watcher?.close()
    clearInterval(this.#timer)
    // Or a read would be of the file that gets the number of the descriptor next.
    void Promise.allSettled(this.#reading).then(() => closeAsync(this.#fd))
  }

  /** Watches the file at `path`, this one, until `ended`. */
  follow(path: string, ended: Promise<unknown>): void {
    if (this.#timer !== undefined || this.#isComplete) return
    this.#watcher = tryWatch(path, () => this.#wake())
    this.#timer = setInterval(() => this.#look().catch(() => {}), LOOK_MS)
    void ended.finally(() => {
      this.#isComplete = true
      this.#wake()
    })
  }

  /** Whether nothing is written any more: what is read after this was asked is all there is. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** The bytes from `position` on, as many as one chunk has; none at the end. Not to be changed: others have the same. */
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

  /** In the next turn: who comes before it begins sees with it all that is written now. */
  async #readNextTurn(position: number): Promise<Uint8Array> {
    await nextTurn()
    this.#joinable.delete(position)
    if (this.#isClosed) return NO_BYTES
    const buffer = new Uint8Array(CHUNK_BYTES)
    const reading = readAsync(this.#fd, buffer, 0, buffer.length, position)
    this.#reading.add(reading)
    try {
      const { bytesRead } = await reading
      // A short one does not keep the whole buffer.
      const bytes = bytesRead < CHUNK_BYTES / 2 ? buffer.slice(0, bytesRead) : buffer.subarray(0, bytesRead)
      if (bytesRead > 0 && this.#watcher !== undefined) this.#last = { position, bytes }
      return bytes
    } finally {
      this.#reading.delete(reading)
    }
  }

  /** Calls `told` once when the file has grown or is complete. Returns what takes that back. */
  whenGrown(told: () => void): () => void {
    this.#waiting.add(told)
    return () => this.#waiting.delete(told)
  }

  #wake(): void {
    if (this.#waiting.size === 0) return
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    void tellAll(waiting)
  }

  async #look(): Promise<void> {
    const look = statAsync(this.#fd)
    this.#reading.add(look)
    try {
      const { size } = await look
      if (size === this.#size) return
      this.#size = size
      this.#wake()
    } finally {
      this.#reading.delete(look)
    }
  }
}

async function tellAll(waiting: readonly (() => void)[]): Promise<void> {
  for (let i = 0; i < waiting.length; i++) {
    waiting[i]!()
    if (i % STEPS_PER_YIELD === STEPS_PER_YIELD - 1) await nextTurn()
  }
}

function tryWatch(path: string, onChange: () => void): FSWatcher | undefined {
  try {
    return watch(path, { persistent: false }, onChange)
  } catch {
    return undefined // no watches left: the looks remain
  }
}
