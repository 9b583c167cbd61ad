/** The `secrets` of a task, before it runs: whether a task of its type can have them. Pure. */

import { RequestFault } from '../../shared/request/fault.ts'
import { type SecretNames, secretFileOf, validSecrets } from '../../shared/request/secrets.ts'
import { shortened } from '../../shared/request/text.ts'
import { isGiven, isObject } from '../../shared/text/json.ts'
import type { Path, Place } from './placeholders.ts'

/** Parameters that hold variables, too. */
const PLACES_OF_VARIABLES = [['env'], ['execution', 'env'], ['secrets']] as const

/** What is wrong with the `secrets` of a task with this input; undefined if they are sound. `inFiles`: files are possible. */
export function secretsFault(secrets: SecretNames, input: unknown, inFiles: boolean): string | undefined {
  try {
    validSecrets(secrets, { env: {} })
  } catch (error) {
    if (error instanceof RequestFault) return error.message
    throw error
  }
  for (const [variable, use] of Object.entries(secrets)) {
    const at = `secrets.${shortened(variable)}`
    if (secretFileOf(use) !== undefined && !inFiles) {
      return `${at}.file: only a runtime task has a workspace for files (leave file out to have a variable)`
    }
    const place = PLACES_OF_VARIABLES.find((names) => hasVariable(input, names, variable))
    if (place !== undefined) return `${at} is a variable of ${place.join('.')} of its parameters, too`
  }
  return undefined
}

function hasVariable(input: unknown, names: readonly string[], variable: string): boolean {
  let value = input
  for (const name of names) value = isObject(value) ? value[name] : undefined
  return isObject(value) && Object.hasOwn(value, variable)
}

const RUNTIME = 'runtime'

/** What is wrong with a placeholder in the parameters of a task of `type`: an output must not decide which secret a task gets. */
export const placeholderFault = (type: string, path: Path): string | undefined =>
  type === RUNTIME && path[0] === 'secrets' ? 'a placeholder cannot name secrets' : undefined

/** The same for an input that is as a whole the value of another task, once that is known. */
export const referencedSecretsFault = (type: string, places: readonly Place[], input: unknown): string | undefined =>
  type === RUNTIME && isObject(input) && isGiven(input.secrets) && places.some(isWholeReference)
    ? 'a referenced value cannot name secrets'
    : undefined

const isWholeReference = ({ path, placeholder }: Place): boolean =>
  path.length === 0 && ['reference', 'item', 'graph'].includes(placeholder.kind)
