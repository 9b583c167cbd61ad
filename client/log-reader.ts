/** The output of a task: all that there is, or followed while it is written. */
import { followedLog } from '../shared/streams/followed-log.ts'
import { logStream } from '../shared/streams/log-stream.ts'
import type { Connection } from './connection.ts'
import { queryText } from './connection.ts'
import { TaskmillError, unreachable } from './errors.ts'
import { Outage } from './outage.ts'

/** Bytes of a log that are read at once, by default. */
const DEFAULT_LOG_BYTES = 16 * 1024 * 1024

interface StreamOptions {
  /** Default stdout. */
  readonly stream?: 'stdout' | 'stderr' | undefined
  /** Begins with this many last lines, at most 100000. Default: with the first line. */
  readonly tail?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface LogOptions extends StreamOptions {
  /** Milliseconds for the whole log, in place of those of the client. */
  readonly timeoutMs?: number | undefined
  /** Bytes that are read. Default 16 MiB. */
  readonly maxBytes?: number | undefined
}

export interface TaskLog {
  readonly text: string
  readonly bytes: Uint8Array
  /** The attempt whose output it is; 0 before the first one. */
  readonly attempt: number
  /** Position of the first byte in the output of that attempt. */
  readonly offset: number
  /** Whether the task has written more than is kept, or than `maxBytes`. */
  readonly truncated: boolean
}

export interface FollowLogOptions extends StreamOptions {
  /** Continues at this byte of the output of this attempt, such as after a chunk: `offset + bytes.length`. */
  readonly from?: { readonly attempt: number; readonly offset: number } | undefined
}

/** A piece of a log. */
export interface LogChunk {
  /** The attempt that wrote it. An attempt after it begins with offset 0. */
  readonly attempt: number
  /** Position of the first byte in the output of that attempt. */
  readonly offset: number
  readonly bytes: Uint8Array
  /** The bytes as text. A character that is cut off is in the next chunk. */
  readonly text: string
}

export function readLog(connection: Connection, path: string, options: LogOptions): Promise<TaskLog> {
  return connection.tried({ signal: options.signal, isRepeatable: true }, () => readOnce(connection, path, options))
}

async function readOnce(connection: Connection, path: string, options: LogOptions): Promise<TaskLog> {
  const { stream, tail, signal, timeoutMs = connection.timeoutMs, maxBytes = DEFAULT_LOG_BYTES } = options
  const inTime = AbortSignal.timeout(timeoutMs)
  const ending = signal === undefined ? inTime : AbortSignal.any([signal, inTime])
  const name = `GET ${path}/logs`
  let begin = { attempt: 0, offset: 0, truncated: false }
  const parts: Uint8Array[] = []
  let length = 0
  try {
    const request = {
      ...{ path: `${path}/logs${queryText({ stream, tail })}`, isFollowed: false, onOpen: () => {}, signal: ending },
      onBegin: (begun: { attempt?: number; offset: number; truncated: boolean }) => {
        begin = { attempt: 0, ...begun }
      },
    }
    for await (const bytes of logStream(connection, request)) {
      parts.push(bytes.slice(0, maxBytes - length))
      length += bytes.length
      if (length > maxBytes) break
    }
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof TaskmillError) throw error
    if (!inTime.aborted) throw unreachable(name, connection.url, error)
    throw new TaskmillError(`${name}: not read within ${timeoutMs} ms`, { code: 'timeout' })
  }
  const bytes = joined(parts)
  const truncated = begin.truncated || length > maxBytes
  return { ...begin, truncated, bytes, text: new TextDecoder().decode(bytes) }
}

export async function* followLog(
  connection: Connection,
  path: string,
  { stream = 'stdout', tail, from, signal }: FollowLogOptions,
): AsyncGenerator<LogChunk, void> {
  const left = new AbortController()
  const reading = signal === undefined ? left.signal : AbortSignal.any([signal, left.signal])
  const patience = new Outage(connection, signal)
  const source = {
    open: connection.open.bind(connection),
    look: async (path: string) =>
      (await connection.call({ method: 'GET', path, signal: reading, isRepeatable: true, retryMs: 0 })).body as object,
  }
  let decoder = new TextDecoder()
  let decoded = 0
  try {
    for await (const piece of followedLog(source, { path, stream, tail, from, patience, signal: reading })) {
      if (piece.attempt !== decoded) decoder = new TextDecoder()
      decoded = piece.attempt
      yield { ...piece, text: decoder.decode(piece.bytes, { stream: true }) }
    }
  } finally {
    left.abort()
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}
