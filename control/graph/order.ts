/** The order that dependencies allow, or the cycle that forbids one. Pure; no recursion, linear in tasks and edges. */
import { inRanges, isYieldDue, type Steps } from '../../shared/steps.ts'

/** Who waits for whom, by position in the graph. */
export interface Edges {
  /** The dependencies of task `i` are `dependencies[dependenciesStart[i] .. dependenciesStart[i + 1]]`. */
  readonly dependenciesStart: Uint32Array
  readonly dependencies: Uint32Array
  /** The tasks that depend on task `i` are `dependents[dependentsStart[i] .. dependentsStart[i + 1]]`. */
  readonly dependentsStart: Uint32Array
  readonly dependents: Uint32Array
}

/** The dependencies of task `i` are `dependencies[dependenciesStart[i] .. dependenciesStart[i + 1]]`. */
export function* buildEdges(dependenciesStart: Uint32Array, dependencies: Uint32Array): Steps<Edges> {
  const taskCount = dependenciesStart.length - 1
  const edgeCount = dependencies.length
  const dependentsStart = new Uint32Array(taskCount + 1)
  if (edgeCount === 0) return { dependenciesStart, dependencies, dependentsStart, dependents: dependencies }
  yield* inRanges(edgeCount, (from, to) => {
    for (let e = from; e < to; e++) dependentsStart[dependencies[e]!]!++
  })
  // Where each list ends; filled from its end, it leaves where it starts.
  for (let i = 1; i <= taskCount; i++) dependentsStart[i]! += dependentsStart[i - 1]!
  const dependents = new Uint32Array(edgeCount)
  let task = taskCount - 1
  yield* inRanges(edgeCount, (from, to) => {
    for (let e = edgeCount - 1 - from; e >= edgeCount - to; e--) {
      while (e < dependenciesStart[task]!) task--
      const end = --dependentsStart[dependencies[e]!]!
      dependents[end] = task
    }
  })
  return { dependenciesStart, dependencies, dependentsStart, dependents }
}

/** How many dependencies each task has, repeated ones counted. */
export function dependencyCounts({ dependenciesStart }: Pick<Edges, 'dependenciesStart'>): Uint32Array {
  const counts = new Uint32Array(dependenciesStart.length - 1)
  for (let i = 0; i < counts.length; i++) counts[i] = dependenciesStart[i + 1]! - dependenciesStart[i]!
  return counts
}

/** Null when the graph is acyclic, else the positions of one cycle: each depends on the next, the last on the first. */
export function* findCycle(edges: Edges): Steps<number[] | null> {
  const { dependentsStart, dependents } = edges
  if (dependents.length === 0) return null
  const missing = dependencyCounts(edges)
  const ready = new Uint32Array(missing.length)
  let found = 0
  for (let i = 0; i < missing.length; i++) if (missing[i] === 0) ready[found++] = i
  let at = 0
  yield* inRanges(missing.length, (_, to) => {
    for (; at < to && at < found; at++) {
      const task = ready[at]!
      for (let d = dependentsStart[task]!; d < dependentsStart[task + 1]!; d++) {
        const dependent = dependents[d]!
        if (--missing[dependent]! === 0) ready[found++] = dependent
      }
    }
  })
  return found === missing.length ? null : yield* cycleAmong(edges, missing)
}

/** Tasks with `missing > 0` wait for each other. Walking from any of them to one it waits for must come round. */
function* cycleAmong({ dependentsStart, dependents }: Edges, missing: Uint32Array): Steps<number[]> {
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
