/** Finds a subcommand by its name. */
import { UsageError } from '../../shared/contract/errors.ts'
import { nearestName } from '../../shared/text/nearest-name.ts'
import type { Command, Commands } from './command.ts'

/** Throws `UsageError` with the nearest name. */
export function knownCommand(name: string, commands: Commands): Command {
  if (Object.hasOwn(commands, name)) return commands[name]!
  const nearest = nearestName(name, Object.keys(commands), SYNONYMS)
  const remedy = nearest === undefined ? `there are: ${Object.keys(commands).join(', ')}` : `did you mean "${nearest}"?`
  throw new UsageError(`unknown subcommand "${name}" (${remedy})`)
}

/** Names of the subcommands in other programs. */
const SYNONYMS = {
  ps: 'list',
  ls: 'list',
  tasks: 'list',
  show: 'get',
  describe: 'get',
  rm: 'delete',
  remove: 'delete',
  kill: 'cancel',
  stop: 'down',
  shutdown: 'down',
  start: 'up',
  serve: 'up',
  diagnose: 'doctor',
  tail: 'logs',
  output: 'logs',
  follow: 'watch',
  attach: 'watch',
  validate: 'check',
  lint: 'check',
  plan: 'check',
  accept: 'approve',
  confirm: 'approve',
  deny: 'reject',
  decline: 'reject',
  restart: 'rerun',
  change: 'patch',
  edit: 'patch',
  amend: 'patch',
} as const
