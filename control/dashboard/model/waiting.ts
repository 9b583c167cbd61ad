/** Finds tasks that wait for dependencies, without a request to the service. */
import type { GraphWatch } from './graph-watch.ts'
import { hasEnded } from './looks.ts'
import type { GraphTask, Waiting } from './wire.ts'

/** Why a pending task waits: for dependencies, if one of them has not ended, else as the service said. */
export function waitingOf(task: GraphTask, watch: GraphWatch): Waiting | undefined {
  if (task.status !== 'pending') return task.waiting
  const statusOf = (id: string) => watch.tasks[watch.indexOf.get(id) ?? -1]?.status ?? 'pending'
  const open = (task.depends_on ?? []).filter((id) => !hasEnded(statusOf(id)))
  if (open.length > 0) return { reason: 'dependencies', tasks: open }
  const { waiting } = task
  return waiting?.reason === 'dependencies' && waiting.tasks !== undefined ? undefined : waiting // a task of `on_end` has none
}

/** Whether a task waits for a reason that only the service knows. */
export const asksWhy = (watch: GraphWatch): boolean =>
  watch.summary.state === 'running' &&
  watch.tasks.some((task) => task.status === 'pending' && waitingOf(task, watch) === undefined)
