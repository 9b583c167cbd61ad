/** Reports how many tasks execute and how many may, in the slots of control and in its runtime services. */
import type { CapacityResponse, ReplicaState, RuntimeCapacity } from '../../shared/contract/capacity.ts'
import { DEFAULT_RUNTIME } from '../../shared/contract/runtime-names.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { RemoteCapacityNow } from '../executors/runtime/remote-capacity.ts'
import type { OtherReplicas } from '../log/keeper.ts'
import type { OperationParts } from './parts.ts'
import { listPauses } from './pause.ts'

export async function capacityNow(parts: OperationParts): Promise<CapacityResponse> {
  const { scheduler, runtimePool, keeper } = parts
  const { members } = runtimePool
  const replicas = await replicasNow(keeper.others)
  const capacities = await Promise.all(members.map(async ({ capacity }) => runtimeNow(await capacity.look())))
  const runtimes = members.map(({ name, labels, isDraining }, i) => ({
    ...{ name, labels, draining: isDraining },
    ...capacities[i]!,
  }))
  const runtime = capacities[members.findIndex(({ name }) => name === DEFAULT_RUNTIME)] ?? capacities[0] ?? NO_RUNTIME
  const { taken, count, hold } = scheduler.slotUse
  const queued = scheduler.queueLength
  const pauses = listPauses(parts)
  return {
    slots: { used: taken, count, queued, ...(hold !== undefined && { hold }) },
    runtime,
    runtimes,
    ...(pauses.length > 0 && { pauses: [...pauses] }),
    ...(replicas.length > 0 && { replicas }),
  }
}

/** None without a database, and while it is away. */
async function replicasNow(others: OtherReplicas): Promise<ReplicaState[]> {
  const { live, gone } = await others.all().catch(() => ({ live: [], gone: [] }))
  return [
    ...live.map(({ id, address: url, leaseMs }) => ({
      ...{ id, state: 'live' as const },
      ...(url !== '' && { url }),
      lease_ms_left: leaseMs,
    })),
    ...gone.map((id) => ({ id, state: 'gone' as const })),
  ]
}

/** The capacity of an empty pool. */
const NO_RUNTIME: RuntimeCapacity = { state: 'away', reason: 'there is no runtime' }

export function runtimeNow(now: RemoteCapacityNow): RuntimeCapacity {
  const { state } = now
  if (state === 'away') return { state, away_since: isoTime(now.awaySince), reason: now.reason }
  const { runtimeId, capacity, reserved, queued } = now
  return { state, runtime_id: runtimeId, capacity, reserved, queued }
}
