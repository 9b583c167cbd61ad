/** `list_tasks`: which tasks there are, the newest first, a page at a time. */
import { ListTasksAnswer, ListTasksInput } from '../../../shared/contract/mcp-server.ts'
import { badRequest } from '../../../shared/errors.ts'
import { isYieldDue, runCooperatively } from '../../../shared/steps.ts'
import type { Task } from '../../graph/task.ts'
import { cursorOf, graphsOf, isWanted, type Place, placeOf, type TaskFilter } from '../../operations/task-filter.ts'
import type { TaskStore } from '../../store/tasks.ts'
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
  async run({ status, graph_id, limit = 20, cursor }, { intake: { store }, persistence }): Promise<ListTasksAnswer> {
    const before = cursor === undefined ? undefined : beforeOf(cursor)
    const filter = { statuses: status === undefined ? [] : [status], graphId: graph_id }
    persistence.flush()
    const { counts, last, hasMore } = await runCooperatively(scan(store, { filter, before, limit }))
    const oldest = last[0]
    return {
      counts,
      tasks: last.reverse().map(briefView),
      ...(hasMore && oldest !== undefined && { next_cursor: cursorOf(oldest) }),
    }
  },
})

interface Scan {
  readonly filter: TaskFilter
  readonly before: Place | undefined
  readonly limit: number
}

/** The last `limit` of the wanted tasks before a place, and the numbers of all that are wanted. There may be a million. */
function* scan(store: TaskStore, { filter, before, limit }: Scan) {
  const counts: Record<string, number> = {}
  const ring: Task[] = []
  let found = 0
  let i = 0
  for (const task of store.visibleTasks(yield* graphsOf(store, filter))) {
    if (isWanted(filter, task)) {
      counts[task.status] = (counts[task.status] ?? 0) + 1
      if (before === undefined || isBefore(task, before)) ring[found++ % limit] = task
    }
    if (isYieldDue(i++)) yield
  }
  const start = found > limit ? found % limit : 0
  return { counts, last: [...ring.slice(start), ...ring.slice(0, start)], hasMore: found > limit } satisfies object
}

const isBefore = ({ graph, position }: Task, place: Place): boolean =>
  graph.ordinal < place.ordinal || (graph.ordinal === place.ordinal && position < place.position)

function beforeOf(cursor: string): Place {
  const place = placeOf(cursor)
  if (place !== undefined) return place
  throw badRequest('invalid input: cursor: expected next_cursor of an earlier answer')
}
