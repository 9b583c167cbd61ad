/** The order that dependencies allow, or the cycle that forbids one. Pure; no recursion, linear in tasks and edges. */
import { inRanges, isYieldDue, type Steps } from '../../shared/steps.ts'
import { dependencyCounts, type Edges } from './edges.ts'

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
