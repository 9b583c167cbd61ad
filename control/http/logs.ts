/** /tasks/{id}/logs: the output of a task as text, also while it is written. The same below /graphs/{id}. */
import type { AnyElysia } from 'elysia'
import { badRequest } from '../../shared/contract/errors.ts'
import { EVENT_STREAM } from '../../shared/contract/followed-log.ts'
import { endingWithToken } from '../../shared/http/callers.ts'
import { type Answer, choice, described, other, type QueryOf, wholeNumber } from '../../shared/http/openapi/route.ts'
import { traceIdOf } from '../../shared/http/service.ts'
import { WRITE_TIMEOUT_SECONDS } from '../../shared/http/time-limits.ts'
import { didYouMean } from '../../shared/request/unknown-names.ts'
import { nearestName } from '../../shared/text/nearest-name.ts'
import { openTaskLog, type TaskLog, type TaskLogRequest } from '../operations/task-log.ts'
import type { PartsFor } from '../operations/tenant-view.ts'
import { LOG_STREAMS, type LogStream } from '../rules/log-page.ts'
import { acceptsEvents, logEventResponse, type Patience } from './log-events.ts'
import type { StreamLimits } from './stream-limits.ts'
import { TASK_PLACES, type TaskPlace } from './task-places.ts'

/** Most lines of `tail`. */
export const MAX_TAIL_LINES = 100_000

const logQuery = {
  stream: choice(LOG_STREAMS, 'Default stdout. Empty for a task without that stream.'),
  follow: choice(
    ['true', 'attempt', 'false', '1', '0', ''],
    'true: continue until the task has ended. attempt: until the attempt has ended. Default false.',
  ),
  tail: wholeNumber(0, MAX_TAIL_LINES, 'Begin with this many last lines. Default: all that is kept.'),
  offset: wholeNumber(0, Number.MAX_SAFE_INTEGER, 'Begin at this byte. Excludes tail.'),
  attempt: wholeNumber(
    1,
    Number.MAX_SAFE_INTEGER,
    'The attempt that offset counts in. If a newer one has begun, the log begins with the first byte of that one.',
  ),
}

export function addLogRoutes(app: AnyElysia, partsFor: PartsFor, limits: StreamLimits): void {
  for (const place of TASK_PLACES) addLogRoute(app, partsFor, limits, place)
}

function addLogRoute(
  app: AnyElysia,
  partsFor: PartsFor,
  { keepAliveMs, slowClientMs }: StreamLimits,
  { path, noun, params, errors, addressIn }: TaskPlace,
): void {
  app.get(
    `${path}/logs`,
    async ({ params, query, request, set }) => {
      const asked = logRequest(query)
      const gone = new AbortController()
      const reader = { traceId: traceIdOf(set), signal: AbortSignal.any([request.signal, gone.signal]) }
      // A task may be silent for hours. A client that does not read its output is disconnected.
      const isFollower = asked.followUntil !== undefined
      const takeSeconds = isFollower ? Math.ceil(slowClientMs / 1_000) : WRITE_TIMEOUT_SECONDS
      const patience: Patience = {
        waits: () => app.server?.timeout(request, isFollower ? 0 : WRITE_TIMEOUT_SECONDS),
        takes: () => app.server?.timeout(request, takeSeconds),
      }
      patience.waits()
      const opening = openTaskLog(partsFor(request), addressIn(params), asked, reader)
      const leave = () => gone.abort()
      if (isFollower && acceptsEvents(request))
        return endingWithToken(request, await logEventResponse(opening, patience, leave, keepAliveMs))
      const answer = logResponse(await opening, patience, leave)
      return isFollower ? endingWithToken(request, answer) : answer
    },
    described({
      section: 'Tasks',
      right: 'read',
      summary: `Read the output of ${noun}`,
      description:
        'Also while the task runs. The log is that of the newest attempt. Who follows it and accepts text/event-stream gets events.',
      params,
      query: logQuery,
      headers: { Accept: 'text/event-stream: a followed log as events, with comments that keep the connection alive.' },
      answers: {
        200: logAnswer({
          'X-Task-Status': 'State of the task when the answer began.',
          'X-Task-Attempt': 'Number of the attempt whose output comes first. Absent before the first one.',
          'X-Log-Offset': 'Position of the first byte in the output of that attempt.',
          'X-Log-Truncated': 'true if the task has written more than is kept.',
        }),
      },
      errors: {
        400: 'A parameter is invalid.',
        ...errors,
        503: 'Too many logs are followed, or the output cannot be read.',
      },
    }),
  )
}

const logAnswer = (headers: Answer['headers']): Answer => ({
  ...other('text/plain; charset=utf-8', 'The bytes of the stream, as they are; or events that carry them.', headers),
  otherType: EVENT_STREAM,
})

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
      'x-log-offset': String(log.offset),
      ...(log.attempt > 0 && { 'x-task-attempt': String(log.attempt) }),
    },
  })
}

/** Throws 400 with the parameter, its value and the allowed values. */
function logRequest({ stream = 'stdout', follow, tail, offset, attempt }: QueryOf<typeof logQuery>): TaskLogRequest {
  if (tail !== undefined && offset !== undefined) throw badRequest('tail and offset exclude each other')
  if (attempt !== undefined && offset === undefined) throw badRequest('attempt says what offset counts in: give both')
  return {
    stream: streamOf(stream),
    start: tail === undefined ? { offset: positionOf('offset', offset, 0) ?? 0 } : { tail: tailOf(tail) },
    attempt: positionOf('attempt', attempt, 1),
    followUntil: followOf(follow),
  }
}

function streamOf(text: string): LogStream {
  const stream = LOG_STREAMS.find((known) => known === text)
  if (stream !== undefined) return stream
  const expected = `${LOG_STREAMS.join(' or ')}${didYouMean(nearestName(text, LOG_STREAMS))}`
  throw badRequest(`invalid stream ${JSON.stringify(text)}: expected ${expected}`)
}

/** A parameter without a value is true. */
function followOf(text = 'false'): TaskLogRequest['followUntil'] {
  if (text === 'true' || text === '1' || text === '') return 'task ended'
  if (text === 'attempt') return 'attempt ended'
  if (text === 'false' || text === '0') return undefined
  throw badRequest(`invalid follow ${JSON.stringify(text)}: expected true, attempt or false`)
}

function tailOf(text: string): number {
  const lines = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN
  if (lines <= MAX_TAIL_LINES) return lines
  throw badRequest(`invalid tail ${JSON.stringify(text)}: expected a number of lines from 0 to ${MAX_TAIL_LINES}`)
}

function positionOf(name: string, text: string | undefined, least: number): number | undefined {
  if (text === undefined) return undefined
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (number >= least && number <= Number.MAX_SAFE_INTEGER) return number
  throw badRequest(`invalid ${name} ${JSON.stringify(text)}: expected a whole number from ${least} on`)
}
