/**
 * Numbers in JSON text that `JSON.parse` makes others of: integers with more digits than a double holds, and what is
 * larger than any double. Pure. For those who have seen by the parsed value that there may be one: it reads all the text.
 */
import { stringEnd } from './json-slices.ts'
import type { Slices } from './slices.ts'

/** Bytes looked at between two pauses: about half a millisecond. */
const BYTES_PER_YIELD = 128 * 1024

/** Every integer of fewer digits is kept. */
const LONG_DIGITS = 16

const QUOTE = 0x22
const MINUS = 0x2d
const PLUS = 0x2b
const DOT = 0x2e
const LOWER_E = 0x65
const UPPER_E = 0x45

const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39

const isOfNumber = (byte: number): boolean =>
  isDigit(byte) || byte === DOT || byte === LOWER_E || byte === UPPER_E || byte === PLUS || byte === MINUS

/** The first number in `bytes`, which are JSON, that would come back as another one. */
export function* changedNumber(bytes: Uint8Array): Slices<string | undefined> {
  let pauseAt = BYTES_PER_YIELD
  for (let at = 0; at < bytes.length; ) {
    const byte = bytes[at]!
    if (byte === QUOTE) at = stringEnd(bytes, at)
    else if (isDigit(byte) || byte === MINUS) {
      const start = at
      let hasExponent = false
      for (; at < bytes.length && isOfNumber(bytes[at]!); at++) hasExponent ||= (bytes[at]! | 0x20) === LOWER_E
      if (hasExponent || at - start >= LONG_DIGITS) {
        const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, at - start).toString('latin1')
        if (!isKept(text)) return text
      }
    } else at++
    if (at >= pauseAt) {
      pauseAt = at + BYTES_PER_YIELD
      yield
    }
  }
  return undefined
}

/** Whether the number is answered as it came. Of a fraction that is not asked: nobody takes it for exact. */
function isKept(text: string): boolean {
  const value = Number(text)
  if (!Number.isFinite(value)) return false
  if (/[.eE]/.test(text) || String(value) === text) return true
  // What is printed with an exponent has no form to be held against.
  return Math.abs(value) >= 1e21 && BigInt(value) === BigInt(text)
}
