import { knownTask, type TaskAddress } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'

/** Resolves once the deletion is on disk. Throws 404, and 503 if the disk takes no writes. */
export async function deleteTask({ store, scheduler, keeper }: OperationParts, address: TaskAddress): Promise<void> {
  const task = knownTask(store, address)
  keeper.assertWritableWithReserve()
  scheduler.delete(task)
  await keeper.kept('promise')
}
