/** Reports how many tasks execute and how many may, in the slots of control and in its runtime service. */
import type { CapacityResponse, RuntimeCapacity } from '../../shared/contract/capacity.ts'
import { isoTime } from '../../shared/iso-time.ts'
import type { RemoteCapacity, RemoteCapacityNow } from '../executors/runtime/remote-capacity.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'

export interface CapacityParts {
  readonly scheduler: Pick<Scheduler, 'slotUse' | 'queueLength'>
  readonly runtimeCapacity: Pick<RemoteCapacity, 'look'>
}

export async function capacityNow({ scheduler, runtimeCapacity }: CapacityParts): Promise<CapacityResponse> {
  const runtime = runtimeNow(await runtimeCapacity.look())
  const { taken, count, hold } = scheduler.slotUse
  const queued = scheduler.queueLength
  return { slots: { used: taken, count, queued, ...(hold !== undefined && { hold }) }, runtime }
}

function runtimeNow(now: RemoteCapacityNow): RuntimeCapacity {
  const { state } = now
  if (state === 'away') return { state, away_since: isoTime(now.awaySince), reason: now.reason }
  const { runtimeId, capacity, reserved, queued } = now
  return { state, runtime_id: runtimeId, capacity, reserved, queued }
}
