/** When a task that a caller is asked for ends by itself. Pure. */
import { expiryOf } from './approval.ts'
import type { Task } from './graph.ts'
import { endOfWait, isWait } from './wait.ts'

/** When it ends by itself, in milliseconds since 1970; undefined if only a caller ends it. */
export function endOf(task: Task): number | undefined {
  const [due, expiry] = timesOf(task)
  return due === undefined || expiry === undefined ? (due ?? expiry) : Math.min(due, expiry)
}

/** Whether the time until which it waits comes before its timeout. */
export function isDueFirst(task: Task): boolean {
  const [due, expiry] = timesOf(task)
  return due !== undefined && (expiry === undefined || due <= expiry)
}

function timesOf(task: Task): [due: number | undefined, expiry: number | undefined] {
  const askedAt = task.rare.asked_at!
  return [isWait(task) ? endOfWait(task, askedAt) : undefined, expiryOf(askedAt, task.options.timeout)]
}
