/** The bearer token that a service asks of its callers. */
import { readFileSync, statSync } from 'node:fs'
import { systemCodeOf, UsageError } from './errors.ts'
import type { Log } from './log.ts'

/** The token in `tokenFile`, else `variable`, else undefined. Throws `UsageError`. */
export function readToken(tokenFile: string, variable: string | undefined): string | undefined {
  const [token, source] = tokenFile === '' ? [variable ?? '', 'SERVICE_TOKEN'] : [readTokenFile(tokenFile), tokenFile]
  if (token === '' && tokenFile === '') return undefined
  if (!/^[\x21-\x7e]{1,4096}$/.test(token)) {
    throw new UsageError(`the token in ${source} must be 1 to 4096 visible ASCII characters without spaces`)
  }
  return token
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

function readTokenFile(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new UsageError(
      `cannot read the token file ${path}: ${systemCodeOf(error) ?? error} (give another with --token-file)`,
    )
  }
}
