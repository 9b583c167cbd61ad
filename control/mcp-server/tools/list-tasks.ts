/** `list_tasks`: all tasks, the newest first, a page at a time. */

import { badRequest } from '../../../shared/contract/errors.ts'
import { ListTasksAnswer } from '../../../shared/contract/mcp-answers.ts'
import { ListTasksInput } from '../../../shared/contract/mcp-inputs.ts'
import { briefStatus } from '../../../shared/text/brief.ts'
import { newestTasks } from '../../operations/newest-tasks.ts'
import { type SharedPlace, sharedPlaceOf } from '../../operations/placed-tasks.ts'
import { defineTool } from '../tool.ts'
import { briefView } from '../view.ts'

export const listTasksTool = defineTool({
  name: 'list_tasks',
  title: 'List tasks',
  description: 'List tasks, the newest first, and count those in each state. get_task shows results.',
  right: 'read',
  input: ListTasksInput,
  answer: ListTasksAnswer,
  brief: ({ tasks, ...answer }) => ({ ...answer, tasks: tasks.map((task) => briefStatus(task)) }),
  isReadOnly: true,
  async run({ status, graph_id, limit = 20, cursor }, parts, { traceId }): Promise<ListTasksAnswer> {
    const statuses = status === undefined ? [] : [status]
    const filter = { statuses, graphId: graph_id, isWholeGraph: graph_id !== undefined }
    const asked = { filter, before: cursor === undefined ? undefined : placeIn(cursor), limit }
    const { counts, tasks, nextCursor, missing } = await newestTasks(parts, asked, briefView, traceId)
    return {
      ...{ counts: { ...counts }, tasks: [...tasks] },
      ...(nextCursor !== undefined && { next_cursor: nextCursor }),
      ...(missing.length > 0 && { missing_replicas: [...missing] }),
    }
  },
})

function placeIn(cursor: string): SharedPlace {
  const place = sharedPlaceOf(cursor)
  if (place !== undefined) return place
  throw badRequest('invalid input: cursor: expected next_cursor of an earlier answer')
}
