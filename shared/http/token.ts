/** The bearer token that a service asks of its callers. */
import { readFileSync, statSync } from 'node:fs'
import { systemCodeOf, UsageError } from '../contract/errors.ts'
import type { Log } from '../logs/log.ts'
import { isToken, TOKEN_RULE } from './token-form.ts'

/** The token in `tokenFile`, else `variable`, else undefined. Throws `UsageError`. */
export function readToken(tokenFile: string, variable: string | undefined): string | undefined {
  if (tokenFile !== '') return readTokenFile(tokenFile, '--token-file')
  return variable ? checkedToken(variable, 'SERVICE_TOKEN') : undefined
}

/** The token in the file that `flag` names. Throws `UsageError`. */
export function readTokenFile(path: string, flag: string): string {
  try {
    return checkedToken(readFileSync(path, 'utf8').trim(), path)
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(
      `cannot read the token file ${path}: ${systemCodeOf(error) ?? error} (give another with ${flag})`,
    )
  }
}

function checkedToken(token: string, source: string): string {
  if (isToken(token)) return token
  throw new UsageError(`the token in ${source} must be ${TOKEN_RULE}`)
}

/** Mode bits of the group and of all others. */
export const ACCESS_OF_OTHERS = 0o077

/** Mode bit: all others may read. */
const READ_BY_OTHERS = 0o004

/**
 * Warns of a token file that other users have access to. The file is not refused, because container engines mount secrets
 * readable by all users. Returns whether every user of the host can read it; false without a file.
 */
export function isTokenFilePublic(tokenFile: string, log: Log): boolean {
  if (tokenFile === '') return false
  const { mode } = statSync(tokenFile)
  if ((mode & ACCESS_OF_OTHERS) !== 0)
    log.warn('other users have rights to the token file: chmod 600 it', { token_file: tokenFile })
  return (mode & READ_BY_OTHERS) !== 0
}
