/**
 * Capacity, reservations and queue of the runtime service.
 *
 * Requested on demand. All readers within a second share one request and its answer, so many open pages cost the
 * runtime service one call a second.
 */

import { messageOf } from '../../../shared/contract/errors.ts'
import type { Capacity } from '../../../shared/contract/runtime-info.ts'
import { CallFailed } from '../../../shared/http/client.ts'
import { isObject } from '../../../shared/text/json.ts'
import type { RuntimeService } from './service.ts'

/** Milliseconds for which an answer is shared. */
const SHARED_MS = 1_000

/** Milliseconds for the answer. Longer ones would keep a page waiting for what it shows beside the point. */
const ANSWER_MS = 2_000

export type RemoteCapacityNow =
  | { readonly state: 'away'; readonly awaySince: number; readonly reason: string; readonly fault: string }
  | {
      readonly state: 'ready'
      readonly runtimeId: string
      readonly capacity: Capacity
      readonly reserved: Capacity
      readonly queued: number
    }

export class RemoteCapacity {
  readonly #service: Pick<RuntimeService, 'resources'>
  #now: Promise<RemoteCapacityNow> | undefined
  /** `performance.now()` of the answer; undefined until it has come. */
  #answeredAt: number | undefined
  /** Since when no look succeeded, in milliseconds since 1970. */
  #awaySince: number | undefined

  constructor(service: Pick<RuntimeService, 'resources'>) {
    this.#service = service
  }

  /** Never rejects. */
  look(): Promise<RemoteCapacityNow> {
    const isOld = this.#answeredAt !== undefined && performance.now() - this.#answeredAt > SHARED_MS
    if (this.#now === undefined || isOld) {
      this.#answeredAt = undefined
      this.#now = this.#ask()
    }
    return this.#now
  }

  async #ask(): Promise<RemoteCapacityNow> {
    try {
      const now = capacityIn(await this.#service.resources(ANSWER_MS))
      this.#awaySince = undefined
      return now
    } catch (error) {
      this.#awaySince ??= Date.now()
      const reason = messageOf(error)
      const fault = error instanceof CallFailed ? error.fault : reason
      return { state: 'away', awaySince: this.#awaySince, reason, fault }
    } finally {
      this.#answeredAt = performance.now()
    }
  }
}

function capacityIn(answer: unknown): RemoteCapacityNow {
  if (!isObject(answer)) throw new Error('the runtime service answered with something other than its resources')
  const { runtime_id, capacity, reserved, accepted_waiting_tasks: queued } = answer
  return {
    state: 'ready',
    runtimeId: String(runtime_id),
    capacity: amountsIn('capacity', capacity),
    reserved: amountsIn('reserved', reserved),
    queued: amount('accepted_waiting_tasks', queued),
  }
}

function amountsIn(field: string, value: unknown): Capacity {
  const { task_slots, memory_bytes, pids } = isObject(value) ? (value as Record<string, unknown>) : {}
  return {
    task_slots: amount(`${field}.task_slots`, task_slots),
    ...(memory_bytes != null && { memory_bytes: amount(`${field}.memory_bytes`, memory_bytes) }),
    ...(pids != null && { pids: amount(`${field}.pids`, pids) }),
  }
}

function amount(field: string, value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return value
  throw new Error(`the runtime service answered with resources that cannot be read: ${field} is no amount`)
}
