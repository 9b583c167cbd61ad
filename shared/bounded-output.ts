/** Reads a stream, of which the first bytes are kept as text. */

export interface BoundedText {
  readonly text: string
  readonly truncated: boolean
  /** The last whole lines of a truncated stream, if it was read with a `tail`. */
  readonly tail?: string
}

export interface ReadBoundedOptions {
  /** Cancels the stream at the limit. Otherwise the rest is read and dropped. */
  readonly stopAtLimit?: boolean
  /** Ends the reading. The bytes read so far are the result. */
  readonly signal?: AbortSignal
  /** Keeps the end of the stream, too. */
  readonly tail?: { push(chunk: Uint8Array): void; lines(): string }
}

/**
 * Keeps the first `maxBytes` of `stream`. The rest is read and dropped, so that the writer never blocks. Rejects if the
 * stream fails.
 */
export async function readBounded(
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
  { stopAtLimit = false, signal, tail }: ReadBoundedOptions = {},
): Promise<BoundedText> {
  const kept: Uint8Array[] = []
  let keptBytes = 0
  let truncated = false
  const reader = stream.getReader()
  const cancel = () => void reader.cancel().catch(() => {})
  signal?.addEventListener('abort', cancel, { once: true })
  if (signal?.aborted) cancel()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    const part = value.subarray(0, maxBytes - keptBytes)
    if (part.byteLength > 0) kept.push(part)
    keptBytes += part.byteLength
    tail?.push(value)
    truncated ||= part.byteLength < value.byteLength
    if (truncated && stopAtLimit) {
      await reader.cancel()
      break
    }
  }
  signal?.removeEventListener('abort', cancel)
  const bytes = kept.length === 1 ? kept[0]! : Buffer.concat(kept, keptBytes)
  return { text: textOf(bytes, truncated), truncated, ...(truncated && tail && { tail: tail.lines() }) }
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
