/** The ledger as GET /api/v1/runtime/resources shows it. Pure. */
import type { ResourcesSnapshot, TenantView } from '../../shared/contract/runtime-info.ts'
import type { RuntimeStatus } from '../../shared/contract/runtime-status.ts'
import { available } from './amounts.ts'
import type { Ledger } from './ledger.ts'

export interface SnapshotContext {
  readonly runtimeId: string
  /** Accepted tasks without a reservation. */
  readonly waitingTasks: number
  /** The status of a task with a reservation. */
  readonly statusOf: (taskId: string) => RuntimeStatus
}

export function resourcesSnapshot(ledger: Ledger, context: SnapshotContext): ResourcesSnapshot {
  return {
    runtime_id: context.runtimeId,
    capacity: ledger.capacity,
    reserved: { ...ledger.reserved },
    available: available(ledger.capacity, ledger.reserved),
    active_reservations: [...ledger.reservations()].map(({ task_id, reservation, reserved_at }) => ({
      task_id,
      status: context.statusOf(task_id),
      reservation,
      reserved_at,
    })),
    accepted_waiting_tasks: context.waitingTasks,
    tenants: ledger.tenants().map((tenant) => tenantView(ledger, tenant)),
  }
}

function tenantView(ledger: Ledger, tenant: string): TenantView {
  const quota = ledger.quotas.get(tenant)
  const reserved = ledger.reservedBy(tenant)
  return {
    tenant,
    ...(quota !== undefined && { quota }),
    reserved: { ...reserved },
    ...(quota !== undefined && { available: available(quota, reserved) }),
  }
}
