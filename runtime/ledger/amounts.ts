/**
 * What a task takes, and what a machine or a tenant has, in three counters. Pure and exact: all numbers are safe
 * integers.
 *
 * On the wire a counter may be absent: a task without it takes nothing, a capacity without it is unlimited. Here all
 * three are numbers, and unlimited is the largest safe integer.
 */
import type { Reservation } from '../../shared/contract/runtime.ts'
import type { Capacity } from '../../shared/contract/runtime-info.ts'
import type { ResourceLimits } from '../../shared/contract/runtime-request.ts'

export const RESOURCES = ['task_slots', 'memory_bytes', 'pids'] as const
export type Resource = (typeof RESOURCES)[number]

export type Amounts = Readonly<Record<Resource, number>>

export const UNLIMITED = Number.MAX_SAFE_INTEGER

export const NOTHING: Amounts = { task_slots: 0, memory_bytes: 0, pids: 0 }

/** The reservation of a task with these limits: a slot, and the maximum memory and pids. */
export const reservationFor = ({ memory_bytes, pids_max }: ResourceLimits): Reservation => ({
  task_slots: 1,
  ...(memory_bytes !== undefined && { memory_bytes }),
  ...(pids_max !== undefined && { pids: pids_max }),
})

export const takenBy = ({ task_slots, memory_bytes = 0, pids = 0 }: Reservation): Amounts => ({
  task_slots,
  memory_bytes,
  pids,
})

export const limitsOf = ({ task_slots, memory_bytes = UNLIMITED, pids = UNLIMITED }: Capacity): Amounts => ({
  task_slots,
  memory_bytes,
  pids,
})

/** Throws `RangeError` when the sum would not be exact. */
export function plus(a: Amounts, b: Amounts): Amounts {
  const sum = {
    task_slots: a.task_slots + b.task_slots,
    memory_bytes: a.memory_bytes + b.memory_bytes,
    pids: a.pids + b.pids,
  }
  for (const resource of RESOURCES) {
    if (!Number.isSafeInteger(sum[resource])) throw new RangeError(`${resource}: ${sum[resource]} cannot be counted`)
  }
  return sum
}

export const minus = (a: Amounts, b: Amounts): Amounts => ({
  task_slots: a.task_slots - b.task_slots,
  memory_bytes: a.memory_bytes - b.memory_bytes,
  pids: a.pids - b.pids,
})

/**
 * The first resource of which a task asks for more than `limits` has left, or null. A task that asks for nothing of a
 * resource is never short of it. This runs for each kind of waiting task whenever one may start, so it allocates
 * nothing.
 */
export function shortOf(asked: Reservation, limits: Amounts, reserved: Amounts = NOTHING): Resource | null {
  const { task_slots, memory_bytes = 0, pids = 0 } = asked
  if (task_slots > 0 && task_slots > limits.task_slots - reserved.task_slots) return 'task_slots'
  if (memory_bytes > 0 && memory_bytes > limits.memory_bytes - reserved.memory_bytes) return 'memory_bytes'
  return pids > 0 && pids > limits.pids - reserved.pids ? 'pids' : null
}

/** The rest of a capacity, for the wire: never below 0, and absent without a limit. */
export function available(capacity: Capacity, reserved: Amounts): Capacity {
  const { memory_bytes, pids } = capacity
  return {
    task_slots: Math.max(0, capacity.task_slots - reserved.task_slots),
    ...(memory_bytes !== undefined && { memory_bytes: Math.max(0, memory_bytes - reserved.memory_bytes) }),
    ...(pids !== undefined && { pids: Math.max(0, pids - reserved.pids) }),
  }
}
