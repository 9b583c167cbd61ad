/** Lists graphs as summaries, the newest first: those of all replicas. A replica that does not answer is left out, and named. */
import { UNREADABLE } from '../../shared/contract/graph-state.ts'
import type { GraphSummary, UnreadableGraph } from '../../shared/contract/graphs.ts'
import { runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { Keeper } from '../log/keeper.ts'
import { graphSummary } from '../task/graph-summary.ts'
import type { TaskStore } from '../task/tasks.ts'
import {
  type GraphPageRequest,
  type GraphPlace,
  graphCursor,
  graphPage,
  graphPlaceOf,
  newestFirst,
} from './graph-filter.ts'
import { pagesElsewhere, replicasToJoin } from './joined-lines.ts'

export interface ListGraphsParts {
  readonly store: TaskStore
  readonly keeper: Pick<Keeper, 'kept' | 'others' | 'replica'>
  readonly eventStreams: { readonly position: number }
}

export interface GraphList {
  /** The newest first. */
  readonly graphs: readonly GraphSummary[]
  /** Cursor of the next page; undefined on the last page. */
  readonly nextCursor: string | undefined
  /** Replicas whose graphs the list lacks. */
  readonly missing: readonly number[]
  /** A stream of events continues after this id. */
  readonly position: string
}

interface Item {
  readonly place: GraphPlace
  readonly graph: GraphSummary
}

interface Page {
  readonly items: readonly Item[]
  /** Whether more graphs match, or may. */
  readonly hasMore: boolean
}

/** A page of the matching graphs. */
export async function listGraphs(
  parts: ListGraphsParts,
  request: GraphPageRequest,
  traceId: string,
): Promise<GraphList> {
  const { limit } = request
  const joined = await replicasToJoin(parts.keeper)
  const { position } = parts.eventStreams
  const [own, elsewhere] = await Promise.all([
    ownPage(parts, request),
    pagesElsewhere(parts, joined, { path: `/replicas/graphs?${queryOf(request)}`, traceId }, ({ lines }): Page => {
      const items = lines.map(({ place, json }) => ({ place: graphPlaceOf(place)!, graph: JSON.parse(json) }))
      return { items, hasMore: lines.length === limit }
    }),
  ])
  const pages = [own, ...elsewhere.pages]
  const sorted = pages.flatMap(({ items }) => items).sort((a, b) => newestFirst(a.place, b.place))
  // A graph that changes hands may be in two pages.
  const items = sorted.filter(({ place }, i) => i === 0 || newestFirst(sorted[i - 1]!.place, place) !== 0)
  const shown = items.slice(0, limit)
  const last = shown.at(-1)
  const hasMore = items.length > limit || pages.some((page) => page.hasMore)
  return {
    graphs: shown.map(({ graph }) => graph),
    nextCursor: hasMore && last !== undefined ? graphCursor(last.place) : undefined,
    missing: elsewhere.missing,
    position: [position, ...elsewhere.positions].join('-'),
  }
}

/** A page of this replica for another one: a line for each graph, with its place. */
export async function graphLines(parts: ListGraphsParts, request: GraphPageRequest): Promise<string> {
  const { items } = await ownPage(parts, request)
  return items.map(({ place, graph }) => `${graphCursor(place)} ${JSON.stringify(graph)}\n`).join('')
}

/** Works in slices, because there may be a million graphs, or a graph of a million tasks. */
async function ownPage({ store, keeper }: ListGraphsParts, request: GraphPageRequest): Promise<Page> {
  const page = await runCooperatively(summaries(store, request))
  await keeper.kept('show')
  return page
}

function* summaries(store: TaskStore, request: GraphPageRequest): Steps<Page> {
  const { graphs, nextCursor } = yield* graphPage(store, request)
  const items: Item[] = []
  for (const graph of graphs) {
    const summary = yield* graphSummary(graph)
    yield
    if (!graph.isRetired) items.push({ place: { createdAt: graph.createdAt, ordinal: graph.ordinal }, graph: summary })
  }
  return { items, hasMore: nextCursor !== undefined }
}

function queryOf({ filter, after, limit }: GraphPageRequest): URLSearchParams {
  const { states = [], name, labels = [], since, until } = filter
  const query = new URLSearchParams({ limit: String(limit) })
  for (const state of states) query.append('state', state)
  for (const [label, value] of labels) query.append('label', `${label}=${value}`)
  if (name !== undefined) query.set('name', name)
  if (since !== undefined) query.set('since', isoTime(since))
  if (until !== undefined) query.set('until', isoTime(until))
  if (after !== undefined) query.set('cursor', graphCursor(after))
  return query
}

/** Graphs that were set aside, because their rows in the database cannot be read. The newest first. Rejects with 503. */
export async function unreadableGraphs(
  { keeper }: { readonly keeper: Pick<Keeper, 'others'> },
  { after, limit }: Pick<GraphPageRequest, 'after' | 'limit'>,
): Promise<{ readonly graphs: readonly UnreadableGraph[]; readonly nextCursor: string | undefined }> {
  const found = await keeper.others.unreadable(after?.ordinal ?? Number.MAX_SAFE_INTEGER, limit + 1)
  const shown = found.slice(0, limit)
  const last = shown.at(-1)
  return {
    graphs: shown.map(({ graphId, why, at, taskCount }) => {
      return { graph_id: graphId, state: UNREADABLE, error: why, task_count: taskCount, set_aside_at: isoTime(at) }
    }),
    nextCursor: found.length > limit ? graphCursor({ createdAt: last!.at, ordinal: last!.ordinal }) : undefined,
  }
}
