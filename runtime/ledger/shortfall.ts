/**
 * Why a task can never run here: it asks for more than the runtime or its tenant has, even with nothing else running.
 */
import { Refusal } from '../refusal.ts'
import { type Resource, UNLIMITED } from './amounts.ts'

export interface Shortfall {
  readonly resource: Resource
  readonly requested: number
  readonly capacity: number
  /** The tenant whose quota is too small. Absent where it is the capacity of the runtime. */
  readonly tenant?: string
}

/** The limit that asks for a resource, and the flag that raises its capacity. */
const NAMES: Readonly<Record<Resource, { readonly field: string; readonly flag: string }>> = {
  task_slots: { field: 'task_slots', flag: '--max-running-tasks' },
  memory_bytes: { field: 'limits.memory_bytes', flag: '--capacity-memory-bytes' },
  pids: { field: 'limits.pids_max', flag: '--capacity-pids' },
}

/**
 * The shortfall as an answer. Amounts above the largest safe integer arrive here as that integer
 * (`shared/request/limits.ts`).
 */
export function insufficientResources(shortfall: Shortfall): Refusal {
  const { resource, requested, capacity, tenant } = shortfall
  const { field, flag } = NAMES[resource]
  const whose = tenant === undefined ? 'the runtime capacity' : `the quota of tenant ${JSON.stringify(tenant)}`
  const remedy = tenant === undefined ? flag : '--tenant-quota'
  const isAtLeast = requested >= UNLIMITED
  const asked = isAtLeast ? `${field} (${requested} or more)` : `${field}=${requested}`
  const message = `${asked} exceeds ${whose}, which is ${capacity} (ask for less, or have ${remedy} raised)`
  return new Refusal('insufficient_resources', message, { ...shortfall, ...(isAtLeast && { is_at_least: true }) })
}
