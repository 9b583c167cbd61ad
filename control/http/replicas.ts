/** Below /replicas: what replicas ask each other. Only with a database. */
import type { AnyElysia } from 'elysia'
import { MAX_SHOWN_TASKS } from '../../shared/contract/mcp-limits.ts'
import { GiveUpRequest, PlacedAttempts, WaitedGraph } from '../../shared/contract/replicas.ts'
import { TASK_STATUSES } from '../../shared/contract/task-status.ts'
import { anyText, described, empty, json, other, repeatable, wholeNumber } from '../../shared/http/openapi/route.ts'
import { readBody } from '../../shared/http/request-body.ts'
import { runCooperatively } from '../../shared/process/steps.ts'
import { decodeJson, invalidJson } from '../json/body.ts'
import { checkOf } from '../json/schema-check.ts'
import { briefView, waitAnswer } from '../mcp-server/view.ts'
import { giveUpIds } from '../operations/give-up-ids.ts'
import { newestLines } from '../operations/joined-newest.ts'
import { knownGraph } from '../operations/named-tasks.ts'
import type { OperationParts } from '../operations/parts.ts'
import { attemptsHere } from '../operations/placed-attempts.ts'
import { sharedPlaceOf } from '../operations/placed-tasks.ts'
import { waitForTasks } from '../operations/wait.ts'
import { linesResponse } from './joined-lists.ts'
import { invalidCursor, knownValues, limitOf } from './query-values.ts'
import { waitMsOf, waitQuery, waitSignal } from './wait-ms.ts'

const section = 'The service'

export function addReplicaRoutes(app: AnyElysia, parts: OperationParts): void {
  const { others } = parts.keeper
  if (others === undefined) return
  addIdsRoute(app, parts)
  app
    .get(
      '/replicas/attempts',
      async (): Promise<PlacedAttempts> => ({ attempts: Object.fromEntries(await attemptsHere(parts)) }),
      described({
        section,
        summary: 'Count the attempts of a replica',
        description: 'By their runtime services. Another replica asks for that when a caller lists or removes one.',
        answers: { 200: json(PlacedAttempts, 'The numbers of attempts.') },
      }),
    )
    .get(
      '/replicas/tasks',
      async ({ query: { status, limit, cursor } }) => {
        const before = cursor === undefined ? undefined : sharedPlaceOf(cursor)
        if (cursor !== undefined && before === undefined) throw invalidCursor(cursor)
        const asked = {
          filter: { statuses: knownValues('status', status, TASK_STATUSES) },
          ...{ before, limit: limitOf(limit, { most: MAX_SHOWN_TASKS, standard: MAX_SHOWN_TASKS }) },
        }
        const { adopting } = others // before the page, so that what it lacks is named
        return linesResponse(await newestLines(parts, asked, briefView), adopting)
      },
      described({
        section,
        summary: 'List the newest tasks of a replica',
        description: 'Another replica asks for that when a caller of its MCP server lists tasks.',
        query: {
          status: repeatable('A state.', TASK_STATUSES),
          limit: wholeNumber(1, MAX_SHOWN_TASKS, `Tasks of a page. Default ${MAX_SHOWN_TASKS}.`),
          cursor: anyText('The place of a task: continues with older ones.'),
        },
        answers: { 200: other('text/plain', 'A line with the counts, then one for each task, with its place.') },
        errors: { 400: 'A parameter is invalid. The message lists the valid values.' },
      }),
    )
    .get(
      '/replicas/graphs/:id/wait',
      async ({ params, query, request }): Promise<WaitedGraph> => {
        const graph = knownGraph(parts.store, params.id)
        const timeoutMs = waitMsOf(query.wait_ms)
        const signal = waitSignal(app, request, query.wait_ms) ?? request.signal
        const tasks = graph.submitted.filter((task) => parts.store.hasRecord(task))
        const waiter = { signal, report: () => {} }
        const waited = await waitForTasks(parts, { tasks }, { until: 'all', timeoutMs }, waiter, waitAnswer)
        return { is_scoped: graph.isScoped, waited }
      },
      described({
        section,
        summary: 'Wait for a graph of a replica',
        description: 'Another replica asks for that when a call of its MCP server is repeated there.',
        params: { id: 'Id of the graph.' },
        query: waitQuery,
        answers: { 200: json(WaitedGraph, 'The states of its tasks.') },
        errors: { 400: 'wait_ms is invalid.', 404: 'The replica does not have the graph.' },
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
      summary: 'Give up ids of tasks',
      description: 'Another replica asks for that when a graph with these ids is submitted to it.',
      body: GiveUpRequest,
      example: { task_ids: ['build'] },
      answers: { 204: empty('The tasks are found only within their graphs now.') },
      errors: { 400: 'The body is invalid.', 409: 'One of the tasks has not ended.', 413: 'The body is too large.' },
    }),
  )
}
