/** `list_tasks`: which tasks there are, the newest first, a page at a time. */
import { ListTasksAnswer, ListTasksInput } from '../../../shared/contract/mcp-server.ts'
import { badRequest } from '../../../shared/errors.ts'
import { inSlices, isYieldDue } from '../../../shared/slices.ts'
import type { Task } from '../../graph/task.ts'
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
    const before = placeOf(cursor)
    const wanted = (task: Task) =>
      (status === undefined || task.status === status) && (graph_id === undefined || task.graph.id === graph_id)
    persistence.expose()
    const { counts, last, hasMore } = await inSlices(scan(store, { wanted, before, limit }))
    const oldest = last[0]
    return {
      counts,
      tasks: last.reverse().map(briefView),
      ...(hasMore && oldest !== undefined && { next_cursor: `${oldest.graph.ordinal}-${oldest.position}` }),
    }
  },
})

/** Where a task stands in the order of all: that of their creation. */
interface Place {
  readonly ordinal: number
  readonly position: number
}

interface Scan {
  readonly wanted: (task: Task) => boolean
  readonly before: Place | undefined
  readonly limit: number
}

/** The last `limit` of the wanted tasks before a place, and the numbers of all that are wanted. There may be a million. */
function* scan(store: TaskStore, { wanted, before, limit }: Scan) {
  const counts: Record<string, number> = {}
  const ring: Task[] = []
  let found = 0
  let i = 0
  for (const task of store.visibleTasks()) {
    if (wanted(task)) {
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

function placeOf(cursor: string | undefined): Place | undefined {
  if (cursor === undefined) return undefined
  const match = /^(\d{1,15})-(\d{1,9})$/.exec(cursor)
  if (match === null) throw badRequest('invalid input: cursor: expected next_cursor of an earlier answer')
  return { ordinal: Number(match[1]), position: Number(match[2]) }
}
