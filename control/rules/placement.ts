/**
 * Where a runtime task may run: the check of `params.placement`, the runtime services that fit it, and which of two has
 * more available. Pure.
 */

import type { Capacity } from '../../shared/contract/runtime-info.ts'
import { RUNTIME_NAME_RULE, type RuntimeLabels } from '../../shared/contract/runtime-names.ts'
import { isRuntimeName, runtimeLabelsFault } from '../../shared/settings/runtime-entry.ts'
import { isGiven, isObject } from '../../shared/text/json.ts'

/** A valid placement. Without fields, every runtime service fits. */
export interface PlacementRule {
  readonly runtime?: string
  readonly labels?: RuntimeLabels
}

export const ANYWHERE: PlacementRule = Object.freeze({})

/** The fault of `placement` of the parameters of a task; undefined if it is valid or absent. */
export function placementFault(placement: unknown): string | undefined {
  if (!isGiven(placement)) return undefined
  if (!isObject(placement)) return 'placement: expected object with runtime or labels'
  const { runtime, labels } = placement
  if (isGiven(runtime) && isGiven(labels)) return 'placement: runtime and labels exclude each other'
  if (isGiven(runtime)) {
    if (typeof runtime === 'string' && isRuntimeName(runtime)) return undefined
    return `placement.runtime: expected the name of a runtime service (${RUNTIME_NAME_RULE})`
  }
  return isGiven(labels) ? runtimeLabelsFault('placement.labels', labels) : undefined
}

/** A placement without a fault. */
export function placementRule(placement: unknown): PlacementRule {
  if (!isObject(placement)) return ANYWHERE
  const { runtime, labels } = placement
  if (typeof runtime === 'string') return { runtime }
  return isObject(labels) && Object.keys(labels).length > 0 ? { labels: labels as RuntimeLabels } : ANYWHERE
}

/** A runtime service, as far as a placement depends on it. */
export interface PlaceableRuntime {
  readonly name: string
  readonly labels: RuntimeLabels
  readonly isDraining: boolean
}

/** The runtime services that may take a task, or why none of them may. */
export type Fitting<R> = { readonly open: readonly [R, ...R[]] } | { readonly waiting: string }

export function fittingRuntimes<R extends PlaceableRuntime>(runtimes: readonly R[], rule: PlacementRule): Fitting<R> {
  const fitting = runtimes.filter((runtime) => fits(runtime, rule))
  const [first, ...others] = fitting.filter(({ isDraining }) => !isDraining)
  if (first !== undefined) return { open: [first, ...others] }
  return { waiting: fitting.length === 0 ? noneText(rule) : drainingText(fitting) }
}

export function fits({ name: known, labels }: PlaceableRuntime, { runtime, labels: asked }: PlacementRule): boolean {
  if (runtime !== undefined) return known === runtime
  return Object.entries(asked ?? {}).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value)
}

function noneText({ runtime, labels }: PlacementRule): string {
  if (runtime !== undefined) return `no runtime is named ${runtime}`
  return labels === undefined ? 'there is no runtime' : `no runtime has labels ${labelsText(labels)}`
}

/** `gpu, zone=a` */
export const labelsText = (labels: RuntimeLabels): string =>
  Object.entries(labels)
    .map(([key, value]) => (value === '' ? key : `${key}=${value}`))
    .join(', ')

/** Names in a text. */
const MAX_NAMED = 3

/** `gpu-1`, `gpu-1, gpu-2`, `a, b, c and 5 others` */
export function namesText(names: readonly string[]): string {
  const named = names.slice(0, MAX_NAMED).join(', ')
  return names.length > MAX_NAMED ? `${named} and ${names.length - MAX_NAMED} others` : named
}

const drainingText = (runtimes: readonly PlaceableRuntime[]): string =>
  runtimes.length === 1
    ? `runtime ${runtimes[0]!.name} is draining`
    : `runtimes ${namesText(runtimes.map((runtime) => runtime.name))} are draining`

/** What a runtime service has, and what it has left. */
export interface Offer {
  readonly capacity: Capacity
  readonly available: Capacity
  /** Accepted tasks that wait for their place. */
  readonly queued: number
}

/** What a task reserves. */
export type Need = Capacity

const RESOURCES = ['task_slots', 'memory_bytes', 'pids'] as const

/** What a request for the runtime service reserves. The form of its limits is not checked yet. */
export function needOf(limits: unknown): Need {
  const { memory_bytes, pids_max } = isObject(limits) ? limits : {}
  return {
    task_slots: 1,
    ...(isAmount(memory_bytes) && { memory_bytes }),
    ...(isAmount(pids_max) && { pids: pids_max }),
  }
}

const isAmount = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value > 0

/** `available` without what tasks need that were placed since. */
export function without(available: Capacity, taken: Need): Capacity {
  const rest = (resource: (typeof RESOURCES)[number]) => (available[resource] ?? 0) - (taken[resource] ?? 0)
  return {
    task_slots: rest('task_slots'),
    ...(available.memory_bytes !== undefined && { memory_bytes: rest('memory_bytes') }),
    ...(available.pids !== undefined && { pids: rest('pids') }),
  }
}

export const sumOf = (a: Need, b: Need): Need => ({
  task_slots: a.task_slots + b.task_slots,
  memory_bytes: (a.memory_bytes ?? 0) + (b.memory_bytes ?? 0),
  pids: (a.pids ?? 0) + (b.pids ?? 0),
})

/** Whether `b` is the better place: it has more left of what would be scarcest there. `a` wins a tie. */
export function isBetter(b: Offer, a: Offer, need: Need): boolean {
  const [first, second] = [standing(a, need), standing(b, need)]
  if (first.rank !== second.rank) return second.rank > first.rank
  return second.room > first.room
}

/** 2: the task can start. 1: it would wait there. 0: it can never run there. */
interface Standing {
  readonly rank: 0 | 1 | 2
  /** Within a rank, more is better. */
  readonly room: number
}

function standing({ capacity, available, queued }: Offer, need: Need): Standing {
  let rank: 1 | 2 = queued > 0 ? 1 : 2
  let room = Number.POSITIVE_INFINITY
  for (const resource of RESOURCES) {
    const all = capacity[resource]
    const wanted = need[resource] ?? 0
    if (all === undefined) continue
    if (wanted > all) return { rank: 0, room: 0 }
    const left = (available[resource] ?? 0) - wanted
    if (left < 0) rank = 1
    room = Math.min(room, left / Math.max(1, all))
  }
  return { rank, room: room - queued / Math.max(1, capacity.task_slots) }
}
