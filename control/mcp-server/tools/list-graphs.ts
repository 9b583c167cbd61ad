/** `list_graphs`: all graphs, the newest first, a page at a time. */

import { badRequest } from '../../../shared/contract/errors.ts'
import { ListGraphsAnswer } from '../../../shared/contract/mcp-answers.ts'
import { ListGraphsInput } from '../../../shared/contract/mcp-inputs.ts'
import { briefSummary } from '../../../shared/text/brief.ts'
import { type GraphPlace, graphPlaceOf } from '../../operations/graph-filter.ts'
import { listGraphs } from '../../operations/list-graphs.ts'
import { defineTool } from '../tool.ts'

export const listGraphsTool = defineTool({
  name: 'list_graphs',
  title: 'List graphs',
  description:
    'List graphs, the newest first, with their states and the number of tasks in each state. get_graph shows one of them.',
  right: 'read',
  input: ListGraphsInput,
  answer: ListGraphsAnswer,
  brief: ({ graphs, ...answer }) => ({ ...answer, graphs: graphs.map((graph) => briefSummary(graph)) }),
  isReadOnly: true,
  async run({ state, name, labels = {}, limit = 20, cursor }, parts, { traceId }): Promise<ListGraphsAnswer> {
    const after = cursor === undefined ? undefined : afterOf(cursor)
    const states = state === undefined ? [] : [state]
    const request = { filter: { states, name, labels: Object.entries(labels) }, after, limit }
    const { graphs, nextCursor, missing } = await listGraphs(parts, request, traceId)
    return {
      graphs: [...graphs],
      ...(nextCursor !== undefined && { next_cursor: nextCursor }),
      ...(missing.length > 0 && { missing_replicas: [...missing] }),
    }
  },
})

function afterOf(cursor: string): GraphPlace {
  const place = graphPlaceOf(cursor)
  if (place !== undefined) return place
  throw badRequest('invalid input: cursor: expected next_cursor of an earlier answer')
}
