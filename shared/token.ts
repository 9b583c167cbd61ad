/** The token of a service: what callers must show, where one is set. */
import { readFileSync } from 'node:fs'
import { systemCodeOf, UsageError } from './errors.ts'

/** From `tokenFile` if one is named, else `variable` itself; undefined when there is neither. Throws `UsageError`. */
export function readToken(tokenFile: string, variable: string | undefined): string | undefined {
  const [token, source] = tokenFile === '' ? [variable ?? '', 'SERVICE_TOKEN'] : [readTokenFile(tokenFile), tokenFile]
  if (token === '' && tokenFile === '') return undefined
  if (!/^[\x21-\x7e]{1,4096}$/.test(token)) {
    throw new UsageError(`the token in ${source} must be 1 to 4096 visible ASCII characters without spaces`)
  }
  return token
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
