/**
 * The changes that callers made to the pool of runtime services, and the pool that results from them. Pure.
 *
 * The flags of a replica come first: `--runtime-url` alone sets the address and the labels of a name. Drains, removals and
 * losses of such a name are changes as of any other name.
 */

import { ServiceError } from '../../shared/contract/errors.ts'
import { MAX_RUNTIMES, type RuntimeLabels } from '../../shared/contract/runtime-names.ts'
import { shownUrl } from '../../shared/http/shown-url.ts'
import { didYouMean } from '../../shared/request/unknown-names.ts'
import { type RuntimeEntry, twinOf } from '../../shared/settings/runtime-entry.ts'
import { nearestName } from '../../shared/text/nearest-name.ts'
import type { Pause } from './pause.ts'

/** Names that were removed for good and are remembered. The oldest are forgotten first. */
export const MAX_LOST = 4 * MAX_RUNTIMES

/** The changes of callers. All addresses are without user and password. */
export interface PoolState {
  /** Runtime services beside those of `--runtime-url`, in the order in which they came. */
  readonly added: readonly RuntimeEntry[]
  /** Runtime services that get no new tasks, by name. Earlier versions kept only the names: these have a drain since 0. */
  readonly draining: ReadonlyMap<string, Pause>
  /** Runtime services of `--runtime-url` that were removed, as they were then. */
  readonly removed: readonly RuntimeEntry[]
  /** How often the runtime service of a name was lost, by name. The latest loss comes last. */
  readonly losses: ReadonlyMap<string, number>
}

export const UNCHANGED: PoolState = { added: [], draining: new Map(), removed: [], losses: new Map() }

/** What a replica was started with. */
export interface PoolFlags {
  /** The runtime services of `--runtime-url`. */
  readonly configured: readonly RuntimeEntry[]
  /** The name of the runtime service that control starts itself. It cannot be removed. */
  readonly started?: string | undefined
}

export interface PooledEntry extends RuntimeEntry {
  /** Whether `--runtime-url` names it. Then its address may have user and password. */
  readonly isConfigured: boolean
  readonly isDraining: boolean
  /** Undefined unless it is draining. */
  readonly drain?: Pause | undefined
}

/** All runtime services of a replica, by name, in the order in which they came. */
export function pooledEntries({ configured, started }: PoolFlags, state: PoolState): Map<string, PooledEntry> {
  const entries = new Map<string, PooledEntry>()
  const add = (entry: RuntimeEntry, isConfigured: boolean) => {
    const { name, url, labels, token } = entry
    const drain = state.draining.get(name)
    entries.set(name, { name, url, labels, token, isConfigured, isDraining: drain !== undefined, drain })
  }
  for (const entry of configured) if (entry.name === started || !isRemoved(entry, state)) add(entry, true)
  for (const entry of state.added) if (!entries.has(entry.name)) add(entry, false)
  return entries
}

/** Whether this runtime service of `--runtime-url` was removed, at this address. */
export const isRemoved = ({ name, url }: RuntimeEntry, { removed }: PoolState): boolean =>
  removed.some((each) => each.name === name && each.url === shownUrl(url))

/**
 * With another runtime service, or with other labels or another token for a known one, which keeps its token if `given` has
 * none. The token of `--runtime-url` counts for those that it names. `attempts` is the number of attempts of that name.
 * Throws 409, also for an address under another name; earlier versions let such twins in, and those stay.
 */
export function withAdded(flags: PoolFlags, state: PoolState, given: RuntimeEntry, attempts: number): PoolState {
  const { name, url, labels } = given
  const entries = pooledEntries(flags, state)
  const known = entries.get(name)
  const isKnownUrl = known !== undefined && shownUrl(known.url) === url
  const entry = { ...given, token: given.token ?? (isKnownUrl ? known.token : '') }
  const hasToken = known?.isConfigured === true || known?.token === entry.token
  if (isKnownUrl && hasToken && isSame(known.labels, labels)) return state
  const isReturning = isRemoved(entry, state)
  const own = isReturning
    ? flags.configured.find((each) => each.name === name && shownUrl(each.url) === url)
    : undefined
  if (known?.isConfigured === true || (own !== undefined && !isSame(own.labels, labels))) {
    throw new ServiceError(409, `runtime ${name} is set by --runtime-url: change its address and its labels there`)
  }
  if (known !== undefined && !isKnownUrl && attempts > 0) {
    throw new ServiceError(
      409,
      `runtime ${name} is at ${shownUrl(known.url)} and has ${attemptsText(attempts)}: wait for them, or remove it with lost=true if its machine is gone for good`,
    )
  }
  const twin = isKnownUrl ? undefined : twinOf(entry, [...entries.values()])
  if (twin !== undefined) {
    throw new ServiceError(409, `runtime ${twin.name} is at ${url} already: use that name, or remove it first`)
  }
  if (known === undefined && entries.size >= MAX_RUNTIMES) {
    throw new ServiceError(409, `there are ${MAX_RUNTIMES} runtime services already: remove one first`)
  }
  const others = state.added.filter((each) => each.name !== name)
  const added = isKnownUrl ? state.added.map((each) => (each.name === name ? entry : each)) : [...others, entry]
  const removed = state.removed.filter((each) => each.name !== name || each.url !== url)
  return { ...state, removed, added: own === undefined ? added : others }
}

/** With `drain`, or without the one that it has. A drain that goes on keeps its time. Throws 404. */
export function withDrained(flags: PoolFlags, state: PoolState, name: string, drain: Pause | undefined): PoolState {
  const known = knownIn(flags, state, name).drain
  if (known === undefined && drain === undefined) return state
  const made = drain && { ...drain, since: known?.since ?? drain.since }
  if (made !== undefined && Bun.deepEquals(known, made)) return state
  const draining = new Map(state.draining)
  draining.delete(name)
  if (made !== undefined) draining.set(name, made)
  return { ...state, draining }
}

/** Without a runtime service that has, or may have, `attempts`. Throws 404, and 409 if it has some and is not lost. */
export function withRemoved(
  flags: PoolFlags,
  state: PoolState,
  name: string,
  { isLost, attempts }: { readonly isLost: boolean; readonly attempts: number },
): PoolState {
  const entry = isLost && attempts > 0 ? pooledEntries(flags, state).get(name) : knownIn(flags, state, name)
  if (name === flags.started) {
    throw new ServiceError(
      409,
      `runtime ${name} is started by --with-runtime: to remove it, start control without that flag`,
    )
  }
  if (!isLost && attempts > 0) {
    throw new ServiceError(
      409,
      `runtime ${name} has ${attemptsText(attempts)}: drain it and wait for them, or remove it with lost=true if its machine is gone for good`,
    )
  }
  const isConfigured = entry?.isConfigured === true
  return {
    added: state.added.filter((each) => each.name !== name),
    draining: new Map([...state.draining].filter(([each]) => each !== name)),
    removed: isConfigured ? [...state.removed, entryOf(entry)] : state.removed,
    losses: isLost ? withLoss(state, name) : state.losses,
  }
}

/** The shared state with the changes in the file of an earlier run, except for names that the shared state knows. */
export function withFile(state: PoolState, file: PoolState): PoolState {
  const known = new Set(
    [...state.added, ...state.removed]
      .map(({ name }) => name)
      .concat([...state.draining.keys()], [...state.losses.keys()]),
  )
  const isNew = ({ name }: RuntimeEntry) => !known.has(name)
  return {
    added: [...state.added, ...file.added.filter(isNew)],
    draining: new Map([...state.draining, ...[...file.draining].filter(([name]) => !known.has(name))]),
    removed: [...state.removed, ...file.removed.filter(isNew)],
    losses: new Map([...file.losses, ...state.losses]),
  }
}

/** Without token, user and password: they stay where they were written. */
const entryOf = ({ name, url, labels }: RuntimeEntry): RuntimeEntry => ({ name, url: shownUrl(url), labels })

/** Forgets the oldest losses beyond `MAX_LOST`, but none of a name in the pool. */
function withLoss({ losses, added }: PoolState, name: string): ReadonlyMap<string, number> {
  const count = (losses.get(name) ?? 0) + 1
  const others = [...losses].filter(([each]) => each !== name)
  const isPooled = (each: string) => added.some((entry) => entry.name === each)
  const excess = others.length + 1 - MAX_LOST
  const forgotten = new Set(
    others
      .filter(([each]) => !isPooled(each))
      .slice(0, Math.max(0, excess))
      .map(([each]) => each),
  )
  return new Map([...others.filter(([each]) => !forgotten.has(each)), [name, count]])
}

function knownIn(flags: PoolFlags, state: PoolState, name: string): PooledEntry {
  const entries = pooledEntries(flags, state)
  const entry = entries.get(name)
  if (entry !== undefined) return entry
  throw new ServiceError(404, `no runtime is named ${name}${didYouMean(nearestName(name, entries.keys()))}`)
}

export const isSame = (a: RuntimeLabels, b: RuntimeLabels): boolean => {
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && a[name] === b[name])
}

const attemptsText = (count: number): string => (count === 1 ? '1 attempt' : `${count} attempts`)
