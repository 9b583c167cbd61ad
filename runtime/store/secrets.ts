/** The secrets of tasks: read when a task is submitted, to check them, and again when it starts. */

import type { NetworkRules, RequestRule } from '../../shared/contract/runtime-request.ts'
import { widthOf } from '../../shared/egress/ip-address.ts'
import { parseRule } from '../../shared/egress/rule.ts'
import type { SecretTarget } from '../../shared/egress/secret-host.ts'
import { type SecretValues, secretValues } from '../../shared/files/secret-values.ts'
import { SecretFault, type SecretsDirectory } from '../../shared/files/secrets-directory.ts'
import { bytesTogether, MAX_STRINGS_BYTES } from '../../shared/request/execution.ts'
import { secretsOfRule } from '../../shared/request/request-rule.ts'
import type { SecretNames } from '../../shared/request/secrets.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'

/** Whether files are made by descriptor, so that no task can lead the service out of its workspace. */
const HAS_DESCRIPTOR_PATHS = process.platform === 'linux'

export class Secrets {
  readonly #directory: SecretsDirectory

  constructor(directory: SecretsDirectory) {
    this.#directory = directory
  }

  /** What is wrong with the rules of the secrets; undefined if nothing is. */
  fault(): string | undefined {
    return this.#directory.rules?.fault()
  }

  /** The value of a secret that the proxy adds to a request to `to`. Throws `SecretFault`. */
  carried(name: string, tenant: string | undefined, to: SecretTarget): Buffer {
    return this.#directory.read(name, { type: 'runtime', tenant, to: [to] })
  }

  /** Whether the proxy can add the secrets that the rules of a network name. Throws `SecretFault`. */
  checkCarried(rules: NetworkRules, tenant: string | undefined): void {
    for (const [i, rule] of (rules.allow ?? []).entries()) {
      if (typeof rule === 'string') continue
      const to = targetsOf(rule)
      for (const [field, name] of secretsOfRule(rule)) {
        try {
          this.#directory.read(name, { type: 'runtime', tenant, to })
        } catch (error) {
          if (!(error instanceof SecretFault)) throw error
          throw new SecretFault(`sandbox.network.allow[${i}].${field}: ${error.message}`)
        }
      }
    }
  }

  /** The values that `names` of a task asks for, if a program takes them together with its `execution`. Throws `SecretFault`. */
  values(
    names: SecretNames,
    { execution, control_context }: Pick<TaskRequest, 'execution' | 'control_context'>,
  ): SecretValues {
    const values = secretValues(this.#directory, names, { type: 'runtime', tenant: control_context.tenant })
    const [file] = values.files
    if (file !== undefined && !HAS_DESCRIPTOR_PATHS) {
      throw new SecretFault(`secrets.${file.variable}.file: only a runtime service on Linux puts secrets into files`)
    }
    const bytes = bytesTogether(execution, values.variables)
    if (bytes <= MAX_STRINGS_BYTES) return values
    throw new SecretFault(
      `execution and secrets have ${bytes} bytes of arguments and environment and a program takes at most ${MAX_STRINGS_BYTES}`,
    )
  }
}

/** What a rule is about, with TLS and without; nothing if that is not one host. */
function targetsOf({ host }: RequestRule): SecretTarget[] {
  const { port, ...hosts } = parseRule(host)
  const one =
    hosts.hosts === 'name'
      ? { name: hosts.name }
      : hosts.hosts === 'network' && hosts.network.prefixBits === widthOf(hosts.network)
        ? { address: hosts.network }
        : undefined
  if (one === undefined) return []
  return [true, false].map((isTls) => ({ host: one, port: port ?? (isTls ? 443 : 80), isTls }))
}
