/** Capacities, quotas and tasks for tests of the ledger and of the waiting queue. */
import fc from 'fast-check'
import type { Asking } from '../../runtime/ledger/ledger.ts'
import type { TenantQuotas } from '../../runtime/ledger/quotas.ts'
import type { Capacity } from '../../shared/contract/runtime-info.ts'

/** Tenants of random tasks; the last has no quota in `randomQuotas`. */
const TENANTS = ['a', 'b', '__proto__', 'free'] as const

const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

/** A capacity small enough to be met; memory and pids may be unknown. */
export const randomCapacity: fc.Arbitrary<Capacity> = fc
  .record({ task_slots: fc.integer({ min: 1, max: 5 }), memory_bytes: some(fc.nat(10)), pids: some(fc.nat(10)) })
  .map(withoutUndefined)

/** Quotas for some of the tenants. */
export const randomQuotas: fc.Arbitrary<TenantQuotas> = fc
  .tuple(some(randomCapacity), some(randomCapacity), some(randomCapacity))
  .map((quotas) => new Map(quotas.flatMap((quota, i) => (quota === undefined ? [] : [[TENANTS[i]!, quota]]))))

/** What a task asks for, which may be more than there is. Few kinds, so that many are alike. */
export const randomAsking: fc.Arbitrary<Asking> = fc
  .record({
    tenant: some(fc.constantFrom(...TENANTS)),
    memory_bytes: some(fc.constantFrom(1, 3, 7, 11)),
    pids: some(fc.constantFrom(2, 9)),
  })
  .map(({ tenant, memory_bytes, pids }) => ({
    tenant,
    reservation: withoutUndefined({ task_slots: 1, memory_bytes, pids }),
  }))

function withoutUndefined(counters: { [K in keyof Capacity]: Capacity[K] | undefined }): Capacity {
  return JSON.parse(JSON.stringify(counters))
}
