/**
 * Who gets the places of a group. Pure.
 *
 * Graphs are looked at in the order of their acceptance. Each takes a place while fewer graphs than its own limit allows hold
 * one, and none waits before it. Whoever decides has the group for itself, so the same rule holds over all replicas.
 */
import type { ON_FULL } from '../../../shared/contract/graph-groups.ts'

export type OnFull = (typeof ON_FULL)[number]

/** A graph of a group that has not ended. */
export interface Place {
  /** The number of the graph. */
  readonly graph: number
  readonly graphId: string
  readonly limit: number
  readonly onFull: OnFull
  readonly isHeld: boolean
  /** Whether nobody has decided about it yet. */
  readonly isNew: boolean
  /** The id of the graph that it is cancelled for. */
  readonly cancelledBy: string | undefined
}

/** Whether the graph had to be refused. It gets no place any more, and holds up nobody. */
export const isRefused = ({ onFull, isHeld, isNew }: Place): boolean => onFull === 'refuse' && !isHeld && !isNew

/** Whether the graph only waits: nothing has to be decided about it before it is the first that does. */
export const isQueued = (place: Place): boolean =>
  !place.isHeld && !place.isNew && !isRefused(place) && place.cancelledBy === undefined

/**
 * Whether `next`, the decisions about `places`, are those about the whole group, if `places` are all but those that only
 * wait, and the first `count` of these. Once one of them gets no place, all after it go on waiting. Whoever has the oldest
 * cancelled has to know how many there are.
 */
export function isWhole(places: readonly Place[], next: readonly Place[], count: number): boolean {
  const queued = places.flatMap((place, i) => (isQueued(place) ? next[i]! : []))
  if (queued.length < count) return true
  const isCancelling = places.some(({ isNew, onFull }) => isNew && onFull === 'cancel_oldest')
  return !isCancelling && queued.some(({ isHeld }) => !isHeld)
}

/** The graphs of a group after all decisions that are due. `places` are in the order of acceptance. */
export function settled(places: readonly Place[]): readonly Place[] {
  const next: { -readonly [K in keyof Place]: Place[K] }[] = places.map((place) => ({ ...place, isNew: false }))
  const holders = next.filter(({ isHeld }) => isHeld)
  const waiting: typeof next = []
  for (const [i, place] of next.entries()) {
    if (place.isHeld || isRefused(places[i]!)) continue
    if (waiting.length === 0 && holders.length < place.limit) {
      place.isHeld = true
      holders.push(place)
    } else if (place.onFull !== 'refuse') {
      if (places[i]!.isNew && place.onFull === 'cancel_oldest') {
        const staying = [...holders, ...waiting].filter(({ cancelledBy }) => cancelledBy === undefined)
        const leaving = staying.slice(0, Math.max(0, staying.length - place.limit + 1))
        for (const other of leaving) other.cancelledBy = place.graphId
      }
      waiting.push(place)
    }
  }
  return next
}

/** Those that a decision has changed. `places` are those before, in the same order. */
export const changedIn = (places: readonly Place[], next: readonly Place[]): readonly Place[] =>
  next.filter((place, i) => !Bun.deepEquals(place, places[i]))
