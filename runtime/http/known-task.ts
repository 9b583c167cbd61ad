/** The common part of the routes of one task. */
import { Refusal } from '../refusal.ts'
import type { TaskStore } from '../store/task-store.ts'
import type { TaskRow } from '../store/tasks.ts'

export const section = 'Tasks'
export const params = { id: 'Id of the task.' }
export const unknownTask = { 404: 'There is no such task.' }

/** Throws 404 if there is no such task. */
export function knownTask(store: Pick<TaskStore, 'get'>, id: string): TaskRow {
  const row = store.get(id)
  if (row === undefined) throw new Refusal('not_found', `task not found: ${id}`)
  return row
}
