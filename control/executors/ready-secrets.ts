/** Waits for secrets that a command has (`--secret-command`), before an attempt needs their values. */

import { SecretCommandFault } from '../../shared/files/secret-command.ts'
import type { SecretAsker } from '../../shared/files/secret-rules.ts'
import type { SecretsDirectory } from '../../shared/files/secrets-directory.ts'
import { ExecutionError } from './executor.ts'

/** The values are there until the caller waits for something else. Throws a retryable `external_failure`. */
export async function readySecrets(
  directory: SecretsDirectory,
  names: readonly string[],
  asker: SecretAsker,
  signal: AbortSignal,
): Promise<void> {
  try {
    await directory.ready(names, asker, signal)
  } catch (error) {
    if (!(error instanceof SecretCommandFault)) throw error
    throw new ExecutionError('external_failure', error.message, { retryable: true, details: error.details })
  }
}
