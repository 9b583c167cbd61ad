/** The stream of a log, from the client's side: as events, whose comments show that the service is there, or as plain bytes. */
import { EVENT_STREAM, LOG_BEGIN, LOG_BYTES, type LogBegin } from '../contract/followed-log.ts'
import { isObject, jsonOrUndefined } from '../text/json.ts'
import { EventSplitter } from './server-sent-events.ts'
import { SilenceLimit } from './silence-limit.ts'
import { chunksOf, type StreamSource } from './source.ts'

/** Bytes of one event. The service sends pieces of at most some MiB, in base64. */
const MAX_EVENT_BYTES = 64 * 1024 * 1024

export interface LogStreamRequest {
  readonly path: string
  /** Whether the log is followed. An older service answers with plain bytes even so. */
  readonly isFollowed: boolean
  /** The service has answered. */
  readonly onOpen: () => void
  readonly onBegin: (begin: Pick<LogBegin, 'attempt' | 'offset' | 'truncated'>) => void
  readonly signal: AbortSignal
}

/** The bytes of the log. Throws what `open` throws, or the error of the connection. */
export async function* logStream(source: StreamSource, request: LogStreamRequest): AsyncGenerator<Uint8Array> {
  const { path, isFollowed, onOpen, onBegin, signal } = request
  const silence = new SilenceLimit()
  const asked = isFollowed ? { accept: `${EVENT_STREAM}, text/plain;q=0.5` } : {}
  try {
    const { stream, headers } = await source.open(path, asked, AbortSignal.any([signal, silence.signal]))
    onOpen()
    if (headers.get('content-type')?.startsWith(EVENT_STREAM) !== true) {
      onBegin(beginOf(headers))
      yield* chunksOf(stream)
      return
    }
    silence.begin()
    const splitter = new EventSplitter(MAX_EVENT_BYTES)
    for await (const chunk of chunksOf(stream)) {
      silence.begin()
      for (const { type, data } of splitter.events(chunk)) {
        if (type === LOG_BYTES) yield bytesOf(data)
        else if (type === LOG_BEGIN) onBegin(beginIn(data))
      }
    }
  } finally {
    silence.end()
  }
}

const beginOf = (headers: Headers) => ({
  attempt: Number(headers.get('x-task-attempt') ?? 0),
  offset: Number(headers.get('x-log-offset') ?? 0),
  truncated: headers.get('x-log-truncated') === 'true',
})

function beginIn(data: string) {
  const begin = jsonOrUndefined(data)
  const { attempt, offset, truncated } = (isObject(begin) ? begin : {}) as Partial<LogBegin>
  return { attempt: Number(attempt ?? 0), offset: Number(offset ?? 0), truncated: truncated === true }
}

/** The bytes that `base64` stands for. Browsers and Node 20 have no `fromBase64`. */
function bytesOf(base64: string): Uint8Array {
  if (Uint8Array.fromBase64 !== undefined) return Uint8Array.fromBase64(base64)
  const characters = atob(base64)
  const bytes = new Uint8Array(characters.length)
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i)
  return bytes
}
