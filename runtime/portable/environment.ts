/**
 * The environment of a task on its way through the portable launcher. That runs on Bun, which obeys some variables:
 * BUN_BE_BUN alone would make it another program. So each variable travels under another name. Pure.
 */

import { isMaskVariable } from '../launch/mask-variables.ts'

const PREFIX = 'TASKMILL_ENV_'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The environment of the launcher. Our own variables are also kept as they are, since searches look for them in all
 * processes. No search looks for texts to mask.
 */
export function wrapEnvironment(env: Readonly<Record<string, string>>): Record<string, string> {
  const wrapped = Object.entries(env).map(([name, value]) => [PREFIX + name, value])
  const isMark = (name: string) => name.startsWith('TASKMILL_') && !name.startsWith(PREFIX) && !isMaskVariable(name)
  const marks = Object.entries(env).filter(([name]) => isMark(name))
  return Object.fromEntries([...wrapped, ...marks])
}

/** The environment of the task. */
export function unwrapEnvironment(env: Environment): Record<string, string> {
  const wrapped = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[0].startsWith(PREFIX) && entry[1] !== undefined,
  )
  return Object.fromEntries(wrapped.map(([name, value]) => [name.slice(PREFIX.length), value]))
}
