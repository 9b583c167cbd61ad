/** `runtimes.json`: what callers changed in the pool of runtime services. Written and synced before they are answered. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, UsageError } from '../../shared/contract/errors.ts'
import { replaceFileNow } from '../../shared/files/atomic-file.ts'
import { isToken } from '../../shared/http/token-form.ts'
import {
  isRuntimeName,
  type RuntimeEntry,
  runtimeLabelsFault,
  runtimeUrlOf,
} from '../../shared/settings/runtime-entry.ts'
import { isObject } from '../../shared/text/json.ts'
import { isPause, type Pause } from '../rules/pause.ts'
import { type PoolState, UNCHANGED } from '../rules/pool-state.ts'
import { storageUnavailable } from './storage-errors.ts'

/** Keeps the changes of the pool. */
export interface PoolKeeper {
  /** What is known to be kept. */
  readonly state: PoolState
  /**
   * Makes a change and keeps it. `make` may be called several times, and throws to refuse. Rejects with 503 if the change
   * cannot be kept. The state here has not changed then.
   */
  change(make: (state: PoolState) => PoolState): Promise<void>
  /** Called after each change of the state, also by other replicas. */
  onChange: () => void
}

export const POOL_FILE = 'runtimes.json'

/** The keeper without a database. A change is made in the same turn of the event loop. */
export class PoolFile implements PoolKeeper {
  readonly #path: string
  #state: PoolState
  onChange: () => void = () => {}

  /** Throws `UsageError` if the file is unreadable. */
  constructor(dataDir: string) {
    this.#path = join(dataDir, POOL_FILE)
    this.#state = readPoolFile(this.#path)
  }

  get state(): PoolState {
    return this.#state
  }

  async change(make: (state: PoolState) => PoolState): Promise<void> {
    const next = make(this.#state)
    if (next === this.#state) return
    try {
      replaceFileNow(this.#path, JSON.stringify(fileOf(next)))
    } catch (error) {
      throw storageUnavailable(error)
    }
    this.#state = next
    this.onChange()
  }
}

/** Throws `UsageError` if the file is unreadable. */
export function readPoolFile(path: string): PoolState {
  if (!existsSync(path)) return UNCHANGED
  try {
    return stateIn(JSON.parse(readFileSync(path, 'utf8')))
  } catch (error) {
    throw new UsageError(
      `cannot read ${path}: ${messageOf(error)}; it names runtime services that were added or drained (repair it, or remove it and add them again)`,
    )
  }
}

/** Earlier versions have `lost` instead of `losses`: names that are not in the pool. They have no `drains`. */
function fileOf({ added, draining, removed, losses }: PoolState): object {
  const lost = [...losses.keys()].filter((name) => !added.some((entry) => entry.name === name))
  return { added, draining: [...draining.keys()], drains: [...draining], removed, lost, losses: [...losses] }
}

function stateIn(value: unknown): PoolState {
  const { added, draining, drains = [], removed, lost, losses } = isObject(value) ? value : {}
  return {
    ...{ added: entriesIn(added), draining: drainsIn(namesIn(draining), drains), removed: entriesIn(removed) },
    losses: losses === undefined ? new Map(namesIn(lost).map((name) => [name, 1])) : lossesIn(losses),
  }
}

function entriesIn(value: unknown): RuntimeEntry[] {
  if (!Array.isArray(value)) throw new Error('it does not hold what it should')
  return value.map((entry) => {
    const { name, url, labels, token } = isObject(entry) ? entry : {}
    const isName = typeof name === 'string' && isRuntimeName(name)
    if (!isName || typeof url !== 'string' || runtimeUrlOf(url) === undefined) throw new Error('an entry is no runtime')
    const fault = runtimeLabelsFault(`labels of ${name}`, labels)
    if (fault !== undefined) throw new Error(fault)
    const isOwn = typeof token === 'string' && (token === '' || isToken(token))
    if (token !== undefined && !isOwn) throw new Error(`the token of ${name} is none`)
    return { name, url, labels: labels as RuntimeEntry['labels'], ...(isOwn && { token }) }
  })
}

function namesIn(value: unknown): string[] {
  if (Array.isArray(value) && value.every((name) => typeof name === 'string')) return value
  throw new Error('it does not hold what it should')
}

/** The drain of each name. An earlier version may have written the names without them. */
function drainsIn(names: readonly string[], value: unknown): Map<string, Pause> {
  const isDrain = (each: unknown): each is [string, Pause] =>
    Array.isArray(each) && typeof each[0] === 'string' && isPause(each[1])
  if (!Array.isArray(value) || !value.every(isDrain)) throw new Error('it does not hold what it should')
  const known = new Map(value)
  return new Map(names.map((name) => [name, known.get(name) ?? { since: 0 }]))
}

function lossesIn(value: unknown): Map<string, number> {
  const isLoss = (each: unknown): each is [string, number] =>
    Array.isArray(each) && typeof each[0] === 'string' && Number.isSafeInteger(each[1])
  if (Array.isArray(value) && value.every(isLoss)) return new Map(value)
  throw new Error('it does not hold what it should')
}
