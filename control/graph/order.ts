/** The order that dependencies allow, or the cycle that forbids one. Pure; no recursion, linear in tasks and edges. */
import { isYieldDue, type Slices } from '../../shared/slices.ts'

/** Edges between two pauses: each is but two additions. */
const EDGES_PER_YIELD = 4096

/** Who waits for whom, by position in the graph. */
export interface Edges {
  /** The dependencies of task `i` are `dependencies[dependenciesStart[i] .. dependenciesStart[i + 1]]`. */
  readonly dependenciesStart: Uint32Array
  readonly dependencies: Uint32Array
  /** The tasks that depend on task `i` are `dependents[dependentsStart[i] .. dependentsStart[i + 1]]`. */
  readonly dependentsStart: Uint32Array
  readonly dependents: Uint32Array
}

/** `edges` are pairs of positions: `dependencies[e]` must succeed before `tasks[e]`, grouped by rising `tasks[e]`. */
export function* buildEdges(taskCount: number, tasks: Uint32Array, dependencies: Uint32Array): Slices<Edges> {
  const dependenciesStart = new Uint32Array(taskCount + 1)
  const dependentsStart = new Uint32Array(taskCount + 1)
  if (tasks.length === 0) return { dependenciesStart, dependencies, dependentsStart, dependents: tasks }
  for (let e = 0; e < tasks.length; e++) {
    dependenciesStart[tasks[e]! + 1]!++
    dependentsStart[dependencies[e]! + 1]!++
    if (e % EDGES_PER_YIELD === EDGES_PER_YIELD - 1) yield
  }
  for (let i = 0; i < taskCount; i++) {
    dependenciesStart[i + 1]! += dependenciesStart[i]!
    dependentsStart[i + 1]! += dependentsStart[i]!
  }
  const next = dependentsStart.slice()
  const dependents = new Uint32Array(tasks.length)
  for (let e = 0; e < tasks.length; e++) {
    dependents[next[dependencies[e]!]!++] = tasks[e]!
    if (e % EDGES_PER_YIELD === EDGES_PER_YIELD - 1) yield
  }
  return { dependenciesStart, dependencies, dependentsStart, dependents }
}

/** How many dependencies each task has, repeated ones counted. */
export function dependencyCounts({ dependenciesStart }: Edges): Uint32Array {
  const counts = new Uint32Array(dependenciesStart.length - 1)
  for (let i = 0; i < counts.length; i++) counts[i] = dependenciesStart[i + 1]! - dependenciesStart[i]!
  return counts
}

/** Null when the graph is acyclic, else the positions of one cycle: each depends on the next, the last on the first. */
export function* findCycle(edges: Edges): Slices<number[] | null> {
  const { dependentsStart, dependents } = edges
  if (dependents.length === 0) return null
  const missing = dependencyCounts(edges)
  const ready = new Uint32Array(missing.length)
  let found = 0
  for (let i = 0; i < missing.length; i++) if (missing[i] === 0) ready[found++] = i
  for (let at = 0; at < found; at++) {
    const task = ready[at]!
    for (let d = dependentsStart[task]!; d < dependentsStart[task + 1]!; d++) {
      const dependent = dependents[d]!
      if (--missing[dependent]! === 0) ready[found++] = dependent
    }
    if (isYieldDue(at)) yield
  }
  return found === missing.length ? null : yield* cycleAmong(edges, missing)
}

/** Tasks with `missing > 0` wait for each other. Walking from any of them to one it waits for must come round. */
function* cycleAmong({ dependentsStart, dependents }: Edges, missing: Uint32Array): Slices<number[]> {
  const waitsFor = new Int32Array(missing.length).fill(-1)
  for (let task = 0; task < missing.length; task++) {
    if (missing[task] === 0) continue
    for (let d = dependentsStart[task]!; d < dependentsStart[task + 1]!; d++) waitsFor[dependents[d]!] = task
    if (isYieldDue(task)) yield
  }
  const start = missing.findIndex((count) => count > 0)
  const seenAt = new Int32Array(missing.length).fill(-1)
  const path: number[] = []
  let at = start
  while (seenAt[at] === -1) {
    seenAt[at] = path.length
    path.push(at)
    at = waitsFor[at]!
    if (isYieldDue(path.length)) yield
  }
  return path.slice(seenAt[at]!)
}
