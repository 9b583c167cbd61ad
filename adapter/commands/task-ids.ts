/** The task ids of a subcommand, from its arguments and `--task-ids`. */
import { UsageError } from '../../shared/errors.ts'

/** Throws `UsageError` if there is no id, or one that no task can have. */
export function taskIdsOf(
  positionals: readonly string[],
  { taskIds }: { readonly taskIds: readonly string[] },
): string[] {
  const ids = [...positionals, ...taskIds]
  if (ids.length === 0) throw new UsageError('no task ids: give them as arguments or with --task-ids a,b')
  if (ids.includes('')) throw new UsageError('a task id is empty')
  return ids
}
