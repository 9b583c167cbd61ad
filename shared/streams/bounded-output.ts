/** Reads a stream, of which the first bytes are kept as text. Others may read them while the stream goes on. */
import { GrowthWaiters } from './growth-waiters.ts'
import type { Masker } from './masker.ts'

export interface BoundedText {
  readonly text: string
  readonly truncated: boolean
  /** The last whole lines of a truncated stream, if it was read with a `tail`. */
  readonly tail?: string
}

/** Bytes of the first buffer for a stream of several chunks. */
const FIRST_BUFFER_BYTES = 4 * 1024

const NO_BYTES: Uint8Array = new Uint8Array(0)

const NEWLINE = 10

/**
 * The first bytes of a stream, in one buffer, which readers share. What was given out does not change when more
 * arrives: a larger buffer is another one.
 */
export class BoundedOutput {
  readonly #maxBytes: number
  readonly #waiters = new GrowthWaiters()
  #buffer = NO_BYTES
  #length = 0
  #isTruncated = false
  #isComplete = false

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** There was more than is kept. */
  get truncated(): boolean {
    return this.#isTruncated
  }

  /** Ends the output. Bytes read after this call are complete. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** `chunk` must not change afterwards. */
  push(chunk: Uint8Array): void {
    const part = chunk.subarray(0, this.#maxBytes - this.#length)
    this.#isTruncated ||= part.length < chunk.length
    if (part.length === 0) return
    if (this.#length === 0) this.#buffer = part
    else {
      this.#makeRoom(this.#length + part.length)
      this.#buffer.set(part, this.#length)
    }
    this.#length += part.length
    this.#waiters.tell()
  }

  #makeRoom(bytes: number): void {
    if (bytes <= this.#buffer.length) return
    const size = Math.max(FIRST_BUFFER_BYTES, 2 * this.#length, bytes)
    const larger = new Uint8Array(Math.min(size, this.#maxBytes))
    larger.set(this.#buffer.subarray(0, this.#length))
    this.#buffer = larger
  }

  end(): void {
    this.#isComplete = true
    this.#waiters.tell()
  }

  /** The bytes from `from` on that have arrived; none at the end. Readers must not change them. */
  read(from: number): Uint8Array {
    return this.#buffer.subarray(from, this.#length)
  }

  /** Calls `told` once when more has arrived, or the stream has ended. Returns a function that cancels this. */
  add(told: () => void): () => void {
    return this.#waiters.add(told)
  }

  text(): BoundedText {
    return { text: textOf(this.read(0), this.#isTruncated), truncated: this.#isTruncated }
  }
}

/** The start of the last `count` lines of `bytes`. The last line may lack its end. */
export function lastLinesStart(bytes: Uint8Array, count: number): number {
  let start = bytes.length
  if (count === 0) return start
  if (bytes[start - 1] === NEWLINE) start--
  for (let i = 0; i < count; i++) {
    if (start === 0) return 0
    const lineEnd = bytes.lastIndexOf(NEWLINE, start - 1)
    if (lineEnd < 0) return 0
    start = lineEnd
  }
  return start + 1
}

export interface ReadBoundedOptions {
  /** Cancels the stream at the limit. Otherwise the rest is read and dropped. */
  readonly stopAtLimit?: boolean
  /** Ends the reading. The bytes read so far are the result. */
  readonly signal?: AbortSignal
  /** Keeps the end of the stream, too. */
  readonly tail?: { push(chunk: Uint8Array): void; lines(): string }
  /** Masks the stream before anything of it is kept. */
  readonly masker?: Masker | undefined
}

/**
 * Keeps the first `maxBytes` of `stream`. The rest is read and dropped, so that the writer never blocks. Rejects if the
 * stream fails.
 */
export const readBounded = (
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
  options: ReadBoundedOptions = {},
): Promise<BoundedText> => readInto(new BoundedOutput(maxBytes), stream, options)

/** As `readBounded`. `output` has what has arrived, also while the stream goes on. */
export async function readInto(
  output: BoundedOutput,
  stream: ReadableStream<Uint8Array>,
  { stopAtLimit = false, signal, tail, masker }: ReadBoundedOptions = {},
): Promise<BoundedText> {
  const reader = stream.getReader()
  const keep = (chunk: Uint8Array) => {
    output.push(chunk)
    tail?.push(chunk)
  }
  const cancel = () => void reader.cancel().catch(() => {})
  signal?.addEventListener('abort', cancel, { once: true })
  if (signal?.aborted) cancel()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      keep(masker?.push(value) ?? value)
      if (output.truncated && stopAtLimit) {
        await reader.cancel()
        break
      }
    }
  } finally {
    signal?.removeEventListener('abort', cancel)
    if (masker !== undefined) keep(masker.end())
    output.end()
  }
  return textWithTail(output, tail)
}

/** The text of `output`; if that was cut off, with the last lines of the whole stream. */
export function textWithTail(output: BoundedOutput, tail: ReadBoundedOptions['tail']): BoundedText {
  const read = output.text()
  return read.truncated && tail ? { ...read, tail: tail.lines() } : read
}

const lossyUtf8 = new TextDecoder('utf-8', { ignoreBOM: true })

/** Decodes UTF-8 and replaces invalid bytes. A character that was cut in the middle is left out. */
export function textOf(bytes: Uint8Array, wasCut: boolean): string {
  return lossyUtf8.decode(wasCut ? bytes.subarray(0, wholeCharacters(bytes)) : bytes)
}

/** The length of `bytes` without an unfinished character at its end. */
function wholeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back]!
    if ((byte & 0xc0) === 0x80) continue // the middle of a character: look further back for its start
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}
