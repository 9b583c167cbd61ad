/**
 * A token that a program of ours makes once: random, in a file that only its user can read.
 *
 * The file belongs into a data directory, which no sandboxed task sees.
 */
import { existsSync } from 'node:fs'
import { messageOf, UsageError } from '../contract/errors.ts'
import { replaceFileNow } from '../files/atomic-file.ts'
import { readToken } from './token.ts'

const TOKEN_BYTES = 32

export interface TokenPurpose {
  /** Completes "the token of ...". */
  readonly owner: string
  /** What to do if the token cannot be written. */
  readonly remedy: string
  /** Completes "delete the file, and ... makes a new one". */
  readonly maker: string
}

/** The token in the file `path`. Makes it if the file is missing. Throws `UsageError`. */
export function madeToken(path: string, purpose: TokenPurpose): string {
  if (!existsSync(path)) makeToken(path, purpose)
  try {
    return readToken(path, undefined)!
  } catch (error) {
    throw new UsageError(
      `cannot use the token of ${purpose.owner}: ${messageOf(error)}; delete ${path}, and ${purpose.maker} makes a new one`,
    )
  }
}

function makeToken(path: string, { owner, remedy }: TokenPurpose): void {
  try {
    replaceFileNow(path, `${crypto.getRandomValues(new Uint8Array(TOKEN_BYTES)).toHex()}\n`)
  } catch (error) {
    throw new UsageError(`cannot write the token of ${owner} to ${path}: ${messageOf(error)} (${remedy})`)
  }
}
