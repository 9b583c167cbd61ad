/**
 * A graph in memory: the unit of ownership, as dependencies never leave it.
 *
 * Who depends on whom is in its edges, by position: they and `missing` are needed, and kept, only while a task of it
 * has not ended.
 */
import { inRanges, type Steps } from '../../shared/steps.ts'
import { dependencyCounts, type Edges } from './order.ts'
import { Task } from './task.ts'
import type { ValidGraph, ValidTask } from './validate.ts'

const NOBODY = new Uint32Array(0)
const RELEASED: Edges = {
  dependenciesStart: NOBODY,
  dependencies: NOBODY,
  dependentsStart: NOBODY,
  dependents: NOBODY,
}

export interface GraphIdentity {
  readonly id: string
  readonly ordinal: number
  readonly traceId: string
  readonly createdAt: number
}

export interface TypeCount {
  readonly type: string
  count: number
}

export class Graph {
  readonly id: string
  /** Number of the graph in the order in which its data directory took them in. */
  readonly ordinal: number
  readonly traceId: string
  /** Milliseconds since 1970. Set anew when the graph is put on disk: the order of the list is the order of these. */
  createdAt: number
  readonly tasks: Task[] = []
  /** How many tasks there are of each type. A list, as there are few: a map costs more than the rest of a small graph. */
  readonly typeCounts: TypeCount[] = []
  #edges: Edges
  /** Dependencies of each task that have not succeeded yet. The scheduler counts them down; they follow from statuses. */
  missing: Uint32Array
  /** Tasks that have not ended. */
  live = 0
  /** When the last task ended, in milliseconds since 1970; undefined while one has not. */
  endedAt: number | undefined = undefined
  /** The graph was kept for long enough: nobody sees it any more. */
  isRetired = false
  /** Tasks that are neither deleted nor replaced. */
  visible = 0
  /** Sequence number of the change that accepted the graph; 0 for one of an earlier run. */
  acceptedSeq = 0
  /** The graph's tasks can be seen; false while they are being taken in. */
  isAccepted = false

  constructor({ id, ordinal, traceId, createdAt }: GraphIdentity, edges: Edges) {
    this.id = id
    this.ordinal = ordinal
    this.traceId = traceId
    this.createdAt = createdAt
    this.#edges = edges
    this.missing = dependencyCounts(edges)
  }

  /** Adds the next tasks of a new graph: those of `inputs` from `from` to `to`. */
  add(inputs: readonly ValidTask[], from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const task = new Task(this, i, inputs[i]!)
      this.tasks.push(task)
      this.#count(task)
    }
    this.live += to - from
  }

  #count(task: Task): void {
    for (const known of this.typeCounts) {
      if (known.type !== task.type) continue
      known.count++
      return
    }
    this.typeCounts.push({ type: task.type, count: 1 })
  }

  /** Tasks that wait for no other; all of them, and no copy of the list, where no task depends on any. */
  roots(): readonly Task[] {
    if (this.#edges.dependencies.length === 0) return this.tasks
    return this.tasks.filter(({ position }) => this.missing[position] === 0)
  }

  /** How many tasks depend on `task`, one counted as often as it names it. 0 once the graph has ended. */
  dependentCount({ position }: Task): number {
    const { dependentsStart } = this.#edges
    return (dependentsStart[position + 1] ?? 0) - (dependentsStart[position] ?? 0)
  }

  /** The `i`-th of those that depend on `task`. One at a time: a view of all costs more than most have dependents. */
  dependent({ position }: Task, i: number): Task {
    const { dependents, dependentsStart } = this.#edges
    return this.tasks[dependents[dependentsStart[position]! + i]!]!
  }

  /** What `task` depends on. Empty once the graph has ended. */
  dependenciesOf({ position }: Task): Task[] {
    const { dependencies, dependenciesStart } = this.#edges
    const positions = dependencies.subarray(dependenciesStart[position] ?? 0, dependenciesStart[position + 1] ?? 0)
    return Array.from(positions, (dependency) => this.tasks[dependency]!)
  }

  /** Frees what only a live graph needs. */
  releaseEdges(): void {
    this.#edges = RELEASED
    this.missing = NOBODY
  }
}

/** Makes a graph and its tasks out of a valid submission. Yields, as there may be many. */
export function* createGraph({ tasks, edges }: ValidGraph, identity: GraphIdentity): Steps<Graph> {
  const graph = new Graph(identity, edges)
  yield* inRanges(tasks.length, (from, to) => graph.add(tasks, from, to))
  return graph
}
