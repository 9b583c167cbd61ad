/** When a task may start at the earliest. Pure. */
import { startOf } from '../rules/not-before.ts'
import type { Task } from './graph.ts'

/**
 * Milliseconds since 1970; undefined for any time, and once the task has started. Its dependencies have ended. A restart gets
 * the same time: a delay begins with the last end among the dependencies.
 */
export function earliestStart(task: Task): number | undefined {
  const { graph, options } = task
  const own = options.not_before
  const whole = graph.options.not_before
  // The parent of a child has waited. Only a member of a group has a delay of its own.
  const isOver = task.childOf !== undefined && own === undefined
  if ((own === undefined && whole === undefined) || task.startedAt !== undefined || isOver || task.atEnd !== undefined)
    return undefined
  let at = whole === undefined ? 0 : startOf(whole, graph.createdAt)
  if (own !== undefined) at = Math.max(at, startOf(own, readySince(task)))
  return at
}

function readySince(task: Task): number {
  const { graph } = task
  let since = task.childOf?.parent.startedAt ?? task.createdAt
  const count = graph.dependencyCount(task)
  for (let i = 0; i < count; i++) since = Math.max(since, graph.dependency(task, i).finishedAt ?? 0)
  return since
}
