/**
 * The growing end of a log at the runtime service: one connection for all its followers.
 *
 * The last bytes stay in memory, so followers that read at about the same pace share them. A follower that has fallen
 * behind reads the missing part by itself. A connection may have died without a word, so a silent one is given up, and its
 * followers look for themselves.
 */
import { GrowthWaiters } from '../../../shared/streams/growth-waiters.ts'

/** Bytes that are kept for followers that have not read them yet. */
export const MAX_KEPT_BYTES = 1024 * 1024

/** Milliseconds without a byte after which a connection is given up. A shorter time costs more requests per silent log. */
export const SILENT_LOG_MS = 20_000

interface Chunk {
  readonly position: number
  readonly bytes: Uint8Array
}

export class LiveLog {
  readonly #chunks: Chunk[] = []
  readonly #waiters = new GrowthWaiters()
  readonly #connection = new AbortController()
  readonly #silence: Timer
  #start: number
  #end: number
  #followers = 0
  readonly #onOver: (log: LiveLog) => void
  /** `complete`: the task has ended. `lost`: the connection broke. */
  state: 'growing' | 'complete' | 'lost' = 'growing'

  /** Connects. `open` gives the bytes from `start` on; `onOver` is called once nothing more will arrive. */
  constructor(
    start: number,
    open: (signal: AbortSignal) => Promise<ReadableStream<Uint8Array>>,
    onOver: (log: LiveLog) => void,
    silentMs: number = SILENT_LOG_MS,
  ) {
    this.#start = start
    this.#end = start
    this.#onOver = onOver
    this.#silence = setTimeout(() => this.#giveUp(), silentMs)
    this.#silence.unref()
    void this.#receive(open).then((state) => this.#over(state))
  }

  #over(state: 'complete' | 'lost'): void {
    this.state = state
    clearTimeout(this.#silence)
    this.#onOver(this)
    this.#waiters.tell()
  }

  async #receive(open: (signal: AbortSignal) => Promise<ReadableStream<Uint8Array>>): Promise<'complete' | 'lost'> {
    try {
      for await (const bytes of await open(this.#connection.signal)) this.#push(bytes)
      return 'complete'
    } catch {
      return 'lost'
    }
  }

  #push(bytes: Uint8Array): void {
    this.#silence.refresh()
    this.#chunks.push({ position: this.#end, bytes })
    this.#end += bytes.length
    while (this.#chunks.length > 1 && this.#end - this.#chunks[1]!.position >= MAX_KEPT_BYTES) {
      this.#chunks.shift()
      this.#start = this.#chunks[0]!.position
    }
    this.#waiters.tell()
  }

  /** The bytes from `position` on, up to one chunk; none at the end; undefined if they are no longer kept. */
  read(position: number): Uint8Array | undefined {
    if (position < this.#start) return undefined
    // Followers are mostly at the end.
    for (let i = this.#chunks.length - 1; i >= 0; i--) {
      const chunk = this.#chunks[i]!
      if (chunk.position <= position) return chunk.bytes.subarray(position - chunk.position)
    }
    return NO_BYTES
  }

  /** Calls `told` once when more has arrived, or nothing more will. Returns a function that cancels this. */
  add(told: () => void): () => void {
    return this.#waiters.add(told)
  }

  enter(): void {
    this.#followers++
  }

  /** Disconnects after the last one. */
  leave(): void {
    if (--this.#followers === 0 && this.state === 'growing') this.#giveUp()
  }

  #giveUp(): void {
    this.#connection.abort()
    this.#over('lost')
  }
}

const NO_BYTES: Uint8Array = new Uint8Array(0)
