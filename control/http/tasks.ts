/** /tasks: submit, list, look at, cancel, delete. */
import { type AnyElysia, t } from 'elysia'
import type { CancelResponse } from '../../shared/contract/control.ts'
import { ServiceError } from '../../shared/errors.ts'
import { addBusyRoute, type HttpServiceOptions, readBody, WRITE_TIMEOUT_SECONDS } from '../../shared/http-service.ts'
import { nextTurn, SLICE_MS } from '../../shared/slices.ts'
import { taskRecord } from '../graph/record.ts'
import { ResultFile, type StoredResult } from '../graph/result-file.ts'
import type { Task } from '../graph/task.ts'
import { cancelTask } from '../scheduler/cancel.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'
import { type Intake, submitGraph } from '../scheduler/submit.ts'
import type { IdempotencyKeys } from '../store/idempotency.ts'
import type { Persistence } from '../store/persistence.ts'
import type { ResultFiles } from '../store/result-files.ts'
import type { TaskStore } from '../store/tasks.ts'

/** Longest wait of `GET /tasks/{id}?wait_ms=N`; a client that wants more asks again. */
export const MAX_WAIT_MS = 60_000

export interface TaskRoutes {
  readonly intake: Intake
  readonly store: TaskStore
  readonly scheduler: Scheduler
  readonly persistence: Persistence
  readonly idempotencyKeys: IdempotencyKeys
  readonly resultFiles: ResultFiles
  readonly maxBodyBytes: number
}

export function addTaskRoutes(
  app: AnyElysia,
  service: HttpServiceOptions,
  { intake, store, scheduler, persistence, idempotencyKeys, resultFiles, maxBodyBytes }: TaskRoutes,
): void {
  addBusyRoute(app, service, {
    ...{ path: '/tasks', method: 'POST', status: 202 },
    async answer(request, traceId) {
      const graph = await readBody(app, request, maxBodyBytes)
      const key = request.headers.get('idempotency-key')
      return idempotencyKeys.once({ scope: 'tasks', key, body: graph }, (sent) =>
        submitGraph(intake, graph, traceId, sent),
      )
    },
  })
  app
    .get('/tasks', () => listTasks({ store, persistence, resultFiles }))
    .get(
      '/tasks/:id',
      async ({ params, query, request }) => {
        const task = known(store, params.id)
        const waitMs = waitOf(query.wait_ms)
        if (waitMs > 0) {
          app.server?.timeout(request, Math.ceil(waitMs / 1000) + WRITE_TIMEOUT_SECONDS)
          const late = AbortSignal.any([request.signal, AbortSignal.timeout(waitMs)])
          await store.whenEnded(task, late)
        }
        persistence.expose()
        return recordJson(known(store, params.id), resultFiles)
      },
      { query: t.Object({ wait_ms: t.Optional(t.String()) }, { additionalProperties: true }) },
    )
    .post(
      '/tasks/:id/cancel',
      async ({ params, set }): Promise<CancelResponse> => {
        const tasks = await cancelTask({ scheduler, persistence }, known(store, params.id))
        set.status = 202
        return { tasks }
      },
      { parse: 'none' },
    )
    .delete('/tasks/:id', async ({ params, set }) => {
      const task = known(store, params.id)
      persistence.ensureKeeping()
      scheduler.delete(task)
      await persistence.durable()
      set.status = 204
      delete set.headers['content-type']
    })
}

/** The task that callers see under `id`, or 404. */
function known(store: TaskStore, id: string): Task {
  const task = store.get(id)
  if (task === undefined) throw new ServiceError(404, `task not found: ${id}`)
  return task
}

function waitOf(text: string | undefined): number {
  if (text === undefined) return 0
  const ms = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (ms <= MAX_WAIT_MS) return ms
  throw new ServiceError(400, `invalid wait_ms "${text}": expected milliseconds from 0 to ${MAX_WAIT_MS}`)
}

/** A task as JSON; a result that lies in a file is put in. */
function recordJson(task: Task, resultFiles: ResultFiles): string | Promise<string> {
  const { result } = task
  return result instanceof ResultFile ? withResult(task, resultFiles.read(result)) : JSON.stringify(taskRecord(task))
}

/** A result that is lost is said to be: in `error`, after what is there. */
async function withResult(task: Task, reading: Promise<StoredResult>): Promise<string> {
  const { result_file, ...record } = taskRecord(task)
  const result = await reading
  if ('json' in result) return `${JSON.stringify(record).slice(0, -1)},"result":${result.json}}`
  const { error } = record
  return JSON.stringify({ ...record, error: error === undefined ? result.lost : `${error}; ${result.lost}` })
}

/** Characters of records that are handed to the socket at once. */
const CHUNK_CHARACTERS = 64 * 1024

/** All tasks as one JSON array, made while it is read: a slow reader holds no copy of it. */
function listTasks({
  store,
  persistence,
  resultFiles,
}: Pick<TaskRoutes, 'store' | 'persistence' | 'resultFiles'>): Response {
  const tasks = store.visibleTasks()
  const encoder = new TextEncoder()
  const deadline = performance.now() + WRITE_TIMEOUT_SECONDS * 1000
  let separator = '['
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await nextTurn() // others first: whoever reads fast would have us do nothing else
      if (performance.now() > deadline) throw new Error(`the list was not read within ${WRITE_TIMEOUT_SECONDS} s`)
      let text = ''
      persistence.expose()
      const sliceEnd = performance.now() + SLICE_MS
      while (text.length < CHUNK_CHARACTERS && performance.now() < sliceEnd) {
        const next = tasks.next()
        if (next.done) {
          controller.enqueue(encoder.encode(`${text}${separator === '[' ? '[' : ''}]`))
          controller.close()
          return
        }
        const json = recordJson(next.value, resultFiles)
        text += separator + (typeof json === 'string' ? json : await json)
        separator = ','
      }
      controller.enqueue(encoder.encode(text))
    },
    cancel: () => void tasks.return(undefined),
  })
  return new Response(stream, { headers: { 'content-type': 'application/json' } })
}
