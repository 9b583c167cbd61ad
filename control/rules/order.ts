/** Finds a topological order, or a cycle. Pure; linear in tasks and edges, without recursion. */
import { inRanges, isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { dependencyCounts, type Edges } from './edges.ts'

/**
 * Null if the graph is acyclic. Otherwise the positions of one cycle: each task depends on the next, the last on the
 * first.
 */
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

/**
 * The positions of an acyclic graph in topological order. It is the submitted order, except that a task before one of
 * its dependencies moves right behind it. A submitted order that is topological stays unchanged.
 */
export function* dependencyOrder({
  dependenciesStart,
  dependencies,
}: Pick<Edges, 'dependenciesStart' | 'dependencies'>): Steps<Uint32Array> {
  const count = dependenciesStart.length - 1
  const order = new Uint32Array(count)
  const isPlaced = new Uint8Array(count)
  const nextDependency = dependenciesStart.slice(0, count)
  /** Visited tasks that are not placed yet. Each is a dependent of the next. */
  const path: number[] = []
  let placed = 0
  let steps = 0
  for (let first = 0; first < count; first++) {
    if (isPlaced[first] === 0) path.push(first)
    while (path.length > 0) {
      const task = path.at(-1)!
      const d = nextDependency[task]!++
      if (d < dependenciesStart[task + 1]!) {
        const dependency = dependencies[d]!
        if (isPlaced[dependency] === 0) path.push(dependency)
      } else {
        isPlaced[task] = 1
        order[placed++] = task
        path.pop()
      }
      if (isYieldDue(steps++)) yield
    }
  }
  return order
}

/** Tasks with `missing > 0` wait for each other, so a walk from task to dependency must return to a visited task. */
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
