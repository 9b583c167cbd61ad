/** `list_tasks`: which tasks there are, the newest first, a page at a time. */
import { ListTasksAnswer, ListTasksInput } from '../../../shared/contract/mcp-server.ts'
import { badRequest } from '../../../shared/errors.ts'
import { listNewest } from '../../operations/list.ts'
import { type Place, placeOf } from '../../operations/task-filter.ts'
import { defineTool } from '../tool.ts'
import { briefView } from '../view.ts'

export const listTasksTool = defineTool({
  name: 'list_tasks',
  title: 'List tasks',
  description:
    'See which tasks there are, the newest first, and how many are in which state. Narrow it by status or graph_id. It does not show results: get_task does.',
  input: ListTasksInput,
  answer: ListTasksAnswer,
  isReadOnly: true,
  async run({ status, graph_id, limit = 20, cursor }, parts): Promise<ListTasksAnswer> {
    const before = cursor === undefined ? undefined : beforeOf(cursor)
    const filter = { statuses: status === undefined ? [] : [status], graphId: graph_id }
    const { counts, tasks, nextCursor } = await listNewest(parts, { filter, before, limit }, briefView)
    return { counts: { ...counts }, tasks: [...tasks], ...(nextCursor !== undefined && { next_cursor: nextCursor }) }
  },
})

function beforeOf(cursor: string): Place {
  const place = placeOf(cursor)
  if (place !== undefined) return place
  throw badRequest('invalid input: cursor: expected next_cursor of an earlier answer')
}
