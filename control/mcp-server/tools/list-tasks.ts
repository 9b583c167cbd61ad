/** `list_tasks`: all tasks, the newest first, a page at a time. */
import { ListTasksAnswer } from '../../../shared/contract/mcp-answers.ts'
import { ListTasksInput } from '../../../shared/contract/mcp-inputs.ts'
import { badRequest } from '../../../shared/errors.ts'
import { listNewest } from '../../operations/list.ts'
import { type Place, placeOf } from '../../operations/task-filter.ts'
import { defineTool } from '../tool.ts'
import { briefView } from '../view.ts'

export const listTasksTool = defineTool({
  name: 'list_tasks',
  title: 'List tasks',
  description:
    'List tasks, the newest first, and count the tasks in each state. Filter by status or graph_id. The list has no results; get_task shows them.',
  input: ListTasksInput,
  answer: ListTasksAnswer,
  isReadOnly: true,
  async run({ status, graph_id, limit = 20, cursor }, parts): Promise<ListTasksAnswer> {
    const before = cursor === undefined ? undefined : beforeOf(cursor)
    const filter = {
      statuses: status === undefined ? [] : [status],
      graphId: graph_id,
      isWholeGraph: graph_id !== undefined,
    }
    const { counts, tasks, nextCursor } = await listNewest(parts, { filter, before, limit }, briefView)
    return { counts: { ...counts }, tasks: [...tasks], ...(nextCursor !== undefined && { next_cursor: nextCursor }) }
  },
})

function beforeOf(cursor: string): Place {
  const place = placeOf(cursor)
  if (place !== undefined) return place
  throw badRequest('invalid input: cursor: expected next_cursor of an earlier answer')
}
