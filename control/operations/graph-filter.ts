/** Which graphs a list contains, and after which place in the order of all graphs it continues. */
import type { GraphState } from '../../shared/contract/graph-state.ts'
import { isYieldDue, STEPS_PER_YIELD, type Steps } from '../../shared/steps.ts'
import type { Graph } from '../graph/graph.ts'
import { endState, endStateWithin } from '../graph/graph-summary.ts'
import type { TaskStore } from '../store/tasks.ts'

/** An absent or empty member excludes nothing. */
export interface GraphFilter {
  readonly states?: readonly GraphState[]
  readonly name?: string | undefined
  /** Names and values of labels that the graph must have. */
  readonly labels?: readonly (readonly [name: string, value: string])[]
  /** Milliseconds since 1970: graphs that were created then or later. */
  readonly since?: number | undefined
  /** Milliseconds since 1970: graphs that were created before. */
  readonly until?: number | undefined
}

/** Whether the filter wants a graph as far as that shows without its tasks. */
function isCandidate({ states = [], name, labels = [], since, until }: GraphFilter, graph: Graph): boolean {
  const { createdAt, options, endedAt } = graph
  if (graph.isRetired || graph.visible === 0) return false
  if (since !== undefined && createdAt < since) return false
  if (until !== undefined && createdAt >= until) return false
  if (name !== undefined && options.name !== name) return false
  if (!labels.every(([label, value]) => options.labels?.[label] === value)) return false
  return states.length === 0 || states.some((state) => (state === 'running') === (endedAt === undefined))
}

/** A graph by the time of its creation and its number. The graph may no longer exist. */
export interface GraphPlace {
  readonly createdAt: number
  readonly ordinal: number
}

/** The place of a graph as a cursor. */
export const graphCursor = ({ createdAt, ordinal }: Graph): string => `${createdAt}-${ordinal}`

/** Undefined for a text that is no cursor. */
export function graphPlaceOf(cursor: string): GraphPlace | undefined {
  const match = /^(\d{1,15})-(\d{1,15})$/.exec(cursor)
  return match === null ? undefined : { createdAt: Number(match[1]), ordinal: Number(match[2]) }
}

/** Numbers of graphs are only nearly in the order of their creation: a graph gets its number before it is read. */
const newestFirst = (a: GraphPlace, b: GraphPlace): number => b.createdAt - a.createdAt || b.ordinal - a.ordinal

export interface GraphPageRequest {
  readonly filter: GraphFilter
  /** Only graphs behind this place; undefined: from the newest on. */
  readonly after: GraphPlace | undefined
  readonly limit: number
}

export interface GraphPage {
  /** The newest first. */
  readonly graphs: readonly Graph[]
  /** Of the next page; undefined on the last. */
  readonly nextCursor: string | undefined
}

/** The next `limit` of the wanted graphs, the newest first. */
export function* graphPage(store: TaskStore, { filter, after, limit }: GraphPageRequest): Steps<GraphPage> {
  const newest = new NewestGraphs(limit + 1)
  const { states = [] } = filter
  const until = store.seq
  let steps = 0
  for (const graph of store.graphs) {
    if (isYieldDue(steps++)) yield
    if (graph.acceptedSeq > until) break
    if (after !== undefined && newestFirst(after, graph) >= 0) continue
    if (!newest.mayTake(graph) || !isCandidate(filter, graph)) continue
    // The state of an ended graph takes a look at its tasks, so it comes last.
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

/** The newest of many graphs that come nearly in order, the oldest first. */
class NewestGraphs {
  readonly #size: number
  #graphs: Graph[] = []
  /** None that is older can be among them. */
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
