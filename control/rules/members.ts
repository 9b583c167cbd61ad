/** The members of a group, with the edges between them. Pure. */
import type { MemberInput } from '../../shared/contract/submission.ts'
import { runSync } from '../../shared/process/steps.ts'
import { dependenciesStartOf, type Edges, edgesAtOnce, noEdges } from './edges.ts'
import { dependencyOrder } from './order.ts'
import type { ValidTask } from './validate.ts'

function edgesOf(tasks: readonly ValidTask[], positions: ReadonlyMap<string, number>): Edges {
  const starts = dependenciesStartOf(tasks)
  // Only a hand that edits a state file can make a member depend on what is no member.
  return edgesAtOnce(tasks, starts, (id) => positions.get(id)) ?? noEdges(starts.fill(0))
}

function inOrder(tasks: readonly ValidTask[]): readonly ValidTask[] {
  const positions = new Map(tasks.map(({ id }, i) => [id, i]))
  if (tasks.every(({ depends_on }, i) => (depends_on ?? []).every((id) => positions.get(id)! < i))) return tasks
  return [...runSync(dependencyOrder(edgesOf(tasks, positions)))].map((position) => tasks[position]!)
}

/** What all elements of a group share. */
export class Members {
  /** Each after those that it depends on: as submitted, if they were. */
  readonly tasks: readonly ValidTask[]
  /** By the positions of the members. */
  readonly edges: Edges
  readonly #positions: ReadonlyMap<string, number>

  constructor(tasks: readonly MemberInput[]) {
    this.tasks = inOrder(tasks as readonly ValidTask[])
    this.#positions = new Map(this.tasks.map(({ id }, i) => [id, i]))
    this.edges = edgesOf(this.tasks, this.#positions)
  }

  /** The position of the member with this id; undefined if there is none. */
  positionOf(id: string): number | undefined {
    return this.#positions.get(id)
  }
}
