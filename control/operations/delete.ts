/** Deletes the record of a task. */
import type { Persistence } from '../journal/persistence.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'
import type { TaskStore } from '../store/tasks.ts'
import { knownTask, type TaskAddress } from './named-tasks.ts'

export interface DeleteParts {
  readonly store: TaskStore
  readonly scheduler: Scheduler
  readonly persistence: Pick<Persistence, 'assertWritable' | 'durable'>
}

/** Resolves once the deletion is on disk. Throws 404, and 503 if the disk takes no writes. */
export async function deleteTask({ store, scheduler, persistence }: DeleteParts, address: TaskAddress): Promise<void> {
  const task = knownTask(store, address)
  persistence.assertWritable()
  scheduler.delete(task)
  await persistence.durable()
}
