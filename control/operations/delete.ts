/** Deletes the record of a task. */
import type { Keeper } from '../log/keeper.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'
import type { TaskStore } from '../task/tasks.ts'
import { knownTask, type TaskAddress } from './named-tasks.ts'

export interface DeleteParts {
  readonly store: TaskStore
  readonly scheduler: Scheduler
  readonly keeper: Pick<Keeper, 'assertWritableWithReserve' | 'kept'>
}

/** Resolves once the deletion is on disk. Throws 404, and 503 if the disk takes no writes. */
export async function deleteTask({ store, scheduler, keeper }: DeleteParts, address: TaskAddress): Promise<void> {
  const task = knownTask(store, address)
  keeper.assertWritableWithReserve()
  scheduler.delete(task)
  await keeper.kept('promise')
}
