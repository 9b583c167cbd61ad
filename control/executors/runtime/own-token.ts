/**
 * The token of a runtime service that control starts, if the user sets none.
 *
 * Without a token, a sandboxed task with access to the host network could ask that service for a task without a
 * sandbox. The token is random, created once, and stored in the data directory, readable only for the user of the
 * services. No sandboxed task sees that directory.
 */
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFileNow } from '../../../shared/atomic-file.ts'
import { messageOf, UsageError } from '../../../shared/errors.ts'
import { readToken } from '../../../shared/token.ts'

const TOKEN_FILE = 'runtime-token'
const TOKEN_BYTES = 32

export interface OwnToken {
  /** Absolute path. */
  readonly path: string
  readonly token: string
}

export const ownTokenPath = (dataDir: string): string => join(realpathSync(dataDir), TOKEN_FILE)

/** The token in `dataDir`. Creates it if it is missing. Throws `UsageError`. */
export function ownRuntimeToken(dataDir: string): OwnToken {
  const path = ownTokenPath(dataDir)
  if (!existsSync(path)) makeToken(path)
  return { path, token: readOwnToken(path) }
}

function readOwnToken(path: string): string {
  try {
    return readToken(path, undefined)!
  } catch (error) {
    throw new UsageError(
      `cannot use the token of the runtime service: ${messageOf(error)}; delete ${path}, and the next start makes a new one`,
    )
  }
}

function makeToken(path: string): void {
  try {
    replaceFileNow(path, `${crypto.getRandomValues(new Uint8Array(TOKEN_BYTES)).toHex()}\n`)
  } catch (error) {
    throw new UsageError(
      `cannot write the token of the runtime service to ${path}: ${messageOf(error)} (let the user of the service write there, or set SERVICE_RUNTIME_TOKEN)`,
    )
  }
}
