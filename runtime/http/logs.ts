/** /api/v1/tasks/{id}/logs: the output of a task, whole or in parts, also while it is written. */
import type { AnyElysia } from 'elysia'
import { endingWithToken } from '../../shared/http/callers.ts'
import { choice, described, other, truth, wholeNumber } from '../../shared/http/openapi/route.ts'
import { WRITE_TIMEOUT_SECONDS } from '../../shared/http/time-limits.ts'
import { taskDir } from '../files/task-dir.ts'
import { invalidInput } from '../refusal.ts'
import { logStream } from '../store/log-stream.ts'
import { tailStart, unreadableOutput } from '../store/shown-output.ts'
import type { TaskStore } from '../store/task-store.ts'
import { knownTask, params, section, unknownTask } from './known-task.ts'
import { truthOf, wholeNumberOf } from './query-values.ts'

/** Most lines of `tail`. */
const MAX_TAIL_LINES = 100_000

export interface LogRoutes {
  readonly store: TaskStore
  /** Absolute. */
  readonly dataDir: string
}

export const addLogRoute = (app: AnyElysia, { store, dataDir }: LogRoutes): AnyElysia =>
  app.get(
    '/api/v1/tasks/:id/logs',
    async ({ params, query, request }) => {
      const row = knownTask(store, params.id)
      const stream = streamOf(query.stream)
      const path = taskDir(dataDir, row.task_id)[`${stream}_path`]
      const live = store.liveTask(row.task_id)
      const length = () => (live?.row ?? row)[`${stream}_bytes`]
      const isFollowing = truthOf('follow', query.follow)
      const { offset, tail, limit } = logRangeOf(query)
      // No limit while following: output keeps the connection alive, and a closed connection ends it.
      app.server?.timeout(request, isFollowing ? 0 : WRITE_TIMEOUT_SECONDS)
      const ended = isFollowing ? live?.ended : undefined
      try {
        const from = tail === undefined ? offset : await tailStart(path, tail, length())
        const headers = { 'content-type': 'text/plain; charset=utf-8', 'x-log-offset': String(from) }
        const answer = new Response(logStream(path, { from, limit, length, ended }), { headers })
        return isFollowing ? endingWithToken(request, answer) : answer
      } catch (error) {
        throw unreadableOutput(error)
      }
    },
    described({
      section,
      right: 'read',
      summary: 'Read the output of a task',
      params,
      query: {
        stream: choice(STREAMS, 'Default stdout.'),
        follow: truth('Continue until the task has ended. Default false.'),
        offset: wholeNumber(0, Number.MAX_SAFE_INTEGER, 'Begin with this byte. Default 0. Not together with tail.'),
        tail: wholeNumber(0, MAX_TAIL_LINES, 'Begin with so many of the last lines.'),
        limit: wholeNumber(1, Number.MAX_SAFE_INTEGER, 'At most so many bytes. Default: all.'),
      },
      answers: {
        200: other(
          'text/plain; charset=utf-8',
          'The bytes of the stream, as they are. X-Log-Offset is the position of the first one.',
        ),
      },
      errors: { 400: 'A parameter is invalid.', ...unknownTask, 503: 'The output cannot be read now.' },
    }),
  )

/** The part of a log to read: from a byte on, or its last lines, and a maximum of bytes. */
function logRangeOf({ offset, tail, limit }: Record<string, string | undefined>) {
  if (offset !== undefined && tail !== undefined) throw invalidInput('offset and tail exclude each other')
  return {
    offset: offset === undefined ? 0 : wholeNumberOf('offset', offset, 0, Number.MAX_SAFE_INTEGER),
    tail: tail === undefined ? undefined : wholeNumberOf('tail', tail, 0, MAX_TAIL_LINES),
    limit: limit === undefined ? undefined : wholeNumberOf('limit', limit, 1, Number.MAX_SAFE_INTEGER),
  }
}

const STREAMS = ['stdout', 'stderr']

function streamOf(text = 'stdout'): 'stdout' | 'stderr' {
  if (text === 'stdout' || text === 'stderr') return text
  throw invalidInput(`invalid stream "${text}": expected stdout or stderr`)
}
