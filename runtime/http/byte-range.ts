/** The `Range` header of a request (RFC 9110, section 14). Pure. */

/** `from` is included, `to` is not. */
export interface ByteRange {
  readonly from: number
  readonly to: number
}

/**
 * The part of a file of `size` bytes that is asked for. Undefined for the whole file: without a header, and for headers
 * that a server may ignore (several parts, another unit, a malformed one). Null if the file has no such part.
 */
export function byteRangeOf(header: string | null, size: number): ByteRange | null | undefined {
  const match = /^bytes=(\d*)-(\d*)$/i.exec(header?.replaceAll(/[ \t]/g, '') ?? '')
  const [first = '', last = ''] = match?.slice(1) ?? []
  if (first === '' && last === '') return undefined
  if (first === '')
    return Number(last) === 0 || size === 0 ? null : { from: Math.max(0, size - Number(last)), to: size }
  if (last !== '' && Number(last) < Number(first)) return undefined
  if (Number(first) >= size) return null
  return { from: Number(first), to: last === '' ? size : Math.min(Number(last) + 1, size) }
}
