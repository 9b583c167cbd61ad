/** The ids of a subcommand, from its arguments and `--task-ids`. */
import { UsageError } from '../../shared/contract/errors.ts'
import { list } from '../../shared/settings/flags.ts'

export const idsSetting = list({ value: 'a,b', help: 'Ids, in addition to the arguments.' })

/** Throws `UsageError` if there is no id, or an empty one. */
export function idsOf(positionals: readonly string[], { taskIds }: { readonly taskIds: readonly string[] }): string[] {
  const ids = [...positionals, ...taskIds]
  if (ids.length === 0) throw new UsageError('no task ids: give them as arguments or with --task-ids a,b')
  if (ids.includes('')) throw new UsageError('a task id is empty')
  return ids
}

/** The only id of a subcommand. `what` names it in the error. */
export function onlyIdOf([id]: readonly string[], what: string): string {
  if (id === undefined || id === '') throw new UsageError(`no ${what}: give it as argument`)
  return id
}
