/** A followed log as server-sent events. A comment follows whenever nothing else was sent for a while. */
import { EVENT_STREAM, LOG_BEGIN, LOG_BYTES, type LogBegin } from '../../shared/contract/followed-log.ts'
import type { TaskLog } from '../operations/task-log.ts'
import { KEEP_ALIVE_TEXT, OPEN_TEXT } from './event-text.ts'
import { PendingValue } from './pending-value.ts'

/** Is told when a reader waits for output, and when it has output to read. */
export interface Patience {
  waits(): void
  takes(): void
}

export const acceptsEvents = (request: Request): boolean => (request.headers.get('accept') ?? '').includes(EVENT_STREAM)

/**
 * Answers once the log has begun, or after `keepAliveMs`: a task may be silent for hours, and the headers must not be late.
 * Throws what `opening` throws until then. Later its fault breaks the connection.
 */
export async function logEventResponse(
  opening: Promise<TaskLog>,
  patience: Patience,
  leave: () => void,
  keepAliveMs: number,
): Promise<Response> {
  await new PendingValue(opening).within(keepAliveMs)
  let log: TaskLog | undefined
  const read = async (): Promise<Uint8Array | undefined> => {
    if (log === undefined) {
      log = await opening
      return beginText(log)
    }
    const bytes = await log.next()
    return bytes === undefined ? undefined : eventText(LOG_BYTES, Buffer.from(bytes).toString('base64'))
  }
  let reading: PendingValue<Uint8Array | undefined> | undefined
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(OPEN_TEXT),
    async pull(controller) {
      patience.waits()
      reading ??= new PendingValue(read())
      const next = await reading.within(keepAliveMs)
      patience.takes()
      if (next === undefined) {
        controller.enqueue(KEEP_ALIVE_TEXT)
        return
      }
      reading = undefined
      if (next.value === undefined) controller.close()
      else controller.enqueue(next.value)
    },
    cancel: leave,
  })
  return new Response(body, { headers: HEADERS })
}

const HEADERS = {
  'content-type': `${EVENT_STREAM}; charset=utf-8`,
  'cache-control': 'no-store',
  'x-accel-buffering': 'no', // nginx would hold events back
}

const encoder = new TextEncoder()

const eventText = (event: string, data: string): Uint8Array => encoder.encode(`event: ${event}\ndata: ${data}\n\n`)

function beginText({ status, attempt, offset, linesBefore, isTruncated }: TaskLog): Uint8Array {
  const begin: LogBegin = {
    ...{ status, ...(attempt > 0 && { attempt }), offset },
    ...(linesBefore !== undefined && { lines_before: linesBefore }),
    truncated: isTruncated,
  }
  return eventText(LOG_BEGIN, JSON.stringify(begin))
}
