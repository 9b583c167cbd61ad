/**
 * The runtime services that tasks can run on, by name.
 *
 * Those of `--runtime-url` are in the pool from the start. Callers add, drain and remove others, which `runtimes.json`
 * holds over a restart. Attempts enter the pool under the name of their runtime service, so that a removal knows of
 * them and can end them.
 */
import { DEFAULT_RUNTIME, MAX_RUNTIMES, type RuntimeLabels } from '../../../shared/contract/placement.ts'
import { ServiceError } from '../../../shared/errors.ts'
import type { Log } from '../../../shared/log.ts'
import type { RuntimeEntry } from '../../../shared/runtime-entry.ts'
import { storageUnavailable } from '../../journal/storage-errors.ts'
import type { PoolChanges, PoolFile } from './pool-file.ts'
import { PoolMember } from './pool-member.ts'

export interface RuntimePoolOptions {
  /** Those of `--runtime-url`. */
  readonly configured: readonly RuntimeEntry[]
  /** The one that control starts itself, and that cannot be removed. */
  readonly started?: string | undefined
  /** Of all runtime services. */
  readonly token: string | undefined
  readonly file: Pick<PoolFile, 'read' | 'write'>
  readonly log: Log
}

export class RuntimePool {
  /** The port of this control service, once it listens. */
  controlPort: number | undefined
  readonly #options: RuntimePoolOptions
  readonly #members = new Map<string, PoolMember>()
  /** Runtime services of `--runtime-url` that were removed, by name. */
  readonly #removed = new Map<string, RuntimeEntry>()
  /** Names of runtime services that were lost with their attempts. */
  readonly #lost: Set<string>
  /** Called at the next change. */
  readonly #waiters = new Set<() => void>()
  /** What ends the attempts of each runtime service, by its name. */
  readonly #attempts = new Map<string, Set<() => void>>()

  /** Throws `UsageError` if the file is unreadable. */
  constructor(options: RuntimePoolOptions) {
    this.#options = options
    const { configured, started, token, file, log } = options
    const { added, draining, removed, lost } = file.read()
    this.#lost = new Set(lost)
    for (const entry of configured) {
      const { name, url } = entry
      if (name !== started && removed.some((each) => each.name === name && each.url === url)) {
        this.#removed.set(name, entry)
        log.warn('a runtime service of --runtime-url was removed: it gets no tasks', { runtime: name, url })
      } else this.#members.set(name, new PoolMember(entry, token, true))
    }
    for (const entry of added) {
      if (!this.#members.has(entry.name)) this.#members.set(entry.name, new PoolMember(entry, token, false))
    }
    for (const name of draining) this.#setDraining(this.#members.get(name), true)
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

  /** Number of runtime services by their state. One that nobody called yet counts as ready. */
  get counts(): Readonly<Record<'ready' | 'away' | 'draining', number>> {
    const counts = { ready: 0, away: 0, draining: 0 }
    for (const { isDraining, away } of this.#members.values()) {
      counts[isDraining ? 'draining' : away === undefined ? 'ready' : 'away']++
    }
    return counts
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
    if (this.#lost.has(name) && !this.#members.has(name)) lose()
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

  /**
   * Adds a runtime service, or gives a known one other labels. Returns whether it is new. Throws 409 if the name is taken
   * by another address while attempts are there, 503 if the disk does not take the change. `attempts` is the number of
   * attempts that it has or may have.
   */
  add({ name, url, labels }: RuntimeEntry, attempts = 0): { readonly member: PoolMember; readonly isNew: boolean } {
    const { token } = this.#options
    const known = this.#members.get(name)
    if (known?.url === url && isSame(known.labels, labels)) return { member: known, isNew: false }
    if (known?.isConfigured === true) {
      throw new ServiceError(409, `runtime ${name} is set by --runtime-url: change its address and its labels there`)
    }
    if (known?.url === url) {
      this.#change(() => {
        known.labels = labels
      })
      return { member: known, isNew: false }
    }
    const count = Math.max(attempts, this.attemptCount(name))
    if (known !== undefined && count > 0) {
      throw new ServiceError(
        409,
        `runtime ${name} is at ${known.url} and has ${attemptsText(count)}: wait for them, or remove it with lost=true if its machine is gone for good`,
      )
    }
    if (known === undefined && this.#members.size >= MAX_RUNTIMES) {
      throw new ServiceError(409, `there are ${MAX_RUNTIMES} runtime services already: remove one first`)
    }
    const removed = this.#removed.get(name)
    const isConfigured = removed?.url === url && isSame(removed.labels, labels)
    const member = new PoolMember({ name, url, labels }, token, isConfigured)
    member.isDraining = known?.isDraining === true
    this.#change(() => {
      this.#members.set(name, member)
      this.#removed.delete(name)
      this.#lost.delete(name)
    })
    return { member, isNew: known === undefined }
  }

  /** Has a runtime service take no new tasks, or take them again. Throws 404 and 503. */
  drain(name: string, isDraining: boolean): PoolMember {
    const member = this.#known(name)
    if (member.isDraining !== isDraining) this.#change(() => this.#setDraining(member, isDraining))
    return member
  }

  /**
   * Removes a runtime service. With `isLost` its attempts fail, also if it is not in the pool any more. Returns their
   * number. Throws 404, 409 if it has attempts or control started it, 503. `attempts` is the number of attempts that it
   * has or may have.
   */
  remove(name: string, { isLost, attempts }: { readonly isLost: boolean; readonly attempts: number }): number {
    const count = Math.max(attempts, this.attemptCount(name))
    const member = isLost && count > 0 ? this.#members.get(name) : this.#known(name)
    if (name === this.#options.started) {
      throw new ServiceError(409, `runtime ${name} is started by --with-runtime: it cannot be removed`)
    }
    if (!isLost && count > 0) {
      throw new ServiceError(
        409,
        `runtime ${name} has ${attemptsText(count)}: drain it and wait for them, or remove it with lost=true if its machine is gone for good`,
      )
    }
    this.#change(() => {
      this.#members.delete(name)
      if (member?.isConfigured === true) this.#removed.set(name, member.entry)
      if (isLost) this.#lost.add(name)
    })
    for (const lose of isLost ? [...(this.#attempts.get(name) ?? [])] : []) lose()
    return isLost ? count : 0
  }

  #known(name: string): PoolMember {
    const member = this.#members.get(name)
    if (member !== undefined) return member
    throw new ServiceError(404, `no runtime is named ${name}`)
  }

  #setDraining(member: PoolMember | undefined, isDraining: boolean): void {
    if (member !== undefined) member.isDraining = isDraining
  }

  /** Makes a change and writes it. A change that the disk does not take is undone. Throws 503. */
  #change(make: () => void): void {
    const before = {
      members: [...this.#members].map(([name, member]) => {
        const { isDraining, labels } = member
        return { name, member, isDraining, labels }
      }),
      removed: [...this.#removed],
      lost: [...this.#lost],
    }
    make()
    try {
      this.#options.file.write(this.#changes)
    } catch (error) {
      this.#members.clear()
      for (const { name, member, isDraining, labels } of before.members) {
        member.isDraining = isDraining
        member.labels = labels
        this.#members.set(name, member)
      }
      refill(this.#removed, before.removed)
      this.#lost.clear()
      for (const name of before.lost) this.#lost.add(name)
      throw storageUnavailable(error)
    }
    for (const wake of [...this.#waiters]) wake()
  }

  get #changes(): PoolChanges {
    const { members } = this
    return {
      added: members.filter(({ isConfigured }) => !isConfigured).map(({ entry }) => entry),
      draining: members.filter(({ isDraining }) => isDraining).map(({ name }) => name),
      removed: [...this.#removed.values()],
      lost: [...this.#lost],
    }
  }
}

const isSame = (a: RuntimeLabels, b: RuntimeLabels): boolean => {
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && a[name] === b[name])
}

const attemptsText = (count: number): string => (count === 1 ? '1 attempt' : `${count} attempts`)

function refill<K, V>(map: Map<K, V>, entries: readonly (readonly [K, V])[]): void {
  map.clear()
  for (const [key, value] of entries) map.set(key, value)
}
