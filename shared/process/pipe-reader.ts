/**
 * Reads what a child writes to a stream of its own, into a `BoundedOutput`.
 *
 * At first it polls the pipe a few times, because most commands end soon. Following a stream costs 150 µs of CPU time, as much
 * as the start of a process.
 */

import { GrowingPause } from '../http/growing-pause.ts'
import { type BoundedOutput, type BoundedText, readInto, textWithTail } from '../streams/bounded-output.ts'
import { Masker, type MaskTexts } from '../streams/masker.ts'
import { TextTail } from '../text/text-tail.ts'
import { drainPipe, type Pipe, streamOf } from './pipe.ts'

/** Milliseconds between two looks. After the longest pause the stream is followed. */
const LOOK_PAUSES = { firstMs: 4, longestMs: 32 }

export class PipeReader {
  readonly #output: BoundedOutput
  readonly #tail = new TextTail()
  readonly #masker: Masker | undefined
  readonly #pipe: Pipe | null
  readonly #ofBun: unknown
  readonly #pauses = new GrowingPause(LOOK_PAUSES)
  readonly #stop = new AbortController()
  #timer: Timer | undefined
  #following: Promise<BoundedText> | undefined

  /** `ofBun` is the stream to read if there is no `pipe`. `masks` are masked before anything is kept. */
  constructor(output: BoundedOutput, pipe: Pipe | null, ofBun: unknown, masks?: MaskTexts) {
    this.#masker = masks && new Masker(masks)
    this.#output = output
    this.#pipe = pipe
    this.#ofBun = ofBun
    if (pipe === null) void this.#follow()
    else this.#lookLater()
  }

  /** Reads the rest, once the child has ended. Stops after `ms` if another process keeps the stream open. */
  async finish(ms: number): Promise<BoundedText> {
    clearTimeout(this.#timer)
    if (this.#following === undefined && this.#look() === 'ended') return textWithTail(this.#output, this.#tail)
    const timer = setTimeout(() => this.#stop.abort(), ms)
    try {
      return await this.#follow()
    } finally {
      clearTimeout(timer)
    }
  }

  #lookLater(): void {
    const ms = this.#pauses.next()
    this.#timer = setTimeout(() => {
      const found = this.#look()
      if (found === 'ended') return
      if (found === 'open' && ms < LOOK_PAUSES.longestMs) this.#lookLater()
      else void this.#follow()
    }, ms)
  }

  #look(): ReturnType<typeof drainPipe> {
    const found = drainPipe(this.#pipe!, (chunk) => this.#keep(this.#masker?.push(chunk) ?? chunk))
    if (found !== 'ended') return found
    if (this.#masker !== undefined) this.#keep(this.#masker.end())
    this.#output.end()
    return found
  }

  #keep(chunk: Uint8Array): void {
    this.#output.push(chunk)
    this.#tail.push(chunk)
  }

  #follow(): Promise<BoundedText> {
    this.#following ??= readInto(this.#output, streamOf(this.#pipe, this.#ofBun), {
      signal: this.#stop.signal,
      tail: this.#tail,
      masker: this.#masker,
    })
    return this.#following
  }
}
