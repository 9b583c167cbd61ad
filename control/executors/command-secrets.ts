/** The secrets of local commands: variables whose values are read when an attempt starts. */

import { ofTokenTenant } from '../../shared/files/secret-rules.ts'
import { secretValues } from '../../shared/files/secret-values.ts'
import { SecretFault, type SecretsDirectory } from '../../shared/files/secrets-directory.ts'
import { type SecretNames, secretFileOf, secretNameOf } from '../../shared/request/secrets.ts'
import { shortened } from '../../shared/request/text.ts'
import { ATTEMPT_VARIABLE, type Command } from './command.ts'
import { checkCodeVariables } from './command-input.ts'
import { ExecutionError, type ExecutorContext, type SecretTaking } from './executor.ts'
import type { ShellPolicy } from './os/shell-policy.ts'
import { readySecrets } from './ready-secrets.ts'

/** No other attempt can end better. */
const faulty = (message: string) => new ExecutionError('invalid_input', message, { retryable: false, isFinal: true })

export class CommandSecrets {
  readonly taking: SecretTaking
  readonly #directory: SecretsDirectory
  readonly #policy: ShellPolicy

  constructor(directory: SecretsDirectory, policy: ShellPolicy) {
    this.taking = { inFiles: false, directory }
    this.#directory = directory
    this.#policy = policy
  }

  /** Throws `invalid_input` for a variable that the command has otherwise, `denied` for one that gets around the allowlist. */
  check(secrets: SecretNames, env: Readonly<Record<string, string>> = {}): void {
    for (const [variable, use] of Object.entries(secrets)) {
      const at = `secrets.${shortened(variable)}`
      if (variable === ATTEMPT_VARIABLE) {
        throw faulty(`${at} marks the processes of an attempt and cannot be replaced`)
      }
      if (Object.hasOwn(env, variable)) throw faulty(`${at} is a variable of env of its parameters, too`)
      // Refused at submission; whoever edits a state file gets here.
      if (secretFileOf(use) !== undefined) throw faulty(`${at}.file: only a runtime task has a workspace for files`)
    }
    checkCodeVariables('secrets', secrets, this.#policy)
  }

  /**
   * For a task of `type`: `env` with the values that the secrets have now, and what to mask in the output. Throws what `check`
   * does, `invalid_input` for a missing secret, and `external_failure` for one that its command does not print.
   */
  async variables(
    type: 'shell' | 'cli-skills',
    secrets: SecretNames | undefined,
    env: Readonly<Record<string, string>> | undefined,
    { signal, tenant }: Pick<ExecutorContext, 'signal' | 'tenant'>,
  ): Promise<Pick<Command, 'env' | 'masks'>> {
    if (secrets === undefined) return { env }
    this.check(secrets, env)
    const asker = { type, ...ofTokenTenant(tenant) }
    try {
      await readySecrets(this.#directory, Object.values(secrets).map(secretNameOf), asker, signal)
      const { variables, masks } = secretValues(this.#directory, secrets, asker)
      return { env: { ...env, ...variables }, masks }
    } catch (error) {
      throw error instanceof SecretFault ? faulty(error.message) : error
    }
  }
}
