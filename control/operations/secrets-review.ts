/** Reviews the `secrets` of a submitted task: whether its executor takes them, and whether they exist. */

import { ofTokenTenant } from '../../shared/files/secret-rules.ts'
import type { SecretsDirectory } from '../../shared/files/secrets-directory.ts'
import { secretNameOf } from '../../shared/request/secrets.ts'
import { shortened } from '../../shared/request/text.ts'
import type { ExecutableTask } from '../executors/executor.ts'
import type { ExecutorRegistry } from '../executors/registry.ts'
import { pathText } from '../rules/placeholders.ts'
import type { SecretPlace } from '../rules/secret-places.ts'
import { secretsFault } from '../rules/task-secrets.ts'

type ReviewedTask = Pick<ExecutableTask, 'id' | 'type' | 'toolName' | 'input' | 'secrets'> & {
  /** The secrets that it sends. */
  readonly sent?: readonly SecretPlace[] | undefined
}

export class SecretsReview {
  readonly #executors: ExecutorRegistry
  readonly #ofTenant: ReturnType<typeof ofTokenTenant>
  /** What each directory had when the review first asked: a graph may name a million secrets. */
  readonly #names = new Map<SecretsDirectory, ReadonlySet<string>>()

  constructor(executors: ExecutorRegistry, tenant: string | undefined) {
    this.#executors = executors
    this.#ofTenant = ofTokenTenant(tenant)
  }

  /** Why the task cannot have its secrets, whatever the secrets of the service are; undefined if it can. */
  faultOf({ id, type, toolName, input, secrets }: ReviewedTask): string | undefined {
    if (secrets === undefined) return undefined
    const executor = this.#executors.get(type)
    const taking = executor?.secretsOf?.(toolName)
    if (taking === undefined) {
      const label = executor?.parametersOf?.(toolName)?.label ?? type
      return `task ${id}: ${label} takes no secrets (tasks of type ${this.#takers()} do)`
    }
    const fault = secretsFault(secrets, input, taking.inFiles)
    return fault && `task ${id}: ${fault}`
  }

  /** What the task lacks now of its secrets; empty if another service has them. */
  missing(task: ReviewedTask): string[] {
    return [...this.#missingOfProcess(task), ...this.#missingOfRequest(task)]
  }

  #missingOfRequest({ type, toolName, input, sent = [] }: ReviewedTask): string[] {
    const sending = sent.length === 0 ? undefined : this.#executors.get(type)?.sendingOf?.(toolName, input)
    if (sending === undefined) return []
    const { directory, asker } = sending
    const names = this.#namesOf(directory)
    return sent.flatMap(({ path, secret }) => {
      const why = directory.whyNot(secret.name, names, { ...asker, ...this.#ofTenant })
      return why === undefined ? [] : `${pathText('params', path)}: ${why}`
    })
  }

  #missingOfProcess({ type, toolName, secrets = {} }: ReviewedTask): string[] {
    const directory = this.#executors.get(type)?.secretsOf?.(toolName)?.directory
    if (directory === undefined) return []
    const names = this.#namesOf(directory)
    const asker = { type: type === 'os' && toolName !== undefined ? toolName : type, ...this.#ofTenant }
    return Object.entries(secrets).flatMap(([variable, use]) => {
      const why = directory.whyNot(secretNameOf(use), names, asker)
      return why === undefined ? [] : `secrets.${shortened(variable)}: ${why}`
    })
  }

  #namesOf(directory: SecretsDirectory): ReadonlySet<string> {
    const known = this.#names.get(directory) ?? directory.names()
    this.#names.set(directory, known)
    return known
  }

  #takers(): string {
    const types = [...this.#executors.types].filter((type) => this.#executors.get(type)?.secretsOf?.(undefined))
    return ['shell', ...types.sort()].join(', ')
  }
}
