/**
 * Finds out why tasks wait, from the state of control and from the services that carry out attempts.
 *
 * Reasons are computed when a caller asks. They are not tracked while tasks run, so they cost nothing otherwise.
 */
import type { Waiting } from '../../shared/contract/waiting.ts'
import type { Task } from '../task/graph.ts'
import type { Handle } from '../task/rare-state.ts'
import { waitingOf } from '../task/waiting.ts'
import type { Ground } from './ground.ts'

/** Why a task waits now. Undefined if it executes or has ended. Only for the tasks of the query. */
export type WaitingNow = (task: Task) => Waiting | undefined

/** `lastKnown` tells the reason of a task whose remote service does not answer in time. */
export async function waitingNow(
  parts: Ground,
  tasks: readonly Task[],
  lastKnown: WaitingNow = () => undefined,
): Promise<WaitingNow> {
  const { executors } = parts
  const details = new Map<Handle, string | undefined>()
  for (const [type, handles] of handlesByType(tasks)) {
    const found = await executors.get(type)?.waitingFor?.(handles)
    for (const handle of handles) if (found?.has(handle.id)) details.set(handle, found.get(handle.id))
  }
  return (task) => {
    const handle = handleElsewhere(task)
    if (handle === undefined) return waitingFor(parts, task, undefined)
    const detail = details.get(handle)
    const isUnknown = detail === undefined && details.has(handle)
    return isUnknown ? lastKnown(task) : waitingFor(parts, task, detail)
  }
}

/** Why a task waits now that no other service carries out. Undefined if it executes or has ended. */
export const waitingHere = (parts: Ground, task: Task): Waiting | undefined =>
  task.isTerminal ? undefined : waitingFor(parts, task, undefined)

function waitingFor(parts: Ground, task: Task, elsewhere: string | undefined): Waiting | undefined {
  const waiting = waitingUnstored(parts, task, elsewhere)
  const { fault } = parts.keeper
  // An attempt may execute, or may have ended: neither can be told for certain before it is written.
  const isHidden = fault !== undefined && !task.isTerminal && (waiting ?? HELD).reason === HELD.reason
  return isHidden ? { reason: 'storage', detail: fault } : waiting
}

/** The reason of tasks that would start if changes could be written. */
const HELD = { reason: 'concurrency' } satisfies Waiting

function waitingUnstored({ scheduler, executors }: Ground, task: Task, elsewhere: string | undefined) {
  const detail = handleElsewhere(task) !== undefined ? elsewhere : waitsHere(executors, task)
  if (detail !== undefined) return { reason: 'runtime' as const, detail }
  return waitingOf(task, scheduler.slotUse, Date.now())
}

/** What an attempt waits for that will be delegated, and is not yet; undefined if it does not wait. */
export function waitsHere(executors: Ground['executors'], task: Task): string | undefined {
  return mayBeDelegated(executors, task) && task.rare.handle === undefined
    ? executors.get(task.type)?.waitingHere?.(task)
    : undefined
}

/** Whether another service carries out the attempt of `task`, or will. */
export const mayBeDelegated = (executors: Ground['executors'], task: Task): boolean =>
  handleElsewhere(task) !== undefined ||
  (task.status === 'running' && !task.rare.isBackingOff && executors.get(task.type)?.waitingHere !== undefined)

/** The handle of the attempt of `task` that another service carries out now; undefined if none does. */
export const handleElsewhere = ({ status, rare }: Task): Handle | undefined =>
  status === 'running' && !rare.isBackingOff ? rare.handle : undefined

function handlesByType(tasks: readonly Task[]): ReadonlyMap<string, readonly Handle[]> {
  const byType = new Map<string, Handle[]>()
  for (const task of tasks) {
    const handle = handleElsewhere(task)
    if (handle === undefined) continue
    const handles = byType.get(task.type) ?? []
    handles.push(handle)
    byType.set(task.type, handles)
  }
  return byType
}
