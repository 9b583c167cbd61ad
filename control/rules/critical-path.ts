/**
 * The critical path of a graph: the chain of dependent tasks that took the longest. Pure; linear in tasks and edges.
 */
import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import type { Edges } from './edges.ts'

export interface CriticalPath {
  /** Positions of the tasks, each a dependency of the next. Empty if no task has started. */
  readonly positions: readonly number[]
  /** The sum of their durations. */
  readonly durationMs: number
}

/**
 * `order` comes from `dependencyOrder`. `durationOf` returns the milliseconds that a task has taken so far, or
 * undefined for a task that never started. No path contains such a task. Of equal paths, the one that ends first in
 * `order` counts.
 */
export function* criticalPath(
  { dependenciesStart, dependencies }: Pick<Edges, 'dependenciesStart' | 'dependencies'>,
  order: Uint32Array,
  durationOf: (position: number) => number | undefined,
): Steps<CriticalPath> {
  /** For each task the length of the longest path that ends with it; NaN if the task never started. */
  const longest = new Float64Array(order.length).fill(Number.NaN)
  const previous = new Int32Array(order.length).fill(-1)
  let end = -1
  let steps = 0
  for (const task of order) {
    const durationMs = durationOf(task)
    if (isYieldDue(steps++)) yield
    if (durationMs === undefined) continue
    let before = -1
    for (let d = dependenciesStart[task]!; d < dependenciesStart[task + 1]!; d++) {
      const dependency = dependencies[d]!
      const isLonger = before < 0 ? longest[dependency]! >= 0 : longest[dependency]! > longest[before]!
      if (isLonger) before = dependency
      if (isYieldDue(steps++)) yield
    }
    previous[task] = before
    longest[task] = durationMs + (before < 0 ? 0 : longest[before]!)
    if (end < 0 || longest[task]! > longest[end]!) end = task
  }
  const positions: number[] = []
  for (let task = end; task >= 0; task = previous[task]!) {
    positions.push(task)
    if (isYieldDue(positions.length)) yield
  }
  return { positions: positions.reverse(), durationMs: end < 0 ? 0 : longest[end]! }
}
