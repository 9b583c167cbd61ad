/** The secret that signs callbacks. */
import { readFileSync } from 'node:fs'
import { systemCodeOf, UsageError } from '../../shared/contract/errors.ts'

/** Reads the secret and trims white space. Undefined without a file. Throws `UsageError`. */
export function readSecret(path: string): string | undefined {
  if (path === '') return undefined
  let secret: string
  try {
    secret = readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new UsageError(
      `cannot read the secret file ${path}: ${systemCodeOf(error) ?? error} (give another with --callback-secret-file)`,
    )
  }
  if (secret === '') throw new UsageError(`the secret file ${path} is empty (see --callback-secret-file)`)
  return secret
}
