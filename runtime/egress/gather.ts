/** Collects the bytes of a message from the chunks in which they arrive. */

import type { Endpoint } from './endpoint.ts'
import { HEAD_END, isRequestLine, MAX_HEAD_BYTES } from './wire/http-request.ts'
import { Malformed } from './wire/malformed.ts'

/**
 * Reads until `parse` finds its message at the beginning of what was read. What follows is put back. Undefined if the
 * connection ends before. Throws what `parse` throws, and `Malformed` beyond `maxBytes`.
 */
export async function gather<T>(
  endpoint: Endpoint,
  maxBytes: number,
  parse: (bytes: Buffer) => { readonly found: T; readonly length: number } | undefined,
): Promise<T | undefined> {
  let held: Buffer = Buffer.alloc(0)
  let length = 0
  for (;;) {
    const chunk = await endpoint.read()
    if (chunk === undefined) return undefined
    if (length + chunk.length > held.length) held = grown(held, length, chunk.length)
    held.set(chunk, length)
    length += chunk.length
    const parsed = parse(held.subarray(0, length))
    if (parsed !== undefined) {
      endpoint.unread(held.subarray(parsed.length, length))
      return parsed.found
    }
    if (length >= maxBytes) throw new Malformed(`more than ${maxBytes} bytes before its end`)
  }
}

/** Twice as large as needed, so that single bytes are not copied again and again. */
function grown(held: Buffer, length: number, more: number): Buffer {
  const larger = Buffer.alloc((length + more) * 2)
  larger.set(held.subarray(0, length))
  return larger
}

const LF = 0x0a

/** Reads the head of a request; the text before the empty line as Latin-1. Refuses other protocols at their first line. */
export function gatherRequestHead(endpoint: Endpoint): Promise<string | undefined> {
  let isFirstLineRead = false
  const find = headFinder()
  return gather(endpoint, MAX_HEAD_BYTES, (bytes) => {
    if (!isFirstLineRead) {
      const end = bytes.indexOf(LF)
      if (end < 0) return undefined
      if (!isRequestLine(bytes.toString('latin1', 0, end - 1)))
        throw new Malformed('a first line that is none of HTTP/1')
      isFirstLineRead = true
    }
    return find(bytes)
  })
}

/** Reads the head of an answer. */
export const gatherAnswerHead = (endpoint: Endpoint): Promise<string | undefined> =>
  gather(endpoint, MAX_HEAD_BYTES, headFinder())

/** Finds the end of a head, and looks at each byte once. */
function headFinder() {
  let from = 0
  return (bytes: Buffer) => {
    const end = bytes.indexOf(HEAD_END, from, 'latin1')
    if (end < 0 || end > MAX_HEAD_BYTES) {
      from = Math.max(0, bytes.length - HEAD_END.length + 1)
      return undefined
    }
    return { found: bytes.toString('latin1', 0, end), length: end + HEAD_END.length }
  }
}
