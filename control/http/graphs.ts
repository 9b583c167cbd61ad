/** /graphs: list, look at. */
import type { AnyElysia } from 'elysia'
import type { GraphSummary } from '../../shared/contract/graphs.ts'
import { getGraphJson } from '../operations/get-graph.ts'
import { listGraphs } from '../operations/list-graphs.ts'
import type { OperationParts } from '../operations/parts.ts'
import { graphPageRequest, graphQuery } from './graph-query.ts'
import { NEXT_CURSOR_HEADER } from './query-values.ts'
import { waitQuery, waitSignal } from './wait-ms.ts'

export function addGraphRoutes(app: AnyElysia, parts: OperationParts): void {
  app
    .get(
      '/graphs',
      async ({ query, request, set }): Promise<readonly GraphSummary[]> => {
        const { graphs, nextCursor } = await listGraphs(parts, graphPageRequest(query, request.url))
        if (nextCursor !== undefined) set.headers[NEXT_CURSOR_HEADER] = nextCursor
        return graphs
      },
      { query: graphQuery },
    )
    .get(
      '/graphs/:id',
      ({ params, query, request }) => getGraphJson(parts, params.id, () => waitSignal(app, request, query.wait_ms)),
      { query: waitQuery },
    )
}
