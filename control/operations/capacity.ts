/** Reports how many tasks execute and how many may, in the slots of control and in its runtime services. */
import type { CapacityResponse, NamedRuntimeCapacity, RuntimeCapacity } from '../../shared/contract/capacity.ts'
import { DEFAULT_RUNTIME } from '../../shared/contract/placement.ts'
import { isoTime } from '../../shared/iso-time.ts'
import type { RuntimePool } from '../executors/runtime/pool.ts'
import type { PoolMember } from '../executors/runtime/pool-member.ts'
import type { RemoteCapacityNow } from '../executors/runtime/remote-capacity.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'

export interface CapacityParts {
  readonly scheduler: Pick<Scheduler, 'slotUse' | 'queueLength'>
  readonly runtimePool: Pick<RuntimePool, 'members'>
}

export async function capacityNow({ scheduler, runtimePool }: CapacityParts): Promise<CapacityResponse> {
  const runtimes = await Promise.all(runtimePool.members.map(capacityOf))
  const [first = NONE] = runtimes
  const {
    name: _,
    labels: __,
    draining: ___,
    ...runtime
  } = runtimes.find(({ name }) => name === DEFAULT_RUNTIME) ?? first
  const { taken, count, hold } = scheduler.slotUse
  const queued = scheduler.queueLength
  return { slots: { used: taken, count, queued, ...(hold !== undefined && { hold }) }, runtime, runtimes }
}

/** Stands for the runtime service of an empty pool. */
const NONE: NamedRuntimeCapacity = {
  ...{ name: DEFAULT_RUNTIME, labels: {}, draining: false },
  ...{ state: 'away', reason: 'there is no runtime' },
}

const capacityOf = async ({ name, labels, isDraining, capacity }: PoolMember): Promise<NamedRuntimeCapacity> => ({
  ...{ name, labels, draining: isDraining },
  ...runtimeNow(await capacity.look()),
})

export function runtimeNow(now: RemoteCapacityNow): RuntimeCapacity {
  const { state } = now
  if (state === 'away') return { state, away_since: isoTime(now.awaySince), reason: now.reason }
  const { runtimeId, capacity, reserved, queued } = now
  return { state, runtime_id: runtimeId, capacity, reserved, queued }
}
