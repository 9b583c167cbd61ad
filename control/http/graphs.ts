/** /graphs: lists, shows, reruns, cancels and deletes graphs. */

import type { AnyElysia } from 'elysia'
import { EVENT_SEQ_HEADER } from '../../shared/contract/events.ts'
import { UNREADABLE } from '../../shared/contract/graph-state.ts'
import { CancelGraphResponse, GraphDetails, GraphSummary, UnreadableGraph } from '../../shared/contract/graphs.ts'
import { PatchRequest, PatchResponse } from '../../shared/contract/patch.ts'
import { RerunRequest, RerunResponse } from '../../shared/contract/rerun.ts'
import { MAX_RETRY_BODY_BYTES, RetryRequest, RetryResponse } from '../../shared/contract/retry.ts'
import { Type } from '../../shared/contract/schema-builder.ts'
import { callerOf } from '../../shared/http/callers.ts'
import { described, empty, json, truth } from '../../shared/http/openapi/route.ts'
import { readBody } from '../../shared/http/request-body.ts'
import { urlOf } from '../../shared/http/request-url.ts'
import { traceIdOf, traceOf } from '../../shared/http/service.ts'
import { cancelGraph } from '../operations/cancel.ts'
import { deleteGraph } from '../operations/delete.ts'
import { getGraphJson } from '../operations/get-graph.ts'
import { MISSING_REPLICAS_HEADER } from '../operations/joined-pages.ts'
import { listGraphs, unreadableGraphs } from '../operations/list-graphs.ts'
import { knownGraph } from '../operations/named-tasks.ts'
import { patchGraph } from '../operations/patch-graph.ts'
import { rerun } from '../operations/rerun.ts'
import { retryGraph } from '../operations/retry.ts'
import type { PartsFor } from '../operations/tenant-view.ts'
import { graphPageRequest, graphQuery } from './graph-query.ts'
import { MISSING_REPLICAS, NEXT_CURSOR_HEADER, truthOf } from './query-values.ts'
import { graphErrors } from './task-places.ts'
import { LINKS_OF_GRAPH, RETRY_ERRORS, RETRY_HEADERS } from './tasks.ts'
import { AWAITED_APPROVALS, endQuery, waitForApprovals, waitSignal, waitsForApproval } from './wait-ms.ts'

const section = 'Graphs'
const params = { id: 'Id of the graph.' }
const errors = graphErrors('There is no such graph.')
const EVENT_SEQ = { 'X-Event-Seq': 'A stream of events with this number as after continues without a gap.' }

export function addGraphRoutes(app: AnyElysia, partsFor: PartsFor): void {
  app
    .get(
      '/graphs',
      async ({ query, request, set }): Promise<readonly (GraphSummary | UnreadableGraph)[]> => {
        const parts = partsFor(request)
        const asked = graphPageRequest(query, urlOf(request))
        const isUnreadable = asked.filter.states?.includes(UNREADABLE)
        const { graphs, nextCursor, missing, position } = isUnreadable
          ? { ...(await unreadableGraphs(parts, asked)), missing: [], position: String(parts.eventStreams.position) }
          : await listGraphs(parts, asked, traceIdOf(set))
        set.headers[EVENT_SEQ_HEADER] = position
        if (missing.length > 0) set.headers[MISSING_REPLICAS_HEADER] = missing.join(',')
        if (nextCursor !== undefined) set.headers[NEXT_CURSOR_HEADER] = nextCursor
        return graphs
      },
      described({
        section,
        right: 'read',
        summary: 'List graphs',
        description:
          'The newest first. Values of one parameter are alternatives, except labels; different parameters must all match.',
        query: graphQuery,
        answers: {
          200: json(Type.Array(Type.Union([GraphSummary, UnreadableGraph])), 'A page of graphs.', {
            'X-Next-Cursor': 'The cursor of the next page. Absent on the last page.',
            'X-Missing-Replicas': MISSING_REPLICAS,
            ...EVENT_SEQ,
          }),
        },
        errors: { 400: 'A parameter is invalid. The message lists the valid values.' },
      }),
    )
    .get(
      '/graphs/:id',
      async ({ params, query, request, set }) => {
        const parts = partsFor(request)
        const forApproval = waitsForApproval(query.wait_for)
        const patience = () => waitSignal(app, request, query.wait_ms)
        if (forApproval)
          await waitForApprovals(parts, knownGraph(parts.store, params.id).tasks, patience(), set.headers)
        const { json, position } = await getGraphJson(parts, params.id, forApproval ? () => undefined : patience)
        set.headers[EVENT_SEQ_HEADER] = String(position)
        return json
      },
      described({
        section,
        right: 'read',
        summary: 'Read a graph',
        description: 'With its tasks in topological order, its critical path, and why it failed.',
        params,
        query: endQuery,
        answers: { 200: json(GraphDetails, 'The graph and its tasks.', { ...EVENT_SEQ, ...AWAITED_APPROVALS }) },
        errors: { 400: 'A parameter is invalid.', ...errors },
      }),
    )
    .post(
      '/graphs/:id/cancel',
      ({ params, request, set }): Promise<CancelGraphResponse> => {
        set.status = 202
        return cancelGraph(partsFor(request), params.id, callerOf(request))
      },
      described({
        section,
        right: 'cancel',
        summary: 'Cancel a graph',
        description: 'Cancels all tasks that have not ended, as the cancel of a task does.',
        params,
        answers: { 202: json(CancelGraphResponse, 'The cancel is on disk.') },
        errors: { ...errors, 503: 'The service cannot store the cancel.' },
      }),
    )
    .post(
      '/graphs/:id/rerun',
      async ({ params, request, set }) => {
        const body = await readBody(app, request, partsFor(request).maxBodyBytes)
        const key = request.headers.get('idempotency-key')
        set.status = 202
        return rerun(partsFor(request), params.id, body, {
          ...traceOf(set, request),
          key,
          caller: request,
          by: callerOf(request),
        })
      },
      described({
        section,
        right: 'submit',
        summary: 'Run a graph again',
        description:
          'Makes a new graph of the tasks of one that has ended. Tasks that succeeded keep their outcomes; the rest, the tasks in from, and everything downstream are executed.',
        params,
        headers: {
          'Idempotency-Key': 'At most 255 characters. The same key with the same body gets the first answer again.',
        },
        body: RerunRequest,
        example: { from: ['build'] },
        answers: { 202: { ...json(RerunResponse, 'The new graph is accepted.'), links: LINKS_OF_GRAPH } },
        errors: {
          ...errors,
          400: 'The body is invalid, or names an unknown task.',
          409: 'The graph has not ended, has nothing to run or lacks a deleted task, or one of the ids is in use.',
          413: 'The body is too large.',
          422: 'The Idempotency-Key came with another body before.',
          503: 'The service cannot store the graph.',
        },
      }),
    )
    .post(
      '/graphs/:id/retry',
      async ({ params, request, set }) => {
        const body = await readBody(app, request, MAX_RETRY_BODY_BYTES)
        const key = request.headers.get('idempotency-key')
        set.status = 202
        set.headers['content-type'] = 'application/json'
        return retryGraph(partsFor(request), params.id, { body, key, by: callerOf(request) })
      },
      described({
        section,
        right: 'submit',
        summary: 'Retry the failed tasks of a graph',
        description:
          'As POST /tasks/{id}/retry, for all tasks that failed or were cancelled at once. Failures with continue_on_error stay.',
        params,
        headers: RETRY_HEADERS,
        body: RetryRequest,
        answers: { 202: json(RetryResponse, 'The retry is on disk.') },
        errors: { ...errors, ...RETRY_ERRORS },
      }),
    )
    .patch(
      '/graphs/:id',
      async ({ params, query, request, set }) => {
        const isDryRun = truthOf('dry_run', query.dry_run)
        const body = await readBody(app, request, partsFor(request).maxBodyBytes)
        const key = request.headers.get('idempotency-key')
        set.headers['content-type'] = 'application/json'
        return patchGraph(partsFor(request), params.id, body, { key, by: callerOf(request), isDryRun })
      },
      described({
        section,
        right: 'submit',
        summary: 'Change a live graph',
        description:
          'Adds tasks, and removes, replaces or changes those that have not started: all of it or nothing. Checked as a submission is. A token needs the right cancel for a graph of others.',
        params,
        headers: {
          'Idempotency-Key': 'At most 255 characters. The same key with the same body gets the first answer again.',
        },
        query: {
          dry_run: truth(
            'Only check the patch: answer 200 with what it would make of the graph, and change nothing. Default false.',
          ),
        },
        body: PatchRequest,
        example: {
          revision: 0,
          add: [{ id: 'notify', type: 'noop', depends_on: ['build'] }],
          change: { test: { timeout: 60000 } },
        },
        answers: { 200: json(PatchResponse, 'The change is on disk, or was only checked.') },
        errors: {
          ...errors,
          400: 'The body is invalid, or the graph would be.',
          409: 'The graph has ended, is cancelled or has another revision, a named task has started, or an id is in use.',
          413: 'The body is too large, or the graph would have too many tasks.',
          422: 'The Idempotency-Key came with another body before.',
          503: 'The service cannot store the change.',
        },
      }),
    )
    .delete(
      '/graphs/:id',
      async ({ params, request, set }) => {
        await deleteGraph(partsFor(request), params.id, traceIdOf(set))
        set.status = 204
        delete set.headers['content-type']
      },
      described({
        section,
        right: 'operate',
        summary: 'Delete a graph',
        description:
          'Removes a graph that has ended, with all of its records and files. Also one that was set aside as unreadable.',
        params,
        answers: { 204: empty('The graph is removed, on disk too.') },
        errors: { ...errors, 409: 'The graph has not ended.', 503: 'The service cannot store the deletion.' },
      }),
    )
}
