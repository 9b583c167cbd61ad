/**
 * The runtime services that tasks can run on, by name.
 *
 * The runtime services of `--runtime-url` are in the pool from the start. Callers add, drain and remove others. A keeper
 * keeps these changes over a restart (`runtimes.json`, or rows that all replicas share). Attempts enter the pool under the
 * name of their runtime service, so that a removal knows of them and can end them.
 *
 * A name may be lost and come back as another machine. So the pool counts the losses of each name. An attempt that was
 * placed before the last loss fails, even if it enters the pool afterwards.
 */
import { DEFAULT_RUNTIME } from '../../../shared/contract/runtime-names.ts'
import { shownUrl } from '../../../shared/http/shown-url.ts'
import type { Log } from '../../../shared/logs/log.ts'
import type { RuntimeEntry } from '../../../shared/settings/runtime-entry.ts'
import type { PoolKeeper } from '../../log/pool-file.ts'
import type { Pause } from '../../rules/pause.ts'
import {
  isRemoved,
  isSame,
  type PooledEntry,
  type PoolFlags,
  type PoolState,
  pooledEntries,
  UNCHANGED,
  withAdded,
  withDrained,
  withRemoved,
} from '../../rules/pool-state.ts'
import { PoolMember } from './pool-member.ts'
import type { RuntimeServiceOptions } from './service.ts'

/** `token` is that of all runtime services without one of their own. */
export interface RuntimePoolOptions extends PoolFlags, Pick<RuntimeServiceOptions, 'token' | 'keeper'> {
  readonly log: Log
}

/** Attempts of a runtime service, also those outside this pool: they wait for a slot, or belong to other replicas. */
export interface KnownAttempts {
  /** All attempts of this replica. */
  readonly here: number
  readonly elsewhere: number
}

interface EnteredAttempt {
  /** How often its runtime service had been lost before. */
  readonly losses: number
  readonly lose: () => void
}

export class RuntimePool {
  /** The port of this control service, once it listens. */
  controlPort: number | undefined
  readonly #options: RuntimePoolOptions
  readonly #members = new Map<string, PoolMember>()
  #state = UNCHANGED
  #poolKeeper: PoolKeeper | undefined
  /** Called at the next change. */
  readonly #waiters = new Set<() => void>()
  /** The attempts of each runtime service, by its name. */
  readonly #attempts = new Map<string, Set<EnteredAttempt>>()
  /** By name of `--runtime-url`: the address that somebody added under it and that was logged. */
  readonly #shadowed = new Map<string, string>()

  constructor(options: RuntimePoolOptions) {
    this.#options = options
    this.#take(UNCHANGED)
  }

  /** From now on, `keeper` keeps the changes of callers. Called once, before there are attempts. */
  keepIn(keeper: PoolKeeper): void {
    const { configured, started, log } = this.#options
    this.#poolKeeper = keeper
    keeper.onChange = () => this.#take(keeper.state)
    this.#take(keeper.state)
    for (const entry of configured) {
      if (entry.name === started || !isRemoved(entry, keeper.state)) continue
      const url = shownUrl(entry.url)
      log.warn('a runtime service of --runtime-url was removed: it gets no tasks', { runtime: entry.name, url })
    }
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

  /** Whether `--runtime-url` has this name and address, also if it was removed. */
  isConfiguredAt(name: string, url: string): boolean {
    return this.#options.configured.some((entry) => entry.name === name && shownUrl(entry.url) === url)
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

  /** How often runtime services of this name were lost: never, for the one that control starts itself. */
  lossesOf(name: string = DEFAULT_RUNTIME): number {
    return name === this.#options.started ? 0 : (this.#state.losses.get(name) ?? 0)
  }

  /**
   * Enters an attempt at a runtime service. `losses` is the number of losses of that name when the attempt was placed. Calls
   * `lose` once there are more. Returns a function that removes the attempt.
   */
  enter(name: string = DEFAULT_RUNTIME, losses: number, lose: () => void): () => void {
    const attempts = this.#attempts.get(name) ?? new Set()
    this.#attempts.set(name, attempts)
    const entered = { losses, lose }
    attempts.add(entered)
    if (losses < this.lossesOf(name)) lose()
    return () => {
      attempts.delete(entered)
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
   * Adds a runtime service, or gives a known one other labels or another token. Rejects with 409 if the name is taken by
   * another address while attempts are there, or the address by another name; 503 if the change cannot be kept.
   */
  add(entry: RuntimeEntry, attempts: KnownAttempts): Promise<PooledEntry> {
    return this.#change(entry.name, (state) =>
      withAdded(this.#options, state, entry, this.#countOf(entry.name, attempts)),
    )
  }

  #countOf(name: string, { here, elsewhere }: KnownAttempts): number {
    return Math.max(here, this.attemptCount(name)) + elsewhere
  }

  /** Stops new tasks for a runtime service, or allows them again. Rejects with 404 and 503. */
  drain(name: string, drain: Pause | undefined): Promise<PooledEntry> {
    return this.#change(name, (state) => withDrained(this.#options, state, name, drain))
  }

  /**
   * Removes a runtime service. With `isLost` its attempts fail, also if it is not in the pool any more. Returns their
   * number. Rejects with 404, 409 if it has attempts or control started it, 503.
   */
  async remove(name: string, { isLost, attempts }: { readonly isLost: boolean; readonly attempts: KnownAttempts }) {
    let count = 0
    await this.#poolKeeper!.change((state) => {
      count = this.#countOf(name, attempts)
      return withRemoved(this.#options, state, name, { isLost, attempts: count })
    })
    return isLost ? count : 0
  }

  /** Returns the changed runtime service. */
  async #change(name: string, make: (state: PoolState) => PoolState): Promise<PooledEntry> {
    let changed: PooledEntry | undefined
    await this.#poolKeeper!.change((state) => {
      const next = make(state)
      changed = pooledEntries(this.#options, next).get(name)
      return next
    })
    return changed!
  }

  /** Applies the changes of callers to the pool. */
  #take(state: PoolState): void {
    this.#state = state
    const entries = pooledEntries(this.#options, state)
    const earlier = new Map(this.#members)
    this.#members.clear()
    for (const entry of entries.values()) this.#members.set(entry.name, this.#member(entry, earlier.get(entry.name)))
    for (const entry of state.added) this.#tellIfShadowed(entry, entries.get(entry.name)!)
    for (const [name, attempts] of [...this.#attempts]) {
      const losses = this.lossesOf(name)
      for (const attempt of [...attempts]) if (attempt.losses < losses) attempt.lose()
    }
    for (const wake of [...this.#waiters]) wake()
  }

  /** The earlier member, unless its address has changed. */
  #member(entry: PooledEntry, earlier: PoolMember | undefined): PoolMember {
    const isKept = earlier?.entry.url === entry.url && earlier.isConfigured === entry.isConfigured
    const member = isKept ? earlier : new PoolMember(entry, this.#options, entry.isConfigured)
    if (!isSame(member.labels, entry.labels)) member.labels = entry.labels
    if (member.entry.token !== entry.token) member.authorize(entry.token)
    member.drain = entry.drain
    return member
  }

  /** Logs once that another replica added a name that the flags of this one give another address. */
  #tellIfShadowed({ name, url }: RuntimeEntry, entry: PooledEntry): void {
    if (shownUrl(entry.url) === url || this.#shadowed.get(name) === url) return
    this.#shadowed.set(name, url)
    const fields = { runtime: name, url: shownUrl(entry.url), added_url: url }
    this.#options.log.warn('a runtime service was added under a name of --runtime-url, which counts here', fields)
  }
}
