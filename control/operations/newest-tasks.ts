/**
 * Lists the newest tasks of all replicas, with the number of tasks in each state. A replica that does not answer is left
 * out, and named.
 */
import { ServiceError } from '../../shared/contract/errors.ts'
import { isYieldDue, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import type { Keeper } from '../log/keeper.ts'
import type { Task } from '../task/graph.ts'
import type { TaskStore } from '../task/tasks.ts'
import { newestFirst } from './graph-filter.ts'
import { type JoinedLines, pagesElsewhere, replicasToJoin } from './joined-lines.ts'
import { inOrder, placeOfTask, type SharedPlace, sharedCursor, sharedPlaceOf } from './placed-tasks.ts'
import { candidates, isWanted, type TaskFilter } from './task-filter.ts'

export interface NewestParts {
  readonly store: TaskStore
  readonly keeper: Pick<Keeper, 'kept' | 'others' | 'replica'>
}

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

interface Item<V> {
  readonly place: SharedPlace
  readonly view: V
}

interface NewestPage<V> {
  readonly counts: Counts
  /** The newest first. One more than the limit, if there are more. */
  readonly items: readonly Item<V>[]
}

/** The first line of a page has no place. */
const COUNTS = 'counts'

/** A page of this replica for another one: a line with the counts, then a line for each task, with its place. */
export async function newestLines<V>(
  parts: NewestParts,
  request: NewestRequest,
  view: (task: Task) => V,
): Promise<string> {
  const { counts, items } = await ownPage(parts, request, view)
  const lines = items.map((item) => `${sharedCursor(item.place)} ${JSON.stringify(item.view)}\n`)
  return `${COUNTS} ${JSON.stringify(counts)}\n${lines.join('')}`
}

/** Lists the newest matching tasks, each as `view` shows it. */
export async function newestTasks<V>(
  parts: NewestParts,
  request: NewestRequest,
  view: (task: Task) => V,
  traceId: string,
): Promise<NewestTasks<V>> {
  const isOfAll = request.filter.graphId === undefined
  const joined = isOfAll ? await replicasToJoin(parts.keeper) : NOBODY
  const [own, elsewhere] = await Promise.all([
    ownPage(parts, request, view),
    pagesElsewhere(parts, joined, { path: `/replicas/newest-tasks?${queryOf(request)}`, traceId }, pageIn<V>),
  ])
  const pages = [own, ...elsewhere.pages]
  const sorted = pages.flatMap(({ items }) => items).sort((a, b) => inOrder(b.place, a.place))
  // A graph that changes hands may be in two pages.
  const items = sorted.filter(({ place }, i) => i === 0 || inOrder(sorted[i - 1]!.place, place) !== 0)
  const shown = items.slice(0, request.limit)
  const last = shown.at(-1)
  return {
    counts: sum(pages.map(({ counts }) => counts)),
    tasks: shown.map((item) => item.view),
    nextCursor: items.length > shown.length && last !== undefined ? sharedCursor(last.place) : undefined,
    missing: elsewhere.missing,
  }
}

const NOBODY = { others: [], missing: [], silent: [] }

function pageIn<V>({ lines: [head, ...tasks] }: JoinedLines): NewestPage<V> {
  if (head?.place !== COUNTS) throw new ServiceError(503, 'a page of another replica has no counts')
  return {
    counts: JSON.parse(head.json),
    items: tasks.map(({ place, json }) => ({ place: sharedPlaceOf(place)!, view: JSON.parse(json) })),
  }
}

async function ownPage<V>(
  { store, keeper }: NewestParts,
  request: NewestRequest,
  view: (task: Task) => V,
): Promise<NewestPage<V>> {
  const { counts, tasks } = await runCooperatively(newest(store, request))
  const kept = keeper.kept('show')
  const items = tasks.map((task) => ({ place: placeOfTask(task), view: view(task) }))
  await kept
  return { counts, items }
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

function queryOf({ filter: { statuses = [] }, before, limit }: NewestRequest): URLSearchParams {
  const query = new URLSearchParams({ limit: String(limit) })
  for (const status of statuses) query.append('status', status)
  if (before !== undefined) query.set('cursor', sharedCursor(before))
  return query
}
