/**
 * The token of a runtime service that control starts, if the user sets none.
 *
 * Without a token, a sandboxed task with access to the host network could ask that service for a task without a
 * sandbox. The token is random, created once, and stored in the data directory, readable only for the user of the
 * services. No sandboxed task sees that directory.
 */
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { madeToken } from '../../../shared/http/made-token.ts'

const TOKEN_FILE = 'runtime-token'

export interface OwnToken {
  /** Absolute path. */
  readonly path: string
  readonly token: string
}

export const ownTokenPath = (dataDir: string): string => join(realpathSync(dataDir), TOKEN_FILE)

/** The token in `dataDir`. Creates it if it is missing. Throws `UsageError`. */
export function ownRuntimeToken(dataDir: string): OwnToken {
  const path = ownTokenPath(dataDir)
  const token = madeToken(path, {
    owner: 'the runtime service',
    remedy: 'let the user of the service write there, or set SERVICE_RUNTIME_TOKEN',
    maker: 'the next start',
  })
  return { path, token }
}
