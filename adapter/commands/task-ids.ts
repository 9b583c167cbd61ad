/** The ids of tasks that a subcommand is given, as arguments and with `--task-ids`. */
import { UsageError } from '../../shared/errors.ts'

/** Throws `UsageError` when there is none, or one that no task has. */
export function taskIdsOf(
  positionals: readonly string[],
  { taskIds }: { readonly taskIds: readonly string[] },
): string[] {
  const ids = [...positionals, ...taskIds]
  if (ids.length === 0) throw new UsageError('no task ids: give them as arguments or with --task-ids a,b')
  if (ids.includes('')) throw new UsageError('a task id is empty')
  return ids
}
