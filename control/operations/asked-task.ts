/** Tasks that wait until a caller ends them, and the 409 of those that cannot be ended that way. */
import { ServiceError } from '../../shared/contract/errors.ts'
import { childId } from '../rules/child-ids.ts'
import type { Task } from '../task/graph.ts'
import { onDependencies } from '../task/waiting.ts'
import type { OperationParts } from './parts.ts'

/** Throws 409 for a task with `for_each`, whose children wait. `verb` is what the caller wants. */
export function ensureSingle(task: Task, verb: string): void {
  if (task.options.for_each === undefined) return
  throw conflict(task, `has for_each: ${verb} its children one by one, such as ${childId(task.id, 0)}`)
}

/**
 * Ends `task` by `end`, which answers false if the task does not wait; then it may have ended (`ensureSame` throws unless it
 * did as the caller wants), or 409 says why it does not wait yet. Resolves once the end is on disk.
 */
export async function endedByCaller(
  { scheduler, keeper }: Pick<OperationParts, 'scheduler' | 'keeper'>,
  task: Task,
  end: () => boolean,
  ensureSame: () => void,
  verb: string,
): Promise<void> {
  if (task.isTerminal) ensureSame()
  else {
    if (scheduler.fault !== undefined) throw new ServiceError(503, scheduler.fault)
    keeper.assertWritable()
    if (!end()) {
      if (!task.isTerminal) throw notYet(task, verb)
      ensureSame() // its time was over
    }
  }
  await keeper.kept('promise')
}

export const notYet = (task: Task, verb: string) => conflict(task, `cannot be ${verb} yet: ${whyNotYet(task)}`)

export const conflict = ({ id }: Task, text: string) => new ServiceError(409, `task ${id} ${text}`)

function whyNotYet(task: Task): string {
  const { tasks = [] } = onDependencies(task) ?? {}
  return tasks.length > 0 ? `it depends on ${tasks.join(', ')}` : 'it is about to be asked for'
}
