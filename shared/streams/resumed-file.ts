/**
 * The bytes of a file of a task, read over lost connections and restarts of the service, in parts that the service gives.
 *
 * Each request goes on where the last one ended, on the condition that the file is the same (`If-Range`). If it has changed, the
 * file is read from its first byte again. A directory comes as a tar, and the same holds for it; services of earlier versions
 * give a tar no etag, and begin it anew with each request.
 */
import type { Patience } from './followed-log.ts'
import { chunksOf, type OpenStream, type StreamSource } from './source.ts'

/** Bytes of one request. The service has a limit of 1 GiB. */
const PART_BYTES = 512 * 1024 * 1024

/** Times that a file may change before its reader gives up. */
const MAX_CHANGES = 3

/** The status for a range behind the end of a file. */
const NOTHING_THERE = 416

/** What the service says of a file. */
export interface FileFacts {
  /** Undefined for a tar without an etag. */
  readonly bytes: number | undefined
  /** Changes with the content. Without one, each request begins anew. */
  readonly etag: string | undefined
  /** Whether the bytes are a tar of a directory. */
  readonly isTar: boolean
  /** Where the next piece begins. */
  readonly offset: number
}

/** What an earlier reader has. */
export interface FileStart {
  /** Where the next piece begins. */
  readonly offset: number
  readonly etag: string
  readonly isTar: boolean
}

export interface ResumedFileRequest {
  /** The path of the file at the service, with its query. */
  readonly path: string
  /** Begins there, if the file has this etag still. */
  readonly from?: FileStart | undefined
  readonly patience: Patience
  /** The status of the answer behind an error of the source. */
  readonly statusOf: (error: unknown) => number | undefined
  /** Called for each beginning: the first one, and the one after a change. */
  readonly onBegin: (facts: FileFacts) => void | Promise<void>
  readonly signal: AbortSignal
}

/** A piece of a file. A piece at 0 that is not the first one begins the file anew. */
export interface FilePiece {
  readonly offset: number
  readonly bytes: Uint8Array
}

/** Throws what `lost` throws. */
export async function* resumedFile(source: StreamSource, request: ResumedFileRequest): AsyncGenerator<FilePiece> {
  const { path, from, patience, statusOf, onBegin, signal } = request
  let { offset, etag, isTar }: Pick<FileFacts, 'offset' | 'etag' | 'isTar'> = from ?? NOTHING
  let begun = 0
  for (;;) {
    const before = offset
    let opened: OpenStream | undefined
    try {
      opened = await source.open(path, rangeFrom(offset, etag), signal)
    } catch (error) {
      if (statusOf(error) !== NOTHING_THERE) {
        await patience.lost(error)
        continue
      }
    }
    patience.over()
    const part = opened === undefined ? endAt({ offset, etag, isTar }) : partOf(opened)
    if (begun === 0 || part.etag === undefined || part.etag !== etag || part.offset !== offset) {
      if (begun++ > MAX_CHANGES) throw new Error(`the file changes while it is read: ${path}`)
      offset = part.offset
      etag = part.etag
      isTar = part.isTar
      await onBegin(part)
    }
    try {
      for await (const bytes of opened === undefined ? [] : chunksOf(opened.stream)) {
        yield { offset, bytes }
        offset += bytes.length
      }
      if (offset === part.bytes || (part.isTar && part.bytes === undefined)) return
      if (part.bytes !== undefined && offset > part.bytes) throw new Error('the answer is longer than the file')
      if (offset === before) throw new Error('the connection ended before the file')
    } catch (error) {
      await patience.lost(error)
    }
  }
}

const rangeFrom = (offset: number, etag: string | undefined): Record<string, string> => ({
  range: `bytes=${offset}-${offset + PART_BYTES - 1}`,
  ...(etag !== undefined && { 'if-range': etag }),
})

const NOTHING = { offset: 0, etag: undefined, isTar: false }

const endAt = (reached: Omit<FileFacts, 'bytes'>): FileFacts => ({ ...reached, bytes: reached.offset })

function partOf({ headers }: OpenStream): FileFacts {
  const [, first, size] = /^bytes (\d+)-\d+\/(\d+)$/.exec(headers.get('content-range') ?? '') ?? []
  const bytes = size ?? headers.get('x-file-bytes')
  return {
    offset: Number(first ?? 0),
    bytes: bytes == null ? undefined : Number(bytes),
    etag: headers.get('etag') ?? undefined,
    isTar: headers.get('content-type') === 'application/x-tar',
  }
}
