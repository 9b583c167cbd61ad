/**
 * Lists the newest tasks of all replicas, with the number of tasks in each state. A replica that does not answer is left
 * out, and named.
 */
import { isYieldDue, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import type { Task } from '../task/graph.ts'
import type { TaskStore } from '../task/task-store.ts'
import { newestFirst } from './graph-filter.ts'
import { joinedItems, linesOf, type Page, pageIn, type SharedOrder } from './joined-pages.ts'
import type { OperationParts } from './parts.ts'
import { inOrder, OLDEST_TASKS_FIRST, placeOfTask, type SharedPlace } from './placed-tasks.ts'
import { candidates, isWanted, type TaskFilter } from './task-filter.ts'

export interface NewestRequest {
  /** With a graph, which is here, other replicas are not asked. */
  readonly filter: Pick<TaskFilter, 'statuses' | 'graphId' | 'isWholeGraph'>
  /** End of the page, exclusive. Undefined: the newest task. */
  readonly before: SharedPlace | undefined
  readonly limit: number
}

export interface NewestTasks<V> {
  /** Number of matching tasks in each state, on all pages. */
  readonly counts: Readonly<Record<string, number>>
  /** The newest first. */
  readonly tasks: readonly V[]
  /** Position of the oldest task of the page; undefined if no older task matches. */
  readonly nextCursor: string | undefined
  /** Replicas whose tasks the page lacks. */
  readonly missing: readonly number[]
}

type Counts = Record<string, number>

const NEWEST_TASKS_FIRST: SharedOrder<SharedPlace> = { ...OLDEST_TASKS_FIRST, compare: (a, b) => inOrder(b, a) }

interface NewestPage<V> extends Page<SharedPlace, V> {
  readonly counts: Counts
}

/** A page of this replica for another one: a line with the counts, then a line for each task, with its place. */
export async function newestLines<V>(
  parts: OperationParts,
  request: NewestRequest,
  view: (task: Task) => V,
): Promise<string> {
  const page = await ownPage(parts, request, view)
  const lines = linesOf(NEWEST_TASKS_FIRST, page, (value) => JSON.stringify(value))
  return `counts ${JSON.stringify(page.counts)}\n${lines}`
}

/** Lists the newest matching tasks, each as `view` shows it. */
export async function newestTasks<V>(
  parts: OperationParts,
  request: NewestRequest,
  view: (task: Task) => V,
  traceId: string,
): Promise<NewestTasks<V>> {
  const { filter, before, limit } = request
  const all: Counts[] = []
  const list = {
    ...{
      order: NEWEST_TASKS_FIRST,
      path: '/replicas/newest-tasks',
      query: queryOf(filter),
      after: before,
      size: limit,
    },
    own: async (from: SharedPlace | undefined) => {
      const page = await ownPage(parts, { ...request, before: from }, view)
      all.push(page.counts)
      return page
    },
    read: (json: string): V => JSON.parse(json),
    onOther: (json: string) => void all.push(JSON.parse(json)),
    isHere: filter.graphId !== undefined,
  }
  const { items, missing } = await joinedItems(parts, list, traceId)
  const counts = sum(all) // later pages count the same tasks
  const { values, nextCursor } = await pageIn(items, NEWEST_TASKS_FIRST, limit)
  return { counts, tasks: values, nextCursor, missing }
}

async function ownPage<V>(
  { store, keeper }: OperationParts,
  request: NewestRequest,
  view: (task: Task) => V,
): Promise<NewestPage<V>> {
  const { counts, tasks } = await runCooperatively(newest(store, request))
  const kept = keeper.kept('show')
  const items = tasks.map((task) => ({ place: placeOfTask(task), value: view(task) }))
  await kept
  return { counts, items, hasMore: items.length > request.limit }
}

/** Tasks that are collected beyond a page before the older ones are left out. */
const MOST_OLDER = 1_000

/** The order of graphs in memory is that of their acceptance or adoption, so a page looks at all tasks. */
function* newest(
  store: TaskStore,
  { filter, before, limit }: NewestRequest,
): Steps<{ readonly counts: Counts; readonly tasks: readonly Task[] }> {
  const counts: Counts = {}
  const most = limit + 1
  let tasks: Task[] = []
  let i = 0
  for (const task of candidates(store, filter)) {
    if (isYieldDue(i++)) yield
    if (!isWanted(filter, task)) continue
    counts[task.status] = (counts[task.status] ?? 0) + 1
    if (before !== undefined && inOrder(placeOfTask(task), before) >= 0) continue
    tasks.push(task)
    if (tasks.length >= most + MOST_OLDER) tasks = newestOf(tasks, most)
  }
  return { counts, tasks: newestOf(tasks, most) }
}

const newestOf = (tasks: Task[], most: number): Task[] =>
  tasks.sort((a, b) => newestFirst(a.graph, b.graph) || b.position - a.position).slice(0, most)

function sum(all: readonly Counts[]): Counts {
  const counts: Counts = {}
  for (const [status, count] of all.flatMap((each) => Object.entries(each)))
    counts[status] = (counts[status] ?? 0) + count
  return counts
}

const queryOf = ({ statuses = [] }: NewestRequest['filter']): URLSearchParams =>
  new URLSearchParams(statuses.map((status): [string, string] => ['status', status]))
