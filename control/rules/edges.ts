/**
 * The dependencies of a graph, by positions of the tasks. Pure; linear in tasks and dependencies.
 *
 * Only this file assembles edges: in steps for a new graph, in one go for a small graph and for a graph from disk.
 */
import { inRanges, type Steps } from '../../shared/process/steps.ts'

export interface Edges {
  /** The dependencies of task `i` are `dependencies[dependenciesStart[i] .. dependenciesStart[i + 1]]`. */
  readonly dependenciesStart: Uint32Array
  readonly dependencies: Uint32Array
  /** The tasks that depend on task `i` are `dependents[dependentsStart[i] .. dependentsStart[i + 1]]`. */
  readonly dependentsStart: Uint32Array
  readonly dependents: Uint32Array
}

/** The fields of a task that edges need. */
export interface Dependent {
  readonly depends_on?: readonly string[] | null | undefined
}

/** The edges of a graph in which no task depends on another. `start` is its `dependenciesStart`. */
export function noEdges(start: Uint32Array): Edges {
  const none = new Uint32Array(0)
  return { dependenciesStart: start, dependencies: none, dependentsStart: start, dependents: none }
}

/** The length of the list of edges at `position`; 0 if there is none. */
export const lengthAt = (start: Uint32Array, position: number): number =>
  Math.max(0, (start[position + 1] ?? 0) - (start[position] ?? 0))

/** `dependenciesStart` of `tasks`. */
export function dependenciesStartOf(tasks: readonly Dependent[]): Uint32Array {
  const start = new Uint32Array(tasks.length + 1)
  fillDependenciesStart(start, tasks, 0, tasks.length)
  return start
}

/** Fills `start` for the tasks `from` to `to`. The entries before `from` must be filled. */
export function fillDependenciesStart(start: Uint32Array, tasks: readonly Dependent[], from: number, to: number): void {
  for (let i = from; i < to; i++) start[i + 1] = start[i]! + (tasks[i]!.depends_on?.length ?? 0)
}

/** The edges. Undefined if `positionOf` does not know a dependency. */
export function edgesAtOnce(
  tasks: readonly Dependent[],
  dependenciesStart: Uint32Array,
  positionOf: (id: string) => number | undefined,
): Edges | undefined {
  const assembly = new Assembly(tasks, dependenciesStart, positionOf)
  const { edgeCount } = assembly
  if (!assembly.resolve(0, edgeCount)) return undefined
  assembly.startLists()
  assembly.place(0, edgeCount)
  return assembly.edges
}

/** The edges. `positionOf` returns the position of a dependency of the task at position `of`, or throws. */
export function* edgesInSteps(
  tasks: readonly Dependent[],
  dependenciesStart: Uint32Array,
  positionOf: (id: string, of: number) => number,
): Steps<Edges> {
  const assembly = new Assembly(tasks, dependenciesStart, positionOf)
  const { edgeCount } = assembly
  yield* inRanges(edgeCount, (from, to) => void assembly.resolve(from, to))
  assembly.startLists()
  yield* inRanges(edgeCount, (from, to) => assembly.place(from, to))
  return assembly.edges
}

/** The number of dependencies of each task, including repeated ones. */
export function dependencyCounts({ dependenciesStart }: Pick<Edges, 'dependenciesStart'>): Uint32Array {
  const counts = new Uint32Array(dependenciesStart.length - 1)
  for (let i = 0; i < counts.length; i++) counts[i] = dependenciesStart[i + 1]! - dependenciesStart[i]!
  return counts
}

/** Loops over dependencies, not over tasks, because one task may have most of the dependencies. */
class Assembly {
  readonly edges: Edges
  readonly edgeCount: number
  readonly #tasks: readonly Dependent[]
  readonly #positionOf: (id: string, of: number) => number | undefined
  /** The task of the next dependency. `resolve` goes forward, `place` goes backward. */
  #task = 0

  constructor(
    tasks: readonly Dependent[],
    dependenciesStart: Uint32Array,
    positionOf: (id: string, of: number) => number | undefined,
  ) {
    this.#tasks = tasks
    this.#positionOf = positionOf
    this.edgeCount = dependenciesStart[tasks.length]!
    this.edges = {
      dependenciesStart,
      dependencies: new Uint32Array(this.edgeCount),
      dependentsStart: new Uint32Array(tasks.length + 1),
      dependents: new Uint32Array(this.edgeCount),
    }
  }

  /** Resolves the dependencies `from` to `to` in order, and counts the dependents. False if one has no position. */
  resolve(from: number, to: number): boolean {
    const { dependenciesStart, dependencies, dependentsStart } = this.edges
    for (let e = from; e < to; e++) {
      while (e >= dependenciesStart[this.#task + 1]!) this.#task++
      const id = this.#tasks[this.#task]!.depends_on![e - dependenciesStart[this.#task]!]!
      const position = this.#positionOf(id, this.#task)
      if (position === undefined) return false
      dependencies[e] = position
      dependentsStart[position]!++
    }
    return true
  }

  /** Turns the counts into the ends of the lists of dependents. `place` fills each list from its end to its start. */
  startLists(): void {
    const { dependentsStart } = this.edges
    for (let i = 1; i < dependentsStart.length; i++) dependentsStart[i]! += dependentsStart[i - 1]!
    this.#task = this.#tasks.length - 1
  }

  /** Adds the dependents of the dependencies `from` to `to`, counted from the end, to their lists. */
  place(from: number, to: number): void {
    const { dependenciesStart, dependencies, dependentsStart, dependents } = this.edges
    const last = this.edgeCount - 1
    for (let e = last - from; e > last - to; e--) {
      while (e < dependenciesStart[this.#task]!) this.#task--
      dependents[--dependentsStart[dependencies[e]!]!] = this.#task
    }
  }
}
