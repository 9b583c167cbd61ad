/**
 * Why tasks wait: by the rules of control, and by what the services say that carry attempts out.
 *
 * Nothing is noted for this while tasks run. It is looked up when somebody asks, so it costs the other tasks nothing.
 */
import type { Waiting } from '../../shared/contract/waiting.ts'
import type { ExecutorRegistry } from '../executors/registry.ts'
import type { Handle } from '../graph/cold-fields.ts'
import type { Task } from '../graph/graph.ts'
import { waitingOf } from '../graph/waiting.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'

export interface WaitingParts {
  readonly scheduler: Pick<Scheduler, 'slotUse'>
  readonly executors: Pick<ExecutorRegistry, 'get'>
}

/** Why one of the tasks that were asked about waits now; undefined if it executes, or has ended. */
export type WaitingNow = (task: Task) => Waiting | undefined

export async function waitingNow({ scheduler, executors }: WaitingParts, tasks: readonly Task[]): Promise<WaitingNow> {
  const details = new Map<Handle, string>()
  for (const [type, handles] of handlesByType(tasks)) {
    const found = await executors.get(type)?.waitingFor?.(handles)
    for (const handle of handles) {
      const detail = found?.get(handle.id)
      if (detail !== undefined) details.set(handle, detail)
    }
  }
  return (task) => {
    const detail = isElsewhere(task) ? details.get(task.handle) : undefined
    if (detail !== undefined) return { reason: 'runtime', detail }
    return waitingOf(task, scheduler.slotUse, Date.now())
  }
}

/** Whether another service carries out the attempt of the task. */
export const isElsewhere = (task: Task): task is Task & { readonly handle: Handle } =>
  task.status === 'running' && !task.isBackingOff && task.handle !== undefined

function handlesByType(tasks: readonly Task[]): ReadonlyMap<string, readonly Handle[]> {
  const byType = new Map<string, Handle[]>()
  for (const task of tasks) {
    if (!isElsewhere(task)) continue
    const handles = byType.get(task.type) ?? []
    handles.push(task.handle)
    byType.set(task.type, handles)
  }
  return byType
}
