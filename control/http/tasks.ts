/**
 * /tasks: submits, lists, shows, cancels and deletes tasks. The same for tasks of a graph, below /graphs/{id}/tasks.
 */

import type { AnyElysia } from 'elysia'
import { CancelResponse, TaskRecord } from '../../shared/contract/control.ts'
import { badRequest } from '../../shared/contract/errors.ts'
import { EVENT_SEQ_HEADER } from '../../shared/contract/events.ts'
import { GraphDryRun } from '../../shared/contract/graph-dry-run.ts'
import { MAX_RETRY_BODY_BYTES, RetryRequest, RetryResponse } from '../../shared/contract/retry.ts'
import { Type } from '../../shared/contract/schema-builder.ts'
import { SubmitResponse, TaskGraph } from '../../shared/contract/submission.ts'
import { callerOf } from '../../shared/http/callers.ts'
import { described, empty, json, truth } from '../../shared/http/openapi/route.ts'
import { readBody } from '../../shared/http/request-body.ts'
import { traceIdOf, traceOf } from '../../shared/http/service.ts'
import { WRITE_TIMEOUT_SECONDS } from '../../shared/http/time-limits.ts'
import { nextTurn, runCooperatively } from '../../shared/process/steps.ts'
import { cancelTask } from '../operations/cancel.ts'
import { deleteTask } from '../operations/delete.ts'
import { dryRun, dryRunJson } from '../operations/dry-run.ts'
import { getRecord } from '../operations/get.ts'
import { MISSING_REPLICAS_HEADER } from '../operations/joined-pages.ts'
import { joinedTaskLists } from '../operations/joined-tasks.ts'
import { ownTaskLists, type TaskList } from '../operations/list.ts'
import { knownTask } from '../operations/named-tasks.ts'
import { retryTask } from '../operations/retry.ts'
import { answerAfterWait, submit } from '../operations/submit.ts'
import type { PartsFor } from '../operations/tenant-view.ts'
import { forwarderOf } from './forwarding.ts'
import { MISSING_REPLICAS, NEXT_CURSOR_HEADER, truthOf } from './query-values.ts'
import { graphErrors, TASK_PLACES, type TaskPlace } from './task-places.ts'
import { graphTaskQuery, taskListRequest, taskQuery } from './task-query.ts'
import {
  AWAITED_APPROVALS,
  endQuery,
  waitForApprovals,
  waitMsOf,
  waitQuery,
  waitSignal,
  waitsForApproval,
} from './wait-ms.ts'

/** What the id of an accepted graph is good for. */
export const LINKS_OF_GRAPH = Object.fromEntries(
  ['Read a graph', 'Cancel a graph', 'List the tasks of a graph'].map((summary) => [
    summary,
    { parameter: 'id', field: 'graph_id' },
  ]),
)

export const RETRY_HEADERS = {
  'Idempotency-Key': 'At most 255 characters. The same key with the same body gets the first answer again.',
}

export const RETRY_ERRORS = {
  400: 'The body is invalid.',
  409: 'A task did not fail, has not ended, lost its id, its list, a child or a task that it depends on; the graph has another revision; or its group is full.',
  413: 'The body is too large.',
  422: 'The Idempotency-Key came with another body before.',
  503: 'The service cannot store the retry.',
}

const section = 'Tasks'

const listHeaders = {
  'X-Next-Cursor': 'The cursor of the next page. Absent on the last page, and without limit and cursor.',
  'X-Event-Seq': 'A stream of events with this number as after continues without a gap.',
}

const joinedHeaders = { ...listHeaders, 'X-Missing-Replicas': MISSING_REPLICAS }

const EXAMPLE = {
  tasks: [
    { id: 'hello', type: 'shell', params: { command: 'echo', args: ['hello'] } },
    { id: 'after', type: 'noop', depends_on: ['hello'] },
  ],
}

export function addTaskRoutes(app: AnyElysia, partsFor: PartsFor): void {
  const forward = forwarderOf(app, partsFor)
  app
    .post(
      '/tasks',
      async ({ request, query, set }) => {
        const parts = partsFor(request)
        waitMsOf(query.wait_ms) // refuses it before the graph is stored
        const isDryRun = truthOf('dry_run', query.dry_run)
        const isBrief = truthOf('brief', query.brief)
        if (isBrief && !isDryRun) throw badRequest('brief requires dry_run=true')
        const body = await readBody(app, request, parts.maxBodyBytes)
        if (isDryRun) {
          const call = { traceId: traceIdOf(set), signal: request.signal, by: callerOf(request), isBrief }
          const found = await dryRun(parts, { body }, call)
          return runCooperatively(dryRunJson(found))
        }
        const key = request.headers.get('idempotency-key')
        set.status = 202
        const submission = { ...traceOf(set, request), key, caller: request, by: callerOf(request) }
        const submitted = await submit(parts, { body }, submission)
        const until = waitSignal(app, request, query.wait_ms)
        if (until === undefined) return submitted.json
        const { elsewhere: graphId } = submitted
        const asked = { traceId: traceIdOf(set), body, waitMs: waitMsOf(query.wait_ms) }
        const answer = graphId === undefined ? undefined : await forward(request, { graphId }, asked)
        return answer ?? answerAfterWait(parts, submitted, until)
      },
      described({
        section,
        right: 'submit',
        summary: 'Submit a graph',
        description:
          'Answers once the graph is on disk, with wait_ms once its tasks have ended. A task runs when all tasks in its depends_on have succeeded. A dry run answers 200 with all faults of the graph, and stores nothing.',
        headers: {
          'Idempotency-Key': 'At most 255 characters. The same key with the same body gets the first answer again.',
        },
        query: {
          ...waitQuery,
          dry_run: truth('Only check the graph: answer 200 and store nothing. Default false.'),
          brief: truth(
            'With dry_run: leave waves, critical_path and runtime empty, and time_limits out. Default false.',
          ),
        },
        body: TaskGraph,
        example: EXAMPLE,
        answers: {
          200: json(GraphDryRun, 'The findings of a dry run.'),
          202: { ...json(SubmitResponse, 'The graph is accepted.'), links: LINKS_OF_GRAPH },
        },
        errors: {
          400: 'The graph fails a check. Nothing is stored.',
          409: 'A task with one of the ids has not ended.',
          413: 'The body or the graph is too large.',
          422: 'The Idempotency-Key came with another body before.',
          503: 'The service cannot store the graph.',
        },
      }),
    )
    .get(
      '/tasks',
      async ({ query, request, set }) => {
        const parts = partsFor(request)
        const allTaskLists = parts.keeper.replica === undefined ? ownTaskLists : joinedTaskLists
        // A request that filters by a graph gets here only where the graph is.
        const lists = query.graph_id === undefined ? allTaskLists : ownTaskLists
        return listResponse(
          await lists.list(parts, taskListRequest(query, parts.executors.types, lists), traceIdOf(set)),
        )
      },
      described({
        section,
        right: 'read',
        summary: 'List tasks',
        description:
          'In order of creation. Values of one parameter are alternatives; different parameters must all match.',
        query: taskQuery,
        answers: {
          200: json(Type.Array(TaskRecord), 'The records of the tasks.', joinedHeaders),
        },
        errors: { 400: 'A parameter is invalid. The message lists the valid values.' },
      }),
    )
    .get(
      '/graphs/:id/tasks',
      async ({ params, query, request, set }) => {
        const parts = partsFor(request)
        const { filter, ...page } = taskListRequest(query, parts.executors.types, ownTaskLists)
        const whole = { graphId: params.id, isWholeGraph: true }
        return listResponse(
          await ownTaskLists.list(parts, { filter: { ...filter, ...whole }, ...page }, traceIdOf(set)),
        )
      },
      described({
        section,
        right: 'read',
        summary: 'List the tasks of a graph',
        description: 'As GET /tasks, with the tasks that only their graph knows.',
        params: { id: 'Id of the graph.' },
        query: graphTaskQuery,
        answers: { 200: json(Type.Array(TaskRecord), 'The records of the tasks.', listHeaders) },
        errors: {
          400: 'A parameter is invalid. The message lists the valid values.',
          ...graphErrors('There is no such graph.'),
        },
      }),
    )
  for (const place of TASK_PLACES) addRoutesOfTask(app, partsFor, place)
}

function addRoutesOfTask(
  app: AnyElysia,
  partsFor: PartsFor,
  { path, noun, params, errors, addressIn }: TaskPlace,
): void {
  app
    .get(
      path,
      ({ params, query, request, set }) => {
        const parts = partsFor(request)
        const address = addressIn(params)
        const patience = (isOver: boolean) => waitSignal(app, request, query.wait_ms, isOver)
        if (!waitsForApproval(query.wait_for)) return getRecord(parts, address, patience)
        const task = knownTask(parts.store, address)
        const waiting = waitForApprovals(parts, [task], patience(task.isTerminal), set.headers)
        return waiting.then(() => getRecord(parts, address, () => undefined))
      },
      described({
        section,
        right: 'read',
        summary: `Read ${noun}`,
        params,
        query: endQuery,
        answers: { 200: json(TaskRecord, 'The record of the task.', AWAITED_APPROVALS) },
        errors: { 400: 'A parameter is invalid.', ...errors },
      }),
    )
    .post(
      `${path}/cancel`,
      async ({ params, request, set }): Promise<CancelResponse> => {
        const tasks = await cancelTask(partsFor(request), addressIn(params), callerOf(request))
        set.status = 202
        return { tasks }
      },
      described({
        section,
        right: 'cancel',
        summary: `Cancel ${noun}`,
        description:
          'A pending task is cancelled at once, and the tasks that depend on it are skipped. A running task is cancelling until its executor has stopped. A task that has ended does not change.',
        params,
        answers: { 202: json(CancelResponse, 'The cancel is on disk.') },
        errors: { ...errors, 503: 'The service cannot store the cancel.' },
      }),
    )
    .post(
      `${path}/retry`,
      async ({ params, request, set }) => {
        const body = await readBody(app, request, MAX_RETRY_BODY_BYTES)
        const key = request.headers.get('idempotency-key')
        set.status = 202
        set.headers['content-type'] = 'application/json'
        return retryTask(partsFor(request), addressIn(params), { body, key, by: callerOf(request) })
      },
      described({
        section,
        right: 'submit',
        summary: `Retry ${noun}`,
        description:
          'Runs a task that failed or was cancelled again in its graph, with all tasks that depend on it. The numbers of its attempts go on, and all of its retries are left. A graph that had ended runs, and ends again. Graphs of others need the right cancel, too.',
        params,
        headers: RETRY_HEADERS,
        body: RetryRequest,
        answers: { 202: json(RetryResponse, 'The retry is on disk.') },
        errors: { ...errors, ...RETRY_ERRORS },
      }),
    )
    .delete(
      path,
      async ({ params, request, set }) => {
        await deleteTask(partsFor(request), addressIn(params))
        set.status = 204
        delete set.headers['content-type']
      },
      described({
        section,
        right: 'operate',
        summary: `Delete ${noun}`,
        description: 'Removes the record. A running attempt is not stopped.',
        params,
        answers: { 204: empty('The record is removed, on disk too.') },
        errors: { ...errors, 503: 'The service cannot store the deletion.' },
      }),
    )
}

/**
 * Sends a list that fits into its first part without a stream, because the server closes a connection on which a
 * request arrives during a streamed answer.
 */
function listResponse({ firstPart, rest, nextCursor, missing, position }: TaskList): Response {
  const headers = {
    ...(missing.length > 0 && { [MISSING_REPLICAS_HEADER]: missing.join(',') }),
    'content-type': 'application/json',
    [EVENT_SEQ_HEADER]: position,
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
