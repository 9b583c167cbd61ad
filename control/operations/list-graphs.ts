/** Lists graphs as summaries, the newest first: those of all replicas. A replica that does not answer is left out, and named. */
import { UNREADABLE } from '../../shared/contract/graph-state.ts'
import { type GraphSummary, MAX_PAGE_GRAPHS, type UnreadableGraph } from '../../shared/contract/graphs.ts'
import { runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { Keeper } from '../log/keeper.ts'
import { graphSummary } from '../task/graph-summary.ts'
import type { TaskStore } from '../task/task-store.ts'
import {
  type GraphFilter,
  type GraphPageRequest,
  type GraphPlace,
  graphCursor,
  graphPage,
  graphPlaceOf,
  newestFirst,
} from './graph-filter.ts'
import { type Item, joinedItems, linesOf, type Page, pageIn, type SharedOrder } from './joined-pages.ts'
import type { OperationParts } from './parts.ts'

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

const NEWEST_GRAPHS_FIRST: SharedOrder<GraphPlace> = {
  compare: newestFirst,
  cursor: graphCursor,
  placeOf: graphPlaceOf,
}

/** A page of the matching graphs. */
export async function listGraphs(
  parts: OperationParts,
  { filter, after, limit }: GraphPageRequest,
  traceId: string,
): Promise<GraphList> {
  const size = Math.min(limit + 1, MAX_PAGE_GRAPHS)
  const list = {
    ...{ order: NEWEST_GRAPHS_FIRST, path: '/replicas/graphs', query: queryOf(filter), after, size },
    own: (from: GraphPlace | undefined) => ownPage(parts, { filter, after: from, limit: size }),
    read: (json: string): GraphSummary => JSON.parse(json),
  }
  const { items, ...known } = await joinedItems(parts, list, traceId)
  const { values, nextCursor } = await pageIn(items, NEWEST_GRAPHS_FIRST, limit)
  return { graphs: values, nextCursor, ...known }
}

/** A page of this replica for another one: a line for each graph, with its place. */
export const graphLines = async (parts: OperationParts, request: GraphPageRequest): Promise<string> =>
  linesOf(NEWEST_GRAPHS_FIRST, await ownPage(parts, request), (graph) => JSON.stringify(graph))

type GraphsPage = Page<GraphPlace, GraphSummary>

/** Works in slices, because there may be a million graphs, or a graph of a million tasks. */
async function ownPage({ store, keeper }: OperationParts, request: GraphPageRequest): Promise<GraphsPage> {
  const page = await runCooperatively(summaries(store, request))
  await keeper.kept('show')
  return page
}

function* summaries(store: TaskStore, request: GraphPageRequest): Steps<GraphsPage> {
  const { graphs, nextCursor } = yield* graphPage(store, request)
  const items: Item<GraphPlace, GraphSummary>[] = []
  for (const graph of graphs) {
    const summary = yield* graphSummary(graph)
    yield
    if (!graph.isRetired) items.push({ place: { createdAt: graph.createdAt, ordinal: graph.ordinal }, value: summary })
  }
  return { items, hasMore: nextCursor !== undefined }
}

function queryOf({
  states = [],
  waiting = [],
  paused,
  name,
  tenant,
  labels = [],
  since,
  until,
}: GraphFilter): URLSearchParams {
  const query = new URLSearchParams()
  for (const state of states) query.append('state', state)
  for (const kind of waiting) query.append('waiting', kind)
  for (const [label, value] of labels) query.append('label', `${label}=${value}`)
  if (paused !== undefined) query.set('paused', String(paused))
  if (name !== undefined) query.set('name', name)
  if (tenant !== undefined) query.set('tenant', tenant)
  if (since !== undefined) query.set('since', isoTime(since))
  if (until !== undefined) query.set('until', isoTime(until))
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
