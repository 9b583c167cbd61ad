/** /api/v1/tasks: submit, list, get, wait, logs, events, kill, delete. */
import { Type } from '@sinclair/typebox'
import type { AnyElysia } from 'elysia'
import {
  DryRunResponse,
  EventRecord,
  SubmitTaskResponse,
  TaskListResponse,
  TaskStatusResponse,
} from '../../shared/contract/runtime.ts'
import { SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'
import { hasEnded, RUNTIME_STATUSES, type RuntimeStatus } from '../../shared/contract/runtime-status.ts'
import { headerText } from '../../shared/header-text.ts'
import { readBody, traceIdOf, WRITE_TIMEOUT_SECONDS } from '../../shared/http-service.ts'
import { anyText, choice, described, empty, json, other, wholeNumber } from '../../shared/openapi/route.ts'
import type { Kills } from '../dispatch/kill.ts'
import type { Retention } from '../dispatch/retention.ts'
import type { Submissions } from '../dispatch/submit.ts'
import type { WaitingQueue } from '../dispatch/waiting-queue.ts'
import { invalidInput, Refusal } from '../refusal.ts'
import { logStream } from '../store/log-stream.ts'
import { tailStart } from '../store/log-tail.ts'
import { readOutput } from '../store/output.ts'
import { eventRecord, statusResponse, summaryResponse } from '../store/status-response.ts'
import { taskDir } from '../store/task-dir.ts'
import type { LiveTask, TaskStore } from '../store/task-store.ts'
import type { TaskRow } from '../store/tasks.ts'

/** Longest wait of `?wait_ms=N`. A client that wants to wait longer asks again. */
export const MAX_WAIT_MS = 60_000

/** Most lines of `tail`. */
const MAX_TAIL_LINES = 100_000

/** Tasks per page. */
const DEFAULT_PAGE = 100
const MAX_PAGE = 1_000

export interface TaskRoutes {
  readonly submissions: Pick<Submissions, 'submit' | 'dryRun'>
  readonly kills: Pick<Kills, 'kill'>
  readonly retention: Pick<Retention, 'delete'>
  readonly queue: Pick<WaitingQueue<LiveTask>, 'waitsFor'>
  readonly store: TaskStore
  /** Absolute. */
  readonly dataDir: string
  readonly maxBodyBytes: number
}

const section = 'Tasks'
const params = { id: 'Id of the task.' }
const unknownTask = { 404: 'There is no such task.' }
const owner = { 'X-Service-Owner': 'The owner of the task. Needed if the task has a control_context.owner.' }

const EXAMPLE = { execution: { kind: 'script', script: 'echo hello' }, limits: { wall_time_ms: 10_000 } }

export const addTaskRoutes = (
  app: AnyElysia,
  { submissions, kills, retention, queue, store, dataDir, maxBodyBytes }: TaskRoutes,
): AnyElysia => {
  const known = (id: string): TaskRow => {
    const row = store.get(id)
    if (row === undefined) throw new Refusal('not_found', `task not found: ${id}`)
    return row
  }
  const waitingFor = ({ status, task_id }: TaskRow) => {
    const waiting_for = status === 'accepted' ? queue.waitsFor(task_id) : undefined
    return waiting_for === undefined ? {} : { waiting_for }
  }
  const statusOf = (row: TaskRow): TaskStatusResponse => {
    if (!hasEnded(row.status)) store.expose()
    const dir = taskDir(dataDir, row.task_id)
    return { ...statusResponse(row, dir, readOutput(row, dir)), ...waitingFor(row) }
  }
  return app
    .post(
      '/api/v1/tasks',
      async ({ query, set, request }): Promise<SubmitTaskResponse | DryRunResponse> => {
        const isDryRun = truthOf('dry_run', query.dry_run)
        const body = await readBody(app, request, maxBodyBytes)
        if (isDryRun) return { execution_plan: await submissions.dryRun(body), fits: true }
        const task_id = await submissions.submit(body, traceIdOf(set))
        return { task_id, handle_id: task_id, status: 'accepted' }
      },
      described({
        section,
        summary: 'Submit a task',
        description: 'Answers once the task is on disk.',
        query: {
          dry_run: choice(['true', 'false'], 'Only check: answer with the plan or the refusal, and keep nothing.'),
        },
        body: SubmitTaskRequest,
        example: EXAMPLE,
        answers: {
          200: json(Type.Union([SubmitTaskResponse, DryRunResponse]), 'The task is accepted, or would be.'),
        },
        errors: {
          400: 'The request is invalid, the host cannot do what it asks for, or it exceeds the capacity or the quota.',
          409: 'There is a task with this id.',
          413: 'The body is too large.',
          429: 'The queue is full.',
          503: 'The service cannot store the task.',
        },
      }),
    )
    .get(
      '/api/v1/tasks',
      ({ query }): TaskListResponse => {
        const limit = pageSizeOf(query.limit)
        const rows = store.list({
          status: statusFilterOf(query.status),
          tenant: query.tenant ?? null,
          afterOrdinal: cursorOf(query.cursor),
          limit: limit + 1,
        })
        const page = rows.slice(0, limit)
        return {
          tasks: page.map((row) => ({ ...summaryResponse(row, taskDir(dataDir, row.task_id)), ...waitingFor(row) })),
          ...(rows.length > limit && { next_cursor: String(page.at(-1)!.ordinal) }),
        }
      },
      described({
        section,
        summary: 'List tasks',
        description: 'In order of acceptance, without output.',
        query: {
          status: choice(RUNTIME_STATUSES, 'A state.'),
          tenant: anyText('Tasks of one tenant.'),
          limit: wholeNumber(1, MAX_PAGE, `Tasks of a page. Default ${DEFAULT_PAGE}.`),
          cursor: wholeNumber(
            0,
            Number.MAX_SAFE_INTEGER,
            'next_cursor of an earlier answer: continues after that page.',
          ),
        },
        answers: { 200: json(TaskListResponse, 'A page of tasks.') },
        errors: { 400: 'A parameter is invalid.' },
      }),
    )
    .get(
      '/api/v1/tasks/:id',
      async ({ params, query, request }) => {
        const row = known(params.id)
        const waitMs = waitOf(query.wait_ms)
        if (waitMs === 0 || hasEnded(row.status)) return statusOf(row)
        app.server?.timeout(request, Math.ceil(waitMs / 1000) + WRITE_TIMEOUT_SECONDS)
        const task = store.liveTask(row.task_id)
        const hasEndedNow = await endedWithin(task, waitMs, request.signal)
        return (hasEndedNow ? task?.finalStatus : undefined) ?? statusOf(known(params.id))
      },
      described({
        section,
        summary: 'Read a task',
        params,
        query: { wait_ms: wholeNumber(0, MAX_WAIT_MS, 'Milliseconds to wait for the end of the task. Default 0.') },
        answers: { 200: json(TaskStatusResponse, 'The status of the task, with the beginning of its output.') },
        errors: { 400: 'wait_ms is invalid.', ...unknownTask },
      }),
    )
    .get(
      '/api/v1/tasks/:id/events',
      ({ params }) => {
        const { task_id } = known(params.id)
        return store.events(task_id).map((event) => eventRecord(task_id, event))
      },
      described({
        section,
        summary: 'Read the events of a task',
        params,
        answers: { 200: json(Type.Array(EventRecord), 'What happened to the task, in order.') },
        errors: unknownTask,
      }),
    )
    .get(
      '/api/v1/tasks/:id/logs',
      async ({ params, query, request }) => {
        const { task_id } = known(params.id)
        const dir = taskDir(dataDir, task_id)
        const path = streamOf(query.stream) === 'stdout' ? dir.stdout_path : dir.stderr_path
        const isFollowing = truthOf('follow', query.follow)
        const { offset, tail, limit } = logRangeOf(query)
        const from = tail === undefined ? offset : await tailStart(path, tail)
        // No limit while following: output keeps the connection alive, and a closed connection ends it.
        app.server?.timeout(request, isFollowing ? 0 : WRITE_TIMEOUT_SECONDS)
        const ended = isFollowing ? store.liveTask(task_id)?.ended : undefined
        return new Response(logStream(path, { from, limit, ended }), {
          headers: { 'content-type': 'text/plain; charset=utf-8', 'x-log-offset': String(from) },
        })
      },
      described({
        section,
        summary: 'Read the output of a task',
        params,
        query: {
          stream: choice(STREAMS, 'Default stdout.'),
          follow: choice(['true', 'false'], 'Continue until the task has ended. Default false.'),
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
        errors: { 400: 'A parameter is invalid.', ...unknownTask },
      }),
    )
    .post(
      '/api/v1/tasks/:id/kill',
      async ({ params, request, set }) => {
        known(params.id)
        await kills.kill({ taskId: params.id, owner: claimedOwner(request), traceId: traceIdOf(set) })
        return statusOf(known(params.id))
      },
      described({
        section,
        summary: 'Kill a task',
        description: 'The task gets SIGTERM, then SIGKILL. The answer is its present status, usually still running.',
        params,
        headers: owner,
        answers: { 200: json(TaskStatusResponse, 'The kill survives a crash of the service.') },
        errors: {
          403: 'The owner is missing or another one.',
          ...unknownTask,
          503: 'The service cannot store the kill. The task continues.',
        },
      }),
    )
    .delete(
      '/api/v1/tasks/:id',
      async ({ params, request, set }) => {
        app.server?.timeout(request, 0) // removing a large workspace has no time limit
        await retention.delete({ taskId: params.id, owner: claimedOwner(request), traceId: traceIdOf(set) })
        set.status = 204
        delete set.headers['content-type']
      },
      described({
        section,
        summary: 'Remove a task',
        description: 'Removes a task that has ended, with its files. Its id is free again at once.',
        params,
        headers: owner,
        answers: { 204: empty('The task is removed.') },
        errors: {
          403: 'The owner is missing or another one.',
          ...unknownTask,
          409: 'The task has not ended.',
          503: 'The service cannot store the removal.',
        },
      }),
    )
}

/** The owner that the caller claims to be. */
function claimedOwner(request: Request): string | null {
  const owner = request.headers.get('x-service-owner')
  return owner === null ? null : headerText(owner)
}

/** Whether the task has ended. False after `ms`, or when the caller is gone. */
async function endedWithin(task: LiveTask | undefined, ms: number, gone: AbortSignal): Promise<boolean> {
  const late = Promise.withResolvers<undefined>()
  const giveUp = () => late.resolve(undefined)
  const timer = setTimeout(giveUp, ms)
  gone.addEventListener('abort', giveUp, { once: true })
  const row = await Promise.race([task?.ended, late.promise])
  clearTimeout(timer)
  return row !== undefined
}

function waitOf(text: string | undefined): number {
  return text === undefined ? 0 : wholeNumberOf('wait_ms', text, 0, MAX_WAIT_MS)
}

/** Where a log is read: from a byte on, or its last lines; so many bytes of it. */
function logRangeOf({ offset, tail, limit }: Record<string, string | undefined>) {
  if (offset !== undefined && tail !== undefined) throw invalidInput('offset and tail exclude each other')
  return {
    offset: offset === undefined ? 0 : wholeNumberOf('offset', offset, 0, Number.MAX_SAFE_INTEGER),
    tail: tail === undefined ? undefined : wholeNumberOf('tail', tail, 0, MAX_TAIL_LINES),
    limit: limit === undefined ? undefined : wholeNumberOf('limit', limit, 1, Number.MAX_SAFE_INTEGER),
  }
}

const pageSizeOf = (text: string | undefined): number =>
  text === undefined ? DEFAULT_PAGE : wholeNumberOf('limit', text, 1, MAX_PAGE)

const cursorOf = (text: string | undefined): number =>
  text === undefined ? 0 : wholeNumberOf('cursor', text, 0, Number.MAX_SAFE_INTEGER)

function wholeNumberOf(name: string, text: string, min: number, max: number): number {
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (number >= min && number <= max) return number
  throw invalidInput(`invalid ${name} "${text}": expected a whole number from ${min} to ${max}`)
}

function statusFilterOf(text: string | undefined): RuntimeStatus | null {
  if (text === undefined) return null
  if ((RUNTIME_STATUSES as readonly string[]).includes(text)) return text as RuntimeStatus
  throw invalidInput(`invalid status "${text}": expected ${RUNTIME_STATUSES.join(', ')}`)
}

const STREAMS = ['stdout', 'stderr']

function streamOf(text = 'stdout'): 'stdout' | 'stderr' {
  if (text === 'stdout' || text === 'stderr') return text
  throw invalidInput(`invalid stream "${text}": expected stdout or stderr`)
}

function truthOf(name: string, text = 'false'): boolean {
  if (text === 'true' || text === '1' || text === '') return true
  if (text === 'false' || text === '0') return false
  throw invalidInput(`invalid ${name} "${text}": expected true or false`)
}
