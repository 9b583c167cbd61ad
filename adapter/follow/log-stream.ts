/** The stream of a log, from the client's side: as events, whose comments show that the service is there, or as plain bytes. */
import { EVENT_STREAM, LOG_BEGIN, LOG_BYTES, type LogBegin } from '../../shared/contract/followed-log.ts'
import type { ServiceClient } from '../../shared/http-client.ts'
import { isObject, jsonOrUndefined } from '../../shared/json.ts'
import { EventSplitter } from '../../shared/server-sent-events.ts'
import { SilenceLimit } from './silence-limit.ts'

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

/** The bytes of the log. Throws `CallFailed`, or the error of the connection. */
export async function* logStream(client: ServiceClient, request: LogStreamRequest): AsyncGenerator<Uint8Array> {
  const { path, isFollowed, onOpen, onBegin, signal } = request
  const silence = new SilenceLimit()
  const asked = isFollowed ? { accept: `${EVENT_STREAM}, text/plain;q=0.5` } : {}
  try {
    const { stream, headers } = await client.open(path, asked, AbortSignal.any([signal, silence.signal]))
    onOpen()
    if (headers.get('content-type')?.startsWith(EVENT_STREAM) !== true) {
      onBegin(beginOf(headers))
      yield* stream
      return
    }
    silence.begin()
    const splitter = new EventSplitter(MAX_EVENT_BYTES)
    for await (const chunk of stream) {
      silence.begin()
      for (const { type, data } of splitter.events(chunk)) {
        if (type === LOG_BYTES) yield Buffer.from(data, 'base64')
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
