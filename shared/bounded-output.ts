/** The first bytes of a stream as text, and whether there were more. */

export interface BoundedText {
  readonly text: string
  readonly truncated: boolean
  /** Of a stream that was read with a `tail` and had more than is kept: its last whole lines. */
  readonly tail?: string
}

export interface ReadBoundedOptions {
  /** Cancels the stream as soon as there is more than is kept, instead of reading and dropping the rest. */
  readonly stopAtLimit?: boolean
  /** Ends the reading; what came until then is the answer. */
  readonly signal?: AbortSignal
  /** Where the end of the stream is kept too. */
  readonly tail?: { push(chunk: Uint8Array): void; lines(): string }
}

/**
 * Keeps the first `maxBytes` of `stream`. The rest is read and dropped, so that whoever writes never blocks. Rejects as
 * the stream does.
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

/** Decodes, replacing what is not UTF-8; a character that the cut went through is left out. */
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
