/** /tasks: submit, list, look at, cancel, delete. */
import { type AnyElysia, t } from 'elysia'
import type { CancelResponse } from '../../shared/contract/control.ts'
import { ServiceError } from '../../shared/errors.ts'
import { addBusyRoute, type HttpServiceOptions, readBody, WRITE_TIMEOUT_SECONDS } from '../../shared/http-service.ts'
import { nextTurn, runCooperatively, SLICE_MS } from '../../shared/steps.ts'
import { taskRecord } from '../graph/record.ts'
import { ResultFile, type StoredResult } from '../graph/result-file.ts'
import type { Task } from '../graph/task.ts'
import type { IdempotencyKeys } from '../journal/idempotency.ts'
import type { Persistence } from '../journal/persistence.ts'
import type { ResultFiles } from '../journal/result-files.ts'
import { cancelTask } from '../operations/cancel.ts'
import { type Intake, submitGraph } from '../operations/submit.ts'
import { graphsOf, isWanted, pageOf } from '../operations/task-filter.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'
import type { TaskStore } from '../store/tasks.ts'
import { taskListRequest, taskQuery } from './task-query.ts'

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
        submitGraph(intake, graph, { traceId, sent, caller: request }),
      )
    },
  })
  app
    .get(
      '/tasks',
      async ({ query }) => {
        const { filter, page } = taskListRequest(query, intake.executors.types)
        const parts = { store, persistence, resultFiles }
        if (page === undefined) {
          const found = store.visibleTasks(await runCooperatively(graphsOf(store, filter)))
          return listTasks(parts, found, (task) => isWanted(filter, task))
        }
        const { tasks, nextCursor } = await runCooperatively(pageOf(store, { filter, ...page }), PAGE.ms)
        const isListed = (task: Task) => store.isVisible(task) && isWanted(filter, task)
        const answer = await listTasks(parts, tasks.values(), isListed, PAGE)
        if (nextCursor !== undefined) answer.headers.set(NEXT_CURSOR_HEADER, nextCursor)
        return answer
      },
      { query: taskQuery },
    )
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
        persistence.flush()
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
      persistence.assertWritable()
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

/** Names the cursor of the next page; absent on the last. */
const NEXT_CURSOR_HEADER = 'x-next-cursor'

/** What is made of a list at a time, before others have a turn. */
interface Part {
  readonly characters: number
  readonly ms: number
}

/** Handed to the socket at once. */
const CHUNK: Part = { characters: 64 * 1024, ms: SLICE_MS }

/**
 * Of a page: 1,000 records of 2 KB, which take a few milliseconds. Such a page is an answer that is made at once, so
 * pages may be asked for ahead on one connection. A page that takes more than that is sent as a long list is.
 */
const PAGE: Part = { characters: 2 * 1024 * 1024, ms: 25 }

/**
 * The wanted of `tasks` as one JSON array, made while it is read: a slow reader holds no copy of it. What fits into
 * `firstPart` is made at once, as the server closes a connection on which a request arrives while the answer to another one
 * is under way.
 */
async function listTasks(
  { persistence, resultFiles }: Pick<TaskRoutes, 'persistence' | 'resultFiles'>,
  tasks: Iterator<Task>,
  wanted: (task: Task) => boolean,
  firstPart: Part = CHUNK,
): Promise<Response> {
  let separator = '['
  /** The next records, and whether they are the last. */
  const nextPart = async ({ characters, ms }: Part): Promise<{ text: string; isLast: boolean }> => {
    let text = ''
    for (;;) {
      persistence.flush()
      const sliceEnd = performance.now() + ms
      while (text.length < characters && performance.now() < sliceEnd) {
        const next = tasks.next()
        if (next.done) return { text: `${text}${separator === '[' ? '[' : ''}]`, isLast: true }
        if (!wanted(next.value)) continue
        const json = recordJson(next.value, resultFiles)
        text += separator + (typeof json === 'string' ? json : await json)
        separator = ','
      }
      if (text !== '') return { text, isLast: false }
      await nextTurn() // none of the tasks of this slice is wanted
    }
  }
  const headers = { 'content-type': 'application/json' }
  const first = await nextPart(firstPart)
  if (first.isLast) return new Response(first.text, { headers })

  const encoder = new TextEncoder()
  const deadline = performance.now() + WRITE_TIMEOUT_SECONDS * 1000
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encoder.encode(first.text)),
    async pull(controller) {
      await nextTurn() // a client that reads fast must not hold up other requests
      if (performance.now() > deadline) throw new Error(`the list was not read within ${WRITE_TIMEOUT_SECONDS} s`)
      const { text, isLast } = await nextPart(CHUNK)
      controller.enqueue(encoder.encode(text))
      if (isLast) controller.close()
    },
    cancel: () => void tasks.return?.(undefined),
  })
  return new Response(stream, { headers })
}
