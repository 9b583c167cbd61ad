/** The end of a text that comes in chunks: its last words are usually what went wrong. Pure. */
import { textOf } from '../../shared/bounded-output.ts'

/** Bytes that are kept. */
export const MAX_TAIL_BYTES = 2_000

export class TextTail {
  #tail: Uint8Array = new Uint8Array()

  push(chunk: Uint8Array): void {
    const all = chunk.length >= MAX_TAIL_BYTES ? chunk : Buffer.concat([this.#tail, chunk])
    this.#tail = new Uint8Array(all.subarray(-MAX_TAIL_BYTES))
  }

  text(): string {
    return textOf(this.#tail, false).trim()
  }
}
