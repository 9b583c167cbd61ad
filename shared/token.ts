/** The token of a service: what callers must show, where one is set. */
import { readFileSync, statSync } from 'node:fs'
import { systemCodeOf, UsageError } from './errors.ts'
import type { Log } from './log.ts'

/** From `tokenFile` if one is named, else `variable` itself; undefined when there is neither. Throws `UsageError`. */
export function readToken(tokenFile: string, variable: string | undefined): string | undefined {
  const [token, source] = tokenFile === '' ? [variable ?? '', 'SERVICE_TOKEN'] : [readTokenFile(tokenFile), tokenFile]
  if (token === '' && tokenFile === '') return undefined
  if (!/^[\x21-\x7e]{1,4096}$/.test(token)) {
    throw new UsageError(`the token in ${source} must be 1 to 4096 visible ASCII characters without spaces`)
  }
  return token
}

/** Rights of the group and of all others. */
const OTHERS = 0o077

/** The right of all others to read. */
const OTHERS_READ = 0o004

/**
 * Warns of a token file that other users have rights to. It is not refused: container engines mount secrets for all
 * users to read. Returns whether the mode of the file lets every user of the host read it; false without a file.
 */
export function isTokenFilePublic(tokenFile: string, log: Log): boolean {
  if (tokenFile === '') return false
  const { mode } = statSync(tokenFile)
  if ((mode & OTHERS) !== 0)
    log.warn('other users have rights to the token file: chmod 600 it', { token_file: tokenFile })
  return (mode & OTHERS_READ) !== 0
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
