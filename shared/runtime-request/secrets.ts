/** Variables whose values the runtime service looks up when the task starts. Requests hold only names. Pure. */
import { requestFault } from './fault.ts'
import { TASK_MARK } from './task-mark.ts'
import { checkText, isBlank, shortened } from './text.ts'

/** Secrets of one task. */
export const MAX_SECRETS = 64

/** Variable to name of a secret. */
export type SecretNames = Readonly<Record<string, string>>

/** A name is that of a file. */
export const isSecretName = (name: string): boolean => /^[A-Za-z0-9._-]{1,128}$/.test(name) && !/^\.\.?$/.test(name)

/** Throws `RequestFault` with the first fault. `env` holds the other variables of the task. */
export function validSecrets(given: SecretNames = {}, env: Readonly<Record<string, string>>): SecretNames {
  const entries = Object.entries(given)
  if (entries.length > MAX_SECRETS) {
    throw requestFault(`secrets has ${entries.length} entries (a task has at most ${MAX_SECRETS})`)
  }
  for (const [variable, name] of entries) {
    if (isBlank(variable) || variable.includes('=')) {
      throw requestFault('secrets keys must be non-empty and cannot contain "="')
    }
    const path = `secrets.${shortened(variable)}`
    checkText(`the name of ${path}`, variable)
    if (variable === TASK_MARK) throw requestFault(`${path} marks the processes of a task and cannot be replaced`)
    if (Object.hasOwn(env, variable)) throw requestFault(`${path} is a variable of execution.env, too`)
    if (!isSecretName(name)) {
      throw requestFault(
        `${path}: the name of a secret has 1 to 128 letters, digits, "-", "_" and ".", got ${shortened(name)}`,
      )
    }
  }
  return given
}
