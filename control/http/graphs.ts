/** /graphs: list, look at. */
import { Type } from '@sinclair/typebox'
import type { AnyElysia } from 'elysia'
import { GraphDetails, GraphSummary } from '../../shared/contract/graphs.ts'
import { described, json } from '../../shared/openapi/route.ts'
import { getGraphJson } from '../operations/get-graph.ts'
import { listGraphs } from '../operations/list-graphs.ts'
import type { OperationParts } from '../operations/parts.ts'
import { graphPageRequest, graphQuery } from './graph-query.ts'
import { NEXT_CURSOR_HEADER } from './query-values.ts'
import { waitQuery, waitSignal } from './wait-ms.ts'

const section = 'Graphs'

export function addGraphRoutes(app: AnyElysia, parts: OperationParts): void {
  app
    .get(
      '/graphs',
      async ({ query, request, set }): Promise<readonly GraphSummary[]> => {
        const { graphs, nextCursor } = await listGraphs(parts, graphPageRequest(query, request.url))
        if (nextCursor !== undefined) set.headers[NEXT_CURSOR_HEADER] = nextCursor
        return graphs
      },
      described({
        section,
        summary: 'List graphs',
        description:
          'The newest first. Values of one parameter are alternatives, except labels; different parameters must all match.',
        query: graphQuery,
        answers: {
          200: json(Type.Array(GraphSummary), 'A page of graphs.', {
            'X-Next-Cursor': 'The cursor of the next page. Absent on the last page.',
          }),
        },
        errors: { 400: 'A parameter is invalid. The message lists the valid values.' },
      }),
    )
    .get(
      '/graphs/:id',
      ({ params, query, request }) => getGraphJson(parts, params.id, () => waitSignal(app, request, query.wait_ms)),
      described({
        section,
        summary: 'Read a graph',
        description: 'With its tasks in topological order, its critical path, and why it failed.',
        params: { id: 'Id of the graph.' },
        query: waitQuery,
        answers: { 200: json(GraphDetails, 'The graph and its tasks.') },
        errors: { 400: 'wait_ms is invalid.', 404: 'There is no such graph.' },
      }),
    )
}
