/**
 * The environment of a task on its way through the portable launcher, which runs on Bun and would obey some of it:
 * BUN_BE_BUN alone would make it another program. So each variable travels under a name that means nothing. Pure.
 */

const PREFIX = 'TASKMILL_ENV_'

type Environment = Readonly<Record<string, string | undefined>>

/** What the launcher is started with. Variables of ours travel as they are, too: a sweep looks for them in every process. */
export function wrapEnvironment(env: Readonly<Record<string, string>>): Record<string, string> {
  const wrapped = Object.entries(env).map(([name, value]) => [PREFIX + name, value])
  const marks = Object.entries(env).filter(([name]) => name.startsWith('TASKMILL_') && !name.startsWith(PREFIX))
  return Object.fromEntries([...wrapped, ...marks])
}

/** What the task is started with. */
export function unwrapEnvironment(env: Environment): Record<string, string> {
  const wrapped = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[0].startsWith(PREFIX) && entry[1] !== undefined,
  )
  return Object.fromEntries(wrapped.map(([name, value]) => [name.slice(PREFIX.length), value]))
}
