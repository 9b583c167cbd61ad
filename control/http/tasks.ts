/** /tasks: submit, list, look at, cancel, delete. */
import { type AnyElysia, t } from 'elysia'
import type { CancelResponse } from '../../shared/contract/control.ts'
import { ServiceError } from '../../shared/errors.ts'
import { readBody, traceIdOf, WRITE_TIMEOUT_SECONDS } from '../../shared/http-service.ts'
import { nextTurn } from '../../shared/steps.ts'
import { cancelTask } from '../operations/cancel.ts'
import { deleteTask } from '../operations/delete.ts'
import { getRecord } from '../operations/get.ts'
import { listRecords, type RecordList } from '../operations/list.ts'
import type { OperationParts } from '../operations/parts.ts'
import { submit } from '../operations/submit.ts'
import { taskListRequest, taskQuery } from './task-query.ts'

/** Longest wait of `GET /tasks/{id}?wait_ms=N`; a client that wants more asks again. */
export const MAX_WAIT_MS = 60_000

export function addTaskRoutes(app: AnyElysia, parts: OperationParts): void {
  app
    .post(
      '/tasks',
      async ({ request, set }) => {
        const body = await readBody(app, request, parts.maxBodyBytes)
        const key = request.headers.get('idempotency-key')
        set.status = 202
        return (await submit(parts, { body }, { traceId: traceIdOf(set), key, caller: request })).json
      },
      { parse: 'none' },
    )
    .get(
      '/tasks',
      async ({ query }) => listResponse(await listRecords(parts, taskListRequest(query, parts.executors.types))),
      { query: taskQuery },
    )
    .get(
      '/tasks/:id',
      ({ params, query, request }) =>
        getRecord(parts, params.id, () => {
          const waitMs = waitOf(query.wait_ms)
          if (waitMs === 0) return undefined
          app.server?.timeout(request, Math.ceil(waitMs / 1000) + WRITE_TIMEOUT_SECONDS)
          return AbortSignal.any([request.signal, AbortSignal.timeout(waitMs)])
        }),
      { query: t.Object({ wait_ms: t.Optional(t.String()) }, { additionalProperties: true }) },
    )
    .post(
      '/tasks/:id/cancel',
      async ({ params, set }): Promise<CancelResponse> => {
        const tasks = await cancelTask(parts, params.id)
        set.status = 202
        return { tasks }
      },
      { parse: 'none' },
    )
    .delete('/tasks/:id', async ({ params, set }) => {
      await deleteTask(parts, params.id)
      set.status = 204
      delete set.headers['content-type']
    })
}

function waitOf(text: string | undefined): number {
  if (text === undefined) return 0
  const ms = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (ms <= MAX_WAIT_MS) return ms
  throw new ServiceError(400, `invalid wait_ms "${text}": expected milliseconds from 0 to ${MAX_WAIT_MS}`)
}

/** Names the cursor of the next page; absent on the last. */
const NEXT_CURSOR_HEADER = 'x-next-cursor'

/**
 * A list that fits into its first part is no stream: the server closes a connection on which a request arrives while the
 * answer to another one streams.
 */
function listResponse({ firstPart, rest, nextCursor }: RecordList): Response {
  const headers = {
    'content-type': 'application/json',
    ...(nextCursor !== undefined && { [NEXT_CURSOR_HEADER]: nextCursor }),
  }
  if (rest === undefined) return new Response(firstPart, { headers })
  const encoder = new TextEncoder()
  const deadline = performance.now() + WRITE_TIMEOUT_SECONDS * 1000
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encoder.encode(firstPart)),
    async pull(controller) {
      await nextTurn() // a client that reads fast must not hold up other requests
      if (performance.now() > deadline) throw new Error(`the list was not read within ${WRITE_TIMEOUT_SECONDS} s`)
      const { text, isLast } = await rest.next()
      controller.enqueue(encoder.encode(text))
      if (isLast) controller.close()
    },
    cancel: () => rest.close(),
  })
  return new Response(stream, { headers })
}
