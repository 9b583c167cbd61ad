/** The chain of tasks that determined the duration of a graph. Each task waited for the one before it. */
import type { GraphTask } from './wire.ts'

export interface CriticalPath {
  readonly ids: ReadonlySet<string>
  /** Share of the duration of the graph in which a task of the path ran, 0 to 1. */
  readonly runningShare: number
}

/**
 * Starts at the task that ended last, and repeatedly steps back to the dependency that ended last. A task with children
 * stands for the child that ended last, and the first of its children for what their task waited for. It is on the path, but
 * only its children run.
 */
export function criticalPath(
  tasks: readonly GraphTask[],
  edges: readonly (readonly [from: string, to: string])[],
  nowMs: number,
): CriticalPath {
  const byId = new Map(tasks.map((task) => [task.id, task]))
  const before = new Map<string, string[]>()
  for (const [from, to] of edges) {
    const some = before.get(to)
    if (some === undefined) before.set(to, [from])
    else some.push(from)
  }
  const childrenOf = Map.groupBy(tasks, ({ parent }) => parent)
  const endOf = (task: GraphTask | undefined): number =>
    task?.started_at === undefined ? Number.NEGATIVE_INFINITY : endMs(task, nowMs)
  const latest = (candidates: readonly (GraphTask | undefined)[]): GraphTask | undefined =>
    candidates.reduce((best, task) => (endOf(task) > endOf(best) ? task : best), undefined)
  const latestOf = (ids: readonly string[] = []) => latest(ids.map((id) => byId.get(id)))
  const ids = new Set<string>()
  let runningMs = 0
  const last = latest(childrenOf.get(undefined) ?? [])
  let start = last
  for (let task = last; task !== undefined && !ids.has(task.id); ) {
    ids.add(task.id)
    start = task
    const child = latest(childrenOf.get(task.id) ?? [])
    if (child === undefined) runningMs += endOf(task) - Date.parse(task.started_at!)
    const parent = task.parent
    task = child ?? latestOf(before.get(task.id)) ?? (parent === undefined ? undefined : latestOf(before.get(parent)))
  }
  const totalMs = last === undefined ? 0 : endOf(last) - Date.parse(start!.started_at!)
  return { ids, runningShare: totalMs <= 0 ? 1 : Math.min(1, runningMs / totalMs) }
}

/** When a task that has started ended; a task that runs ends now. */
export const endMs = (task: GraphTask, nowMs: number): number =>
  task.finished_at !== undefined
    ? Date.parse(task.finished_at)
    : Math.max(nowMs, task.started_at === undefined ? nowMs : Date.parse(task.started_at))
