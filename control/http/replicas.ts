/** Below /replicas: what replicas ask each other. Only with a database. */
import type { TProperties } from '@sinclair/typebox'
import type { AnyElysia } from 'elysia'
import { EVENT_SEQ_HEADER } from '../../shared/contract/events.ts'
import { MAX_SHOWN_TASKS } from '../../shared/contract/mcp-limits.ts'
import { GiveUpRequest, PlacedAttempts, WaitedGraph } from '../../shared/contract/replicas.ts'
import { TASK_STATUSES } from '../../shared/contract/task-status.ts'
import { anyText, described, empty, json, other, repeatable, wholeNumber } from '../../shared/http/openapi/route.ts'
import { readBody } from '../../shared/http/request-body.ts'
import { urlOf } from '../../shared/http/request-url.ts'
import { IDLE_TIMEOUT_SECONDS } from '../../shared/http/time-limits.ts'
import { runCooperatively } from '../../shared/process/steps.ts'
import { decodeJson, invalidJson } from '../json/body.ts'
import { checkOf } from '../json/schema-check.ts'
import { briefView, waitAnswer } from '../mcp-server/view.ts'
import { giveUpIds } from '../operations/give-up-ids.ts'
import { MISSING_REPLICAS_HEADER } from '../operations/joined-pages.ts'
import { joinedTaskLists, placedLines } from '../operations/joined-tasks.ts'
import { graphLines } from '../operations/list-graphs.ts'
import { knownGraph } from '../operations/named-tasks.ts'
import { newestLines } from '../operations/newest-tasks.ts'
import type { OperationParts } from '../operations/parts.ts'
import { attemptsHere } from '../operations/placed-attempts.ts'
import { sharedPlaceOf } from '../operations/placed-tasks.ts'
import type { PartsFor } from '../operations/tenant-view.ts'
import { waitForTasks } from '../operations/wait.ts'
import { KeepAlive } from './event-stream.ts'
import { EVENT_STREAM_HEADERS, placeAfter } from './events.ts'
import { graphPageRequest, graphQuery } from './graph-query.ts'
import { invalidCursor, knownValues, limitOf } from './query-values.ts'
import { ownPart, PartStream, partHeaders } from './replica-events.ts'
import type { StreamLimits } from './stream-limits.ts'
import { graphTaskQuery, MAX_PAGE_TASKS, taskListRequest } from './task-query.ts'
import { waitMsOf, waitQuery, waitSignal } from './wait-ms.ts'

const section = 'The service'

export function addReplicaRoutes(
  app: AnyElysia,
  parts: OperationParts,
  partsFor: PartsFor,
  limits: StreamLimits,
): void {
  addIdsRoute(app, parts)
  addListRoutes(app, parts, partsFor)
  addEventsRoute(app, parts, partsFor, limits)
  app
    .get(
      '/replicas/attempts',
      async (): Promise<PlacedAttempts> => ({ attempts: Object.fromEntries(await attemptsHere(parts)) }),
      described({
        section,
        right: 'service',
        summary: 'Count the attempts of a replica',
        description: 'By their runtime services. Another replica asks for that when a caller lists or removes one.',
        answers: { 200: json(PlacedAttempts, 'The numbers of attempts.') },
      }),
    )
    .get(
      '/replicas/graphs/:id/wait',
      async ({ params, query, request }): Promise<WaitedGraph> => {
        const seen = partsFor(request)
        const graph = knownGraph(seen.store, params.id)
        const timeoutMs = waitMsOf(query.wait_ms)
        const signal = waitSignal(app, request, query.wait_ms) ?? request.signal
        const tasks = graph.submitted.filter((task) => seen.store.hasRecord(task))
        const waiter = { signal, report: () => {} }
        const waited = await waitForTasks(seen, { tasks }, { until: 'all', timeoutMs }, waiter, waitAnswer)
        return { is_scoped: graph.isScoped, waited }
      },
      described({
        section,
        right: 'service',
        summary: 'Wait for a graph of a replica',
        description: 'Another replica asks for that when a call of its MCP server is repeated there.',
        params: { id: 'Id of the graph.' },
        query: waitQuery,
        answers: { 200: json(WaitedGraph, 'The states of its tasks.') },
        errors: { 400: 'wait_ms is invalid.', 404: 'The replica does not have the graph.' },
      }),
    )
}

/** Pages of this replica for the others: a line for each entry, with its place. */
function addListRoutes(app: AnyElysia, parts: OperationParts, partsFor: PartsFor): void {
  const { keeper, eventStreams, executors } = parts
  const linesOf = async (lines: () => Promise<string>): Promise<Response> => {
    const { adopting } = keeper.others // before the page, so that what it lacks is named
    const position = String(eventStreams.position)
    return new Response(await lines(), {
      headers: {
        'content-type': 'text/plain; charset=utf-8',
        [EVENT_SEQ_HEADER]: position,
        ...(adopting.length > 0 && { [MISSING_REPLICAS_HEADER]: adopting.join(',') }),
      },
    })
  }
  const listOf = <Q extends TProperties>(what: string, query: Q, line: string) =>
    described({
      ...{ section, query, right: 'service', summary: `List the ${what} of a replica` },
      description: 'Another replica asks for that when a caller lists them.',
      answers: { 200: other('text/plain', line) },
      errors: { 400: 'A parameter is invalid. The message lists the valid values.' },
    })
  const newestQuery = {
    status: repeatable('A state.', TASK_STATUSES),
    limit: wholeNumber(1, MAX_SHOWN_TASKS, `Tasks of a page. Default ${MAX_SHOWN_TASKS}.`),
    cursor: anyText('The place of a task: continues with older ones.'),
  }
  app
    .get(
      '/replicas/tasks',
      ({ query, request }) => {
        const { filter, cursor = '', limit = MAX_PAGE_TASKS } = taskListRequest(query, executors.types, joinedTaskLists)
        return linesOf(() => placedLines(partsFor(request), filter, sharedPlaceOf(cursor), limit))
      },
      listOf('tasks', graphTaskQuery, 'A line for each task, with its place and its record.'),
    )
    .get(
      '/replicas/newest-tasks',
      ({ query: { status, limit, cursor }, request }) => {
        const before = cursor === undefined ? undefined : sharedPlaceOf(cursor)
        if (cursor !== undefined && before === undefined) throw invalidCursor(cursor)
        const asked = {
          filter: { statuses: knownValues('status', status, TASK_STATUSES) },
          ...{ before, limit: limitOf(limit, { most: MAX_SHOWN_TASKS, standard: MAX_SHOWN_TASKS }) },
        }
        return linesOf(() => newestLines(partsFor(request), asked, briefView))
      },
      listOf('newest tasks', newestQuery, 'A line with the counts, then one for each task, with its place.'),
    )
    .get(
      '/replicas/graphs',
      ({ query, request }) => linesOf(() => graphLines(partsFor(request), graphPageRequest(query, urlOf(request)))),
      listOf('graphs', graphQuery, 'A line for each graph, with its place and its summary.'),
    )
}

function addEventsRoute(app: AnyElysia, parts: OperationParts, partsFor: PartsFor, limits: StreamLimits): void {
  const { keeper } = parts
  const keepAlive = new KeepAlive(limits.keepAliveMs)
  const blocks = () => keeper.numbers.blocks!()
  app.get(
    '/replicas/events',
    ({ query, request }) => {
      const after = placeAfter(keeper.numbers, request, query.after)
      app.server?.timeout(request, IDLE_TIMEOUT_SECONDS)
      const stream = new PartStream(keepAlive, limits.slowClientMs)
      const headers = { ...EVENT_STREAM_HEADERS, ...partHeaders(blocks(), keeper.others.adopting) } // before the events
      const asked = { subject: {}, after, untilEnded: false, part: ownPart(blocks) }
      const watch = partsFor(request).eventStreams.open(asked, stream)
      keepAlive.add(stream)
      stream.onClosed = () => watch.end()
      return new Response(stream.body, { headers })
    },
    described({
      section,
      right: 'service',
      summary: 'Watch a replica',
      description: 'Another replica reads its own events so, for each of its clients.',
      query: { after: anyText('Continues after the event with this id; 0 begins with the oldest that is kept.') },
      answers: { 200: other('text/event-stream', 'The events, until the client closes the connection.') },
      errors: { 400: 'The id to continue after is invalid.', 503: 'Too many streams are open.' },
    }),
  )
}

function addIdsRoute(app: AnyElysia, parts: OperationParts): void {
  app.post(
    '/replicas/ids',
    async ({ request, set }) => {
      const given = await runCooperatively(decodeJson(await readBody(app, request, parts.maxBodyBytes), {}))
      if (!checkOf(GiveUpRequest).accepts(given)) throw invalidJson('expected task_ids, a list of strings')
      await giveUpIds(parts, (given as GiveUpRequest).task_ids)
      set.status = 204
      delete set.headers['content-type']
    },
    described({
      section,
      right: 'service',
      summary: 'Give up ids of tasks',
      description: 'Another replica asks for that when a graph with these ids is submitted to it.',
      body: GiveUpRequest,
      example: { task_ids: ['build'] },
      answers: { 204: empty('The tasks are found only within their graphs now.') },
      errors: { 400: 'The body is invalid.', 409: 'One of the tasks has not ended.', 413: 'The body is too large.' },
    }),
  )
}
