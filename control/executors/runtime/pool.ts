/**
 * The runtime services that tasks can run on, by name.
 *
 * Those of `--runtime-url` are in the pool from the start. Callers add, drain and remove others, which `runtimes.json`
 * holds over a restart. Attempts enter the pool under the name of their runtime service, so that a removal knows of
 * them and can end them.
 */
import { DEFAULT_RUNTIME } from '../../../shared/contract/placement.ts'
import type { RuntimeEntry } from '../../../shared/runtime-entry.ts'
import { PoolMember } from './pool-member.ts'

export interface RuntimePoolOptions {
  readonly configured: readonly RuntimeEntry[]
  /** Of all runtime services. */
  readonly token: string | undefined
}

export class RuntimePool {
  readonly #members = new Map<string, PoolMember>()
  /** Called at the next change. */
  readonly #waiters = new Set<() => void>()
  /** What ends the attempts of each runtime service, by its name. */
  readonly #attempts = new Map<string, Set<() => void>>()

  constructor({ configured, token }: RuntimePoolOptions) {
    for (const entry of configured) this.#members.set(entry.name, new PoolMember(entry, token, true))
  }

  /** In the order in which they came. */
  get members(): readonly PoolMember[] {
    return [...this.#members.values()]
  }

  /** Attempts of earlier versions have no name of a runtime service. */
  get(name: string = DEFAULT_RUNTIME): PoolMember | undefined {
    return this.#members.get(name)
  }

  /** Whether `member` was not removed or replaced. */
  has(member: PoolMember): boolean {
    return this.#members.get(member.name) === member
  }

  /** Whether there is nothing but the one runtime service without a name. Then tasks have no choice, and do not wait for others. */
  get isLone(): boolean {
    return this.#members.size === 1 && this.#members.has(DEFAULT_RUNTIME)
  }

  /** Number of attempts that a runtime service has or may have. */
  attemptCount(name: string): number {
    return this.#attempts.get(name)?.size ?? 0
  }

  /** An attempt is placed on a runtime service. `lose` is called if that is lost. Returns a function for its end. */
  enter(name: string = DEFAULT_RUNTIME, lose: () => void): () => void {
    const attempts = this.#attempts.get(name) ?? new Set()
    this.#attempts.set(name, attempts)
    attempts.add(lose)
    return () => {
      attempts.delete(lose)
      if (attempts.size === 0 && this.#attempts.get(name) === attempts) this.#attempts.delete(name)
    }
  }

  /** Resolves at the next change of the pool, or when `signal` fires. */
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        signal.removeEventListener('abort', wake)
        this.#waiters.delete(wake)
        resolve()
      }
      signal.addEventListener('abort', wake, { once: true })
      this.#waiters.add(wake)
      if (signal.aborted) wake()
    })
  }
}
