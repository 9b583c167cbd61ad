/** Selects the graphs of a list, and pages through them with cursors. */
import type { LISTED_GRAPH_STATES, WaitingKind } from '../../shared/contract/graph-state.ts'
import { isYieldDue, STEPS_PER_YIELD, type Steps } from '../../shared/process/steps.ts'
import type { Graph } from '../task/graph.ts'
import { endState, endStateWithin, graphTotals } from '../task/graph-summary.ts'
import type { TaskStore } from '../task/task-store.ts'

/** Absent and empty members match all graphs. */
export interface GraphFilter {
  readonly states?: readonly (typeof LISTED_GRAPH_STATES)[number][]
  /** Matches graphs with a task that waits for one of these. */
  readonly waiting?: readonly WaitingKind[]
  /** Whether the graph itself is paused. */
  readonly paused?: boolean
  readonly name?: string | undefined
  /** Whose graphs: those of tokens of this tenant. */
  readonly tenant?: string | undefined
  /** Labels that the graph must have. */
  readonly labels?: readonly (readonly [name: string, value: string])[]
  /** Matches graphs created at this time or later. Milliseconds since 1970. */
  readonly since?: number | undefined
  /** Matches graphs created before this time. Milliseconds since 1970. */
  readonly until?: number | undefined
}

/** Whether the filter matches `graph`, apart from conditions that need a look at its tasks. */
function isCandidate(
  { states = [], waiting = [], paused, name, tenant, labels = [], since, until }: GraphFilter,
  graph: Graph,
): boolean {
  const { createdAt, options, endedAt } = graph
  if (graph.isRetired || graph.visible === 0) return false
  if (since !== undefined && createdAt < since) return false
  if (until !== undefined && createdAt >= until) return false
  if (waiting.length > 0 && endedAt !== undefined) return false
  if (paused !== undefined && paused !== (graph.pause !== undefined)) return false
  if (name !== undefined && options.name !== name) return false
  if (tenant !== undefined && graph.tenant !== tenant) return false
  if (!labels.every(([label, value]) => options.labels?.[label] === value)) return false
  return states.length === 0 || states.some((state) => (state === 'running') === (endedAt === undefined))
}

/** The position of a graph in the list: its creation time and its number. The graph may no longer exist. */
export interface GraphPlace {
  readonly createdAt: number
  readonly ordinal: number
}

/** The position of a graph as a cursor. */
export const graphCursor = ({ createdAt, ordinal }: GraphPlace): string => `${createdAt}-${ordinal}`

/** Undefined if the text is not a cursor. */
export function graphPlaceOf(cursor: string): GraphPlace | undefined {
  const match = /^(\d{1,15})-(\d{1,16})$/.exec(cursor)
  return match === null ? undefined : { createdAt: Number(match[1]), ordinal: Number(match[2]) }
}

/** Numbers only nearly follow the creation times: a graph gets its number before its body is decoded. */
export const newestFirst = (a: GraphPlace, b: GraphPlace): number => b.createdAt - a.createdAt || b.ordinal - a.ordinal

export interface GraphPageRequest {
  readonly filter: GraphFilter
  /** Start of the page, exclusive. Undefined: the newest graph. */
  readonly after: GraphPlace | undefined
  readonly limit: number
}

export interface GraphPage {
  /** The newest first. */
  readonly graphs: readonly Graph[]
  /** Cursor of the next page; undefined on the last page. */
  readonly nextCursor: string | undefined
}

/** Up to `limit` matching graphs, the newest first. */
export function* graphPage(store: TaskStore, { filter, after, limit }: GraphPageRequest): Steps<GraphPage> {
  const newest = new NewestGraphs(limit + 1)
  const { states = [], waiting = [] } = filter
  const until = store.seq
  let steps = 0
  for (const graph of store.graphs) {
    if (isYieldDue(steps++)) yield
    if (graph.acceptedSeq > until) break
    if (after !== undefined && newestFirst(after, graph) >= 0) continue
    if (!newest.mayTake(graph) || !isCandidate(filter, graph)) continue
    if (waiting.length > 0) {
      const totals = yield* graphTotals(graph)
      if (!waiting.some((kind) => totals.waiting[kind] !== undefined)) continue
    }
    // The state of an ended graph depends on its tasks, so this check comes last.
    if (states.length > 0 && graph.endedAt !== undefined) {
      const isSmall = graph.tasks.length <= STEPS_PER_YIELD
      const state = isSmall ? endStateWithin(graph.tasks, 0, graph.tasks.length) : yield* endState(graph)
      if (!states.includes(state)) continue
    }
    newest.add(graph)
  }
  const graphs = newest.sorted()
  const hasMore = graphs.length > limit
  return { graphs: graphs.slice(0, limit), nextCursor: hasMore ? graphCursor(graphs[limit - 1]!) : undefined }
}

/** Collects the newest of many graphs, which are added nearly in order, the oldest first. */
class NewestGraphs {
  readonly #size: number
  #graphs: Graph[] = []
  /** Older graphs than this one cannot be among the newest. Undefined until there are enough graphs. */
  #oldest: GraphPlace | undefined

  constructor(size: number) {
    this.#size = size
  }

  mayTake(graph: Graph): boolean {
    return this.#oldest === undefined || newestFirst(graph, this.#oldest) < 0
  }

  add(graph: Graph): void {
    this.#graphs.push(graph)
    if (this.#graphs.length < 2 * this.#size) return
    this.#graphs = this.sorted()
    this.#oldest = this.#graphs.at(-1)
  }

  sorted(): Graph[] {
    return this.#graphs.sort(newestFirst).slice(0, this.#size)
  }
}
