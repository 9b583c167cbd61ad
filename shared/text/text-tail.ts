/** The last lines of a text or a stream, which usually tell the fault. Pure. */
import { textOf } from '../streams/bounded-output.ts'

/** Bytes of UTF-8 in a tail. */
export const MAX_TAIL_BYTES = 2_048

/** The last whole lines of `text`, without trailing white space. A last line longer than a tail loses its beginning. */
export function tailOf(text: string): string {
  const end = text.trimEnd()
  // A character has at least one byte, so the tail is within this many characters.
  const bytes = new TextEncoder().encode(end.slice(-MAX_TAIL_BYTES))
  const isWhole = end.length <= MAX_TAIL_BYTES && bytes.length <= MAX_TAIL_BYTES
  return isWhole ? end : fromLineStart(lastBytes(bytes, true))
}

/** The last bytes as text. The rest of a character that was cut is left out. */
function lastBytes(bytes: Uint8Array, isCut: boolean): string {
  let from = Math.max(0, bytes.length - MAX_TAIL_BYTES)
  if (isCut) while (from < bytes.length && (bytes[from]! & 0xc0) === 0x80) from++
  return textOf(bytes.subarray(from), false)
}

const fromLineStart = (text: string): string => {
  const lineEnd = text.indexOf('\n')
  return lineEnd < 0 ? text : text.slice(lineEnd + 1)
}

/** The end of a text that arrives in chunks. */
export class TextTail {
  #tail: Uint8Array = new Uint8Array()
  #isCut = false

  push(chunk: Uint8Array): void {
    const all = chunk.length >= MAX_TAIL_BYTES ? chunk : Buffer.concat([this.#tail, chunk])
    this.#isCut ||= this.#tail.length + chunk.length > MAX_TAIL_BYTES
    this.#tail = new Uint8Array(all.subarray(-MAX_TAIL_BYTES))
  }

  /** The last bytes, without surrounding white space. */
  text(): string {
    return lastBytes(this.#tail, this.#isCut).trim()
  }

  /** The last whole lines, like `tailOf`. */
  lines(): string {
    const text = lastBytes(this.#tail, this.#isCut).trimEnd()
    return this.#isCut ? fromLineStart(text) : text
  }
}
