/** /tasks: submit, list, look at, cancel, delete. */
import type { AnyElysia } from 'elysia'
import type { CancelResponse } from '../../shared/contract/control.ts'
import { readBody, traceIdOf, WRITE_TIMEOUT_SECONDS } from '../../shared/http-service.ts'
import { nextTurn } from '../../shared/steps.ts'
import { cancelTask } from '../operations/cancel.ts'
import { deleteTask } from '../operations/delete.ts'
import { getRecord } from '../operations/get.ts'
import { listRecords, type RecordList } from '../operations/list.ts'
import type { OperationParts } from '../operations/parts.ts'
import { submit } from '../operations/submit.ts'
import { NEXT_CURSOR_HEADER } from './query-values.ts'
import { taskListRequest, taskQuery } from './task-query.ts'
import { waitQuery, waitSignal } from './wait-ms.ts'

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
      ({ params, query, request }) => getRecord(parts, params.id, () => waitSignal(app, request, query.wait_ms)),
      { query: waitQuery },
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
