/** The secrets of tasks: read when a task is submitted, to check them, and again when it starts. */

import type { ControlContext, RequestRule } from '../../shared/contract/runtime-request.ts'
import { widthOf } from '../../shared/egress/ip-address.ts'
import { parseRule } from '../../shared/egress/rule.ts'
import type { SecretTarget } from '../../shared/egress/secret-host.ts'
import { SecretCommandFault } from '../../shared/files/secret-command.ts'
import type { SecretAsker } from '../../shared/files/secret-rules.ts'
import { type SecretValues, secretValues } from '../../shared/files/secret-values.ts'
import { SecretFault, type SecretsDirectory } from '../../shared/files/secrets-directory.ts'
import { bytesTogether, MAX_STRINGS_BYTES } from '../../shared/request/execution.ts'
import { placeholdersIn } from '../../shared/request/placeholder.ts'
import { secretsOfRule } from '../../shared/request/request-rule.ts'
import { type SecretNames, secretNameOf } from '../../shared/request/secrets.ts'
import { shortened } from '../../shared/request/text.ts'
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
  async carried(name: string, context: ControlContext, to: SecretTarget): Promise<Buffer> {
    try {
      return await this.#readReady(name, { ...askerOf(context), to: [to] })
    } catch (error) {
      throw error instanceof SecretCommandFault ? new SecretFault(error.message) : error
    }
  }

  async #readReady(name: string, asker: SecretAsker): Promise<Buffer> {
    await this.#directory.ready([name], asker)
    return this.#directory.read(name, asker)
  }

  /**
   * Whether the proxy can add the secrets that the rules of a network name, and those of placeholders. Throws `SecretFault` and
   * `SecretCommandFault`.
   */
  async checkCarried({ execution, sandbox: { network }, control_context }: TaskRequest): Promise<void> {
    const asker = askerOf(control_context)
    const rules = typeof network === 'object' ? network : {}
    const opened: SecretTarget[][] = []
    for (const [i, rule] of (rules.allow ?? []).entries()) {
      if (typeof rule === 'string') continue
      const to = targetsOf(rule)
      opened.push(to)
      for (const [field, name] of secretsOfRule(rule)) {
        await this.#check(`sandbox.network.allow[${i}].${field}`, name, { ...asker, to })
      }
    }
    const isAnyHost = opened.some((targets) => targets.length === 0)
    for (const [variable, name] of placeholdersIn(execution.env)) {
      const at = `execution.env.${shortened(variable)}.placeholder_for`
      if (opened.length === 0)
        throw new SecretFault(`${at}: only with an object in sandbox.network.allow, for the host that gets the secret`)
      await this.#check(at, name, { ...asker, to: isAnyHost ? [] : opened.flat() })
    }
  }

  async #check(at: string, name: string, asker: SecretAsker): Promise<void> {
    try {
      await this.#readReady(name, asker)
    } catch (error) {
      throw error instanceof SecretFault ? new SecretFault(`${at}: ${error.message}`) : error
    }
  }

  /** Whether `values` needs `ready` before. */
  get hasCommand(): boolean {
    return this.#directory.hasCommand
  }

  /**
   * Has the command print the secrets of a task that only it has: `values` finds them until the caller waits for something else.
   * Throws `SecretCommandFault` and `SecretFault`.
   */
  async ready({ secrets = {}, control_context }: Pick<TaskRequest, 'secrets' | 'control_context'>): Promise<void> {
    await this.#directory.ready(Object.values(secrets).map(secretNameOf), askerOf(control_context))
  }

  /** The values that `names` of a task asks for, if a program takes them together with its `execution`. Throws `SecretFault`. */
  values(
    names: SecretNames,
    { execution, control_context }: Pick<TaskRequest, 'execution' | 'control_context'>,
  ): SecretValues {
    const values = secretValues(this.#directory, names, askerOf(control_context))
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

const askerOf = ({ tenant, tenant_only: tenantOnly }: ControlContext): SecretAsker => ({
  ...{ type: 'runtime', tenant, tenantOnly },
})
