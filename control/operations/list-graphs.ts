/** Lists graphs as summaries, the newest first. */
import type { GraphSummary } from '../../shared/contract/graphs.ts'
import { runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { graphSummary } from '../graph/graph-summary.ts'
import type { Keeper } from '../log/keeper.ts'
import type { TaskStore } from '../store/tasks.ts'
import { type GraphPageRequest, graphCursor, graphPage } from './graph-filter.ts'

export interface ListGraphsParts {
  readonly store: TaskStore
  readonly keeper: Pick<Keeper, 'kept'>
}

export interface GraphList {
  /** The newest first. */
  readonly graphs: readonly GraphSummary[]
  /** The place of each graph, as a cursor. */
  readonly cursors: readonly string[]
  /** Cursor of the next page; undefined on the last page. */
  readonly nextCursor: string | undefined
}

/**
 * A page of the matching graphs. Works in slices, because there may be a million graphs, or a graph of a million tasks.
 */
export async function listGraphs({ store, keeper }: ListGraphsParts, request: GraphPageRequest): Promise<GraphList> {
  const list = await runCooperatively(summaries(store, request))
  await keeper.kept('show')
  return list
}

function* summaries(store: TaskStore, request: GraphPageRequest): Steps<GraphList> {
  const { graphs, nextCursor } = yield* graphPage(store, request)
  const found: GraphSummary[] = []
  const cursors: string[] = []
  for (const graph of graphs) {
    const summary = yield* graphSummary(graph)
    yield
    if (graph.isRetired) continue
    found.push(summary)
    cursors.push(graphCursor(graph))
  }
  return { graphs: found, cursors, nextCursor }
}
