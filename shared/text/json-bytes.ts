/** JSON as bytes: the text of a request or a file, read by `JSON.parse`. Pure. */

/** The text is not JSON, or not UTF-8. The message is the parser's own. */
export class JsonSyntaxError extends Error {
  override name = 'JsonSyntaxError'
}

/** Parses all of `bytes`, which may begin with a byte order mark. Throws `JsonSyntaxError`. */
export const parseJson = (bytes: Uint8Array): unknown => parseText(textOf(bytes))

/** The text in `bytes`, without the byte order mark with which they may begin. Throws `JsonSyntaxError`. */
export const textOf = (bytes: Uint8Array): string => decodeUtf8(withoutByteOrderMark(bytes))

/** Parses `text`. Throws `JsonSyntaxError`. */
export function parseText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof RangeError) throw new JsonSyntaxError('nested too deeply')
    throw new JsonSyntaxError((error as Error).message.replace(/^JSON Parse error: /, ''))
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text that `bytes` encode. Throws `JsonSyntaxError`. */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new JsonSyntaxError('the text is not valid UTF-8')
  }
}

/** `bytes` without the byte order mark that some editors put before UTF-8. */
export const withoutByteOrderMark = (bytes: Uint8Array): Uint8Array => {
  const length = byteOrderMarkLength(bytes)
  return length === 0 ? bytes : bytes.subarray(length)
}

export const byteOrderMarkLength = (bytes: Uint8Array): number =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
