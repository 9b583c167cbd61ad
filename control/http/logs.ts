/** /tasks/{id}/logs: the output of a task as text, also while it is written. */
import { type AnyElysia, t } from 'elysia'
import { badRequest } from '../../shared/errors.ts'
import { traceIdOf, WRITE_TIMEOUT_SECONDS } from '../../shared/http-service.ts'
import { nearestName } from '../../shared/nearest-name.ts'
import { didYouMean } from '../../shared/unknown-names.ts'
import { LOG_STREAMS, type LogStream } from '../graph/log-page.ts'
import type { OperationParts } from '../operations/parts.ts'
import { openTaskLog, type TaskLog, type TaskLogRequest } from '../operations/task-log.ts'

/** Most lines of `tail`. */
export const MAX_TAIL_LINES = 100_000

/** Told of a reader who waits for output, or has some to take. */
interface Patience {
  waits(): void
  takes(): void
}

const logQuery = t.Object(
  { stream: t.Optional(t.String()), follow: t.Optional(t.String()), tail: t.Optional(t.String()) },
  { additionalProperties: true },
)

export function addLogRoutes(app: AnyElysia, parts: OperationParts): void {
  app.get(
    '/tasks/:id/logs',
    async ({ params, query, request, set }) => {
      const asked = logRequest(query)
      const gone = new AbortController()
      const reader = { traceId: traceIdOf(set), signal: AbortSignal.any([request.signal, gone.signal]) }
      // A task may be silent for hours. Who does not take what it writes is cut off.
      const patience: Patience = {
        waits: () => app.server?.timeout(request, asked.follow ? 0 : WRITE_TIMEOUT_SECONDS),
        takes: () => app.server?.timeout(request, WRITE_TIMEOUT_SECONDS),
      }
      patience.waits()
      return logResponse(await openTaskLog(parts, params.id, asked, reader), patience, () => gone.abort())
    },
    { query: logQuery },
  )
}

function logResponse(log: TaskLog, patience: Patience, leave: () => void): Response {
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      patience.waits()
      const bytes = await log.next()
      patience.takes()
      if (bytes === undefined) controller.close()
      else controller.enqueue(bytes)
    },
    cancel: leave,
  })
  return new Response(stream, {
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      'x-task-status': log.status,
      'x-log-truncated': String(log.isTruncated),
      ...(log.attempt > 0 && { 'x-task-attempt': String(log.attempt) }),
    },
  })
}

/** Throws 400 with the parameter, its value and the allowed values. */
function logRequest({ stream = 'stdout', follow, tail }: typeof logQuery.static): TaskLogRequest {
  return { stream: streamOf(stream), follow: truthOf('follow', follow), tail: tailOf(tail) }
}

function streamOf(text: string): LogStream {
  const stream = LOG_STREAMS.find((known) => known === text)
  if (stream !== undefined) return stream
  const expected = `${LOG_STREAMS.join(' or ')}${didYouMean(nearestName(text, LOG_STREAMS))}`
  throw badRequest(`invalid stream ${JSON.stringify(text)}: expected ${expected}`)
}

/** A parameter without a value is true. */
function truthOf(name: string, text = 'false'): boolean {
  if (text === 'true' || text === '1' || text === '') return true
  if (text === 'false' || text === '0') return false
  throw badRequest(`invalid ${name} ${JSON.stringify(text)}: expected true or false`)
}

function tailOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const lines = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN
  if (lines <= MAX_TAIL_LINES) return lines
  throw badRequest(`invalid tail ${JSON.stringify(text)}: expected a number of lines from 0 to ${MAX_TAIL_LINES}`)
}
