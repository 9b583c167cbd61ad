/** Answers with all bytes of something or with the part that a request asks for (RFC 9110, sections 13 and 14). */
import { ServiceError } from '../../shared/contract/errors.ts'
import { type ByteRange, byteRangeOf } from './byte-range.ts'

/** What has bytes. */
export interface Whole {
  readonly type: string
  readonly size: number
  /** Changes with the bytes. Without quotes. */
  readonly version: string
  /** What errors call it. */
  readonly shown: string
}

export interface PartAnswer extends ByteRange {
  readonly status: 200 | 206
  readonly headers: Record<string, string>
}

/**
 * Bun sends a stream without a dependable Content-Length, so the size has a header of its own. Throws 416 if there is no such
 * part.
 */
export function partAnswer({ headers: asked }: Request, { type, size, version, shown }: Whole): PartAnswer {
  const etag = `"${version}"`
  const isSame = (asked.get('if-range') ?? etag) === etag
  const range = byteRangeOf(isSame ? asked.get('range') : null, size)
  if (range === null) {
    const headers = { 'content-range': `bytes */${size}` }
    throw new ServiceError(416, `no such part of ${shown}: it has ${size} bytes`, { headers })
  }
  const { from, to } = range ?? { from: 0, to: size }
  const headers = {
    'content-type': type,
    'accept-ranges': 'bytes',
    etag,
    'x-file-bytes': String(size),
    'x-content-type-options': 'nosniff',
    ...(range !== undefined && { 'content-range': `bytes ${from}-${to - 1}/${size}` }),
  }
  return { status: range === undefined ? 200 : 206, headers, from, to }
}
