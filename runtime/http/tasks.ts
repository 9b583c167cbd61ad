/** /api/v1/tasks: submit, list, get, wait, events, kill, delete. */

import type { AnyElysia } from 'elysia'
import { messageOf } from '../../shared/contract/errors.ts'
import {
  DryRunResponse,
  EventRecord,
  SubmitTaskResponse,
  TaskListResponse,
  TaskStatusResponse,
} from '../../shared/contract/runtime.ts'
import { SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'
import {
  hasEnded,
  RUNTIME_STATUSES,
  type RuntimeStatus,
  WAIT_FOR_HEADER,
} from '../../shared/contract/runtime-status.ts'
import { Type } from '../../shared/contract/schema-builder.ts'
import { BAR_HEADER, NOT_AFTER_HEADER } from '../../shared/contract/submission-lease.ts'
import { parseIp } from '../../shared/egress/ip-address.ts'
import { callerOf, whileAllowed } from '../../shared/http/callers.ts'
import { headerText } from '../../shared/http/header-text.ts'
import { anyText, choice, described, empty, json, truth, wholeNumber } from '../../shared/http/openapi/route.ts'
import { readBody } from '../../shared/http/request-body.ts'
import { traceIdOf } from '../../shared/http/service.ts'
import { WRITE_TIMEOUT_SECONDS } from '../../shared/http/time-limits.ts'
import { isTaskId } from '../../shared/request/validate.ts'
import type { ServiceAddresses } from '../egress/service-addresses.ts'
import { taskDir } from '../files/task-dir.ts'
import type { ServiceAddress } from '../plan/authority.ts'
import { invalidInput } from '../refusal.ts'
import type { LiveTask } from '../store/live-task.ts'
import { readOutput } from '../store/shown-output.ts'
import { eventRecord, listedResponse, statusResponse } from '../store/status-response.ts'
import type { TaskStore } from '../store/task-store.ts'
import type { TaskRow } from '../store/tasks.ts'
import type { Kills } from '../tasks/kill.ts'
import { barredTask, type LateSubmissions } from '../tasks/late-submissions.ts'
import type { OwnersCall } from '../tasks/owner.ts'
import type { Retention } from '../tasks/retention.ts'
import type { Submissions } from '../tasks/submit.ts'
import type { WaitingQueue } from '../tasks/waiting-queue.ts'
import { knownTask, params, section, unknownTask } from './known-task.ts'
import { truthOf, wholeNumberOf } from './query-values.ts'

/** Longest wait of `?wait_ms=N`. A client that wants to wait longer asks again. */
export const MAX_WAIT_MS = 60_000

/** Tasks per page. */
const DEFAULT_PAGE = 100
const MAX_PAGE = 1_000

export interface TaskRoutes {
  readonly submissions: Pick<Submissions, 'submit' | 'dryRun'>
  readonly kills: Pick<Kills, 'kill'>
  readonly late: Pick<LateSubmissions, 'bar' | 'clock'>
  readonly retention: Pick<Retention, 'delete'>
  readonly queue: Pick<WaitingQueue<LiveTask>, 'waitsFor'>
  readonly store: TaskStore
  /** Absolute. */
  readonly dataDir: string
  readonly maxBodyBytes: number
  /** The addresses of services that no task with rules for its network reaches. */
  readonly services: Pick<ServiceAddresses, 'add'>
}

const owner = { 'X-Service-Owner': 'The owner of the task. Needed if the task has a control_context.owner.' }

const EXAMPLE = { execution: { kind: 'script', script: 'echo hello' }, limits: { wall_time_ms: 10_000 } }

export const addTaskRoutes = (
  app: AnyElysia,
  { submissions, kills, late, retention, queue, store, dataDir, maxBodyBytes, services }: TaskRoutes,
): AnyElysia => {
  const known = (id: string): TaskRow => knownTask(store, id)
  const waitingFor = ({ status, task_id }: TaskRow) => {
    const waiting_for = status === 'accepted' ? queue.waitsFor(task_id) : undefined
    return waiting_for === undefined ? {} : { waiting_for }
  }
  const statusOf = (row: TaskRow): TaskStatusResponse => {
    if (!hasEnded(row.status)) store.expose()
    const dir = taskDir(dataDir, row.task_id)
    return { ...statusResponse(row, dir, readOutput(row, dir)), ...waitingFor(row) }
  }
  const barIfUnknown = async (id: string): Promise<void> => {
    await store.decided(id)
    // No submission can have another id, and what is kept of a bar stays short.
    if (isTaskId(id) && store.get(id) === undefined && late.bar(id)) throw barredTask(id)
  }
  return app
    .post(
      '/api/v1/tasks',
      async ({ query, set, request }): Promise<SubmitTaskResponse | DryRunResponse> => {
        const isDryRun = truthOf('dry_run', query.dry_run)
        const body = await readBody(app, request, maxBodyBytes)
        const control = controlAddress(request, app.server?.requestIP(request)?.address)
        if (control !== undefined) services.add(control)
        if (isDryRun) return { execution_plan: await submissions.dryRun(body), fits: true }
        const task_id = await submissions.submit(body, traceIdOf(set), {
          notAfter: request.headers.get(NOT_AFTER_HEADER) ?? undefined,
          by: callerOf(request),
        })
        return { task_id, handle_id: task_id, status: 'accepted' }
      },
      described({
        section,
        right: 'submit',
        summary: 'Submit a task',
        description: 'Answers once the task is on disk.',
        query: {
          dry_run: truth('Only check: answer with the plan or the refusal, and keep nothing.'),
        },
        headers: {
          'X-Service-Control-Port':
            'The port of the control service that calls. No task with network rules reaches it.',
          'X-Service-Not-After':
            'Until when the task may be accepted: clock of GET /healthz, "+", and milliseconds since then.',
        },
        body: SubmitTaskRequest,
        example: EXAMPLE,
        answers: {
          200: {
            ...json(Type.Union([SubmitTaskResponse, DryRunResponse]), 'The task is accepted, or would be.'),
            links: {
              'Read a task': { parameter: 'id', field: 'task_id' },
              'Kill a task': { parameter: 'id', field: 'task_id' },
            },
          },
        },
        errors: {
          400: 'The request is invalid, the host cannot do what it asks for, or it exceeds the capacity or the quota.',
          409: 'There is a task with this id, X-Service-Not-After is over, or a kill has barred the id.',
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
          tasks: page.map((row) => ({ ...listedResponse(row, taskDir(dataDir, row.task_id)), ...waitingFor(row) })),
          ...(rows.length > limit && { next_cursor: String(page.at(-1)!.ordinal) }),
          ...(store.fault !== undefined && { storage_fault: messageOf(store.fault) }),
        }
      },
      described({
        section,
        right: 'read',
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
        // A caller that hears 404 may run the task elsewhere.
        if (store.get(params.id) === undefined) await store.decided(params.id)
        const row = known(params.id)
        const waitMs = waitOf(query.wait_ms)
        const isForStart = request.headers.get(WAIT_FOR_HEADER) === 'start'
        const isThere = hasEnded(row.status) || (isForStart && row.started_at !== null)
        if (waitMs === 0 || isThere) return statusOf(row)
        app.server?.timeout(request, Math.ceil(waitMs / 1000) + WRITE_TIMEOUT_SECONDS)
        const task = store.liveTask(row.task_id)
        const hasEndedNow = await endedWithin(task, waitMs, whileAllowed(request), isForStart)
        return (hasEndedNow ? task?.finalStatus : undefined) ?? statusOf(known(params.id))
      },
      described({
        section,
        right: 'read',
        summary: 'Read a task',
        params,
        query: { wait_ms: wholeNumber(0, MAX_WAIT_MS, 'Milliseconds to wait for the end of the task. Default 0.') },
        headers: { 'X-Service-Wait-For': 'start: wait_ms also ends when the process of the task was started.' },
        answers: { 200: json(TaskStatusResponse, 'The status of the task, with the beginning of its output.') },
        errors: { 400: 'wait_ms is invalid.', ...unknownTask, 503: 'The acceptance of the task is not decided yet.' },
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
        right: 'read',
        summary: 'Read the events of a task',
        params,
        answers: { 200: json(Type.Array(EventRecord), 'What happened to the task, in order.') },
        errors: unknownTask,
      }),
    )
    .post(
      '/api/v1/tasks/:id/kill',
      async ({ params, request, set }) => {
        if (request.headers.get(BAR_HEADER) === 'true') await barIfUnknown(params.id)
        known(params.id)
        await kills.kill({ taskId: params.id, ...claimIn(request), traceId: traceIdOf(set) })
        return statusOf(known(params.id))
      },
      described({
        section,
        right: 'cancel',
        summary: 'Kill a task',
        description: 'The task gets SIGTERM, then SIGKILL. The answer is its present status, usually still running.',
        params,
        headers: {
          ...owner,
          'X-Service-Bar': 'true: later submissions of the id are refused for a minute if there is no such task.',
        },
        answers: { 200: json(TaskStatusResponse, 'The kill survives a crash of the service.') },
        errors: {
          403: 'The owner is missing or another one, or the task is that of another token.',
          ...unknownTask,
          503: 'The service cannot store the kill. The task continues.',
        },
      }),
    )
    .delete(
      '/api/v1/tasks/:id',
      async ({ params, request, set }) => {
        app.server?.timeout(request, 0) // removing a large workspace has no time limit
        await retention.delete({ taskId: params.id, ...claimIn(request), traceId: traceIdOf(set) })
        set.status = 204
        delete set.headers['content-type']
      },
      described({
        section,
        right: 'operate',
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

/** The address of the control service that calls; undefined for other callers. */
function controlAddress(request: Request, peer: string | undefined): ServiceAddress | undefined {
  const port = Number(/^\d{1,5}$/.exec(request.headers.get('x-service-control-port') ?? '')?.[0])
  const address = peer === undefined ? undefined : parseIp(peer)
  return port >= 1 && port <= 65_535 && address !== undefined ? { address, port } : undefined
}

/** Who calls, and the owner that it claims to be. A caller with a name need not claim its own. */
function claimIn(request: Request): Pick<OwnersCall, 'owner' | 'by'> {
  const by = callerOf(request)
  const owner = request.headers.get('x-service-owner')
  return { by, owner: owner === null ? (by?.grant.name ?? null) : headerText(owner) }
}

/** Whether the task has ended. False after `ms`, when the caller is gone, or with `isForStart` when the task was started. */
async function endedWithin(
  task: LiveTask | undefined,
  ms: number,
  gone: AbortSignal,
  isForStart: boolean,
): Promise<boolean> {
  const late = Promise.withResolvers<undefined>()
  const giveUp = () => late.resolve(undefined)
  const timer = setTimeout(giveUp, ms)
  gone.addEventListener('abort', giveUp, { once: true })
  if (isForStart) void task?.started.then(giveUp)
  const row = await Promise.race([task?.ended, late.promise])
  clearTimeout(timer)
  return row !== undefined
}

function waitOf(text: string | undefined): number {
  return text === undefined ? 0 : wholeNumberOf('wait_ms', text, 0, MAX_WAIT_MS)
}

const pageSizeOf = (text: string | undefined): number =>
  text === undefined ? DEFAULT_PAGE : wholeNumberOf('limit', text, 1, MAX_PAGE)

const cursorOf = (text: string | undefined): number =>
  text === undefined ? 0 : wholeNumberOf('cursor', text, 0, Number.MAX_SAFE_INTEGER)

function statusFilterOf(text: string | undefined): RuntimeStatus | null {
  if (text === undefined) return null
  if ((RUNTIME_STATUSES as readonly string[]).includes(text)) return text as RuntimeStatus
  throw invalidInput(`invalid status "${text}": expected ${RUNTIME_STATUSES.join(', ')}`)
}
