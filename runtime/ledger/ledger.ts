/**
 * What running tasks have reserved, of the runtime and of the quotas of their tenants.
 *
 * A task reserves the most that it may use, from before its start until nothing of it runs. The reserved amounts are
 * always the exact sum of the live reservations. A resource without a capacity is counted, too, and never short. Quotas
 * are soft: nothing is kept free for a tenant that uses less than its quota.
 *
 * After a restart tasks of the earlier service still run, and `restore` adds them whatever the capacity is now. If it
 * has become smaller, nothing is available until enough of them have ended.
 */
import type { Reservation } from '../../shared/contract/runtime.ts'
import type { Capacity, ResourcesSnapshot, TenantView } from '../../shared/contract/runtime-info.ts'
import type { RuntimeStatus } from '../../shared/contract/runtime-status.ts'
import { type Amounts, available, limitsOf, minus, NOTHING, plus, type Resource, shortOf, takenBy } from './amounts.ts'
import type { TenantQuotas } from './quotas.ts'
import { insufficientResources, type Shortfall } from './shortfall.ts'

/** The tenant and the amounts of a task. */
export interface Asking {
  readonly tenant?: string | undefined
  readonly reservation: Reservation
  /** Whether it needs a user of its own, where the service has such. */
  readonly isSandboxed?: boolean
}

export interface LiveReservation extends Asking {
  readonly task_id: string
  /** RFC 3339. */
  readonly reserved_at: string
}

/**
 * What keeps a task from starting now: the quota of its tenant (and perhaps the capacity too), the capacity alone, or that
 * no user is free for its sandbox.
 */
export type Hold = 'quota' | 'capacity' | 'user'

/** A resource that a task has to wait for. */
export interface Shortage {
  readonly resource: Resource | 'sandbox_uid'
  /** The tenant whose quota is used up. Absent where it is the capacity. */
  readonly tenant?: string
}

/** The reserved amounts of a tenant, and the number of its reservations. */
interface TenantShare {
  readonly amounts: Amounts
  readonly reservations: number
}

export class Ledger {
  readonly capacity: Capacity
  readonly quotas: TenantQuotas
  readonly #limits: Amounts
  readonly #quotaLimits: ReadonlyMap<string, Amounts>
  readonly #live = new Map<string, LiveReservation>()
  readonly #shares = new Map<string, TenantShare>()
  #reserved = NOTHING
  readonly #hasUser: () => boolean

  /** `hasUser`: whether a user is free for another sandbox. */
  constructor(capacity: Capacity, quotas: TenantQuotas = new Map(), hasUser = () => true) {
    this.#hasUser = hasUser
    this.capacity = capacity
    this.quotas = quotas
    this.#limits = limitsOf(capacity)
    this.#quotaLimits = new Map([...quotas].map(([tenant, quota]) => [tenant, limitsOf(quota)]))
  }

  /** Why a task could not run even if nothing else did, or null. */
  shortfallOf({ tenant, reservation }: Asking): Shortfall | null {
    const asked = takenBy(reservation)
    const missing = shortOf(reservation, this.#limits)
    if (missing !== null) return { resource: missing, requested: asked[missing], capacity: this.#limits[missing] }
    const quota = this.#quotaOf(tenant)
    const lacking = quota === undefined ? null : shortOf(reservation, quota)
    if (lacking === null) return null
    return { resource: lacking, requested: asked[lacking], capacity: quota![lacking], tenant: tenant! }
  }

  /** Throws 400 `insufficient_resources` for a task that can never run here. */
  ensureCanEverFit(asking: Asking): void {
    const shortfall = this.shortfallOf(asking)
    if (shortfall !== null) throw insufficientResources(shortfall)
  }

  /** The resource that is short of what a task asks for now, or null. */
  shortageOf({ tenant, reservation, isSandboxed }: Asking): Shortage | null {
    const quota = this.#quotaOf(tenant)
    const lacking = quota === undefined ? null : shortOf(reservation, quota, this.reservedBy(tenant!))
    if (lacking !== null) return { resource: lacking, tenant: tenant! }
    const missing = shortOf(reservation, this.#limits, this.#reserved)
    if (missing !== null) return { resource: missing }
    return isSandboxed && !this.#hasUser() ? { resource: 'sandbox_uid' } : null
  }

  /** The cause that keeps a task from starting now, or null. */
  holdOn({ tenant, reservation, isSandboxed }: Asking): Hold | null {
    const quota = this.#quotaOf(tenant)
    if (quota !== undefined && shortOf(reservation, quota, this.reservedBy(tenant!)) !== null) return 'quota'
    if (shortOf(reservation, this.#limits, this.#reserved) !== null) return 'capacity'
    return isSandboxed && !this.#hasUser() ? 'user' : null
  }

  #quotaOf(tenant: string | undefined): Amounts | undefined {
    return tenant === undefined ? undefined : this.#quotaLimits.get(tenant)
  }

  fitsNow(asking: Asking): boolean {
    return this.holdOn(asking) === null
  }

  /** Whether another task could run, however little it asks for. */
  get hasFreeSlot(): boolean {
    return this.#reserved.task_slots < this.#limits.task_slots
  }

  /** Throws when it does not fit now. Callers check before. */
  reserve(reservation: LiveReservation): void {
    const hold = this.holdOn(reservation)
    if (hold !== null) throw new Error(`the reservation of task ${reservation.task_id} does not fit (${hold})`)
    this.restore(reservation)
  }

  /** Adds the reservation of a task that runs already, whether it fits or not. */
  restore(live: LiveReservation): void {
    const { task_id, tenant, reservation } = live
    if (this.#live.has(task_id)) throw new Error(`task ${task_id} has a reservation`)
    const amounts = takenBy(reservation)
    this.#reserved = plus(this.#reserved, amounts)
    this.#live.set(task_id, live)
    if (tenant === undefined) return
    const share = this.#shares.get(tenant) ?? { amounts: NOTHING, reservations: 0 }
    this.#shares.set(tenant, { amounts: plus(share.amounts, amounts), reservations: share.reservations + 1 })
  }

  /** Returns what was released, or undefined: a second release does nothing. */
  release(taskId: string): LiveReservation | undefined {
    const live = this.#live.get(taskId)
    if (live === undefined) return undefined
    const { tenant, reservation } = live
    const amounts = takenBy(reservation)
    this.#live.delete(taskId)
    this.#reserved = minus(this.#reserved, amounts)
    if (tenant !== undefined) {
      const { amounts: all, reservations } = this.#shares.get(tenant)!
      if (reservations === 1) this.#shares.delete(tenant)
      else this.#shares.set(tenant, { amounts: minus(all, amounts), reservations: reservations - 1 })
    }
    return live
  }

  /** The sum of the live reservations. */
  get reserved(): Amounts {
    return this.#reserved
  }

  reservedBy(tenant: string): Amounts {
    return this.#shares.get(tenant)?.amounts ?? NOTHING
  }

  /**
   * As GET /api/v1/runtime/resources shows it. `waiting` counts the accepted tasks without a reservation; `statusOf` is
   * asked of those with one.
   */
  snapshot(runtime_id: string, waiting: number, statusOf: (taskId: string) => RuntimeStatus): ResourcesSnapshot {
    return {
      runtime_id,
      capacity: this.capacity,
      reserved: { ...this.#reserved },
      available: available(this.capacity, this.#reserved),
      active_reservations: [...this.#live.values()].map(({ task_id, reservation, reserved_at }) => ({
        task_id,
        status: statusOf(task_id),
        reservation,
        reserved_at,
      })),
      accepted_waiting_tasks: waiting,
      tenants: this.tenants().map((tenant) => this.#tenantView(tenant)),
    }
  }

  #tenantView(tenant: string): TenantView {
    const quota = this.quotas.get(tenant)
    const reserved = this.reservedBy(tenant)
    return {
      tenant,
      ...(quota !== undefined && { quota }),
      reserved: { ...reserved },
      ...(quota !== undefined && { available: available(quota, reserved) }),
    }
  }

  /** Tenants with a quota or a reservation, by name. */
  tenants(): string[] {
    return [...new Set([...this.quotas.keys(), ...this.#shares.keys()])].sort()
  }
}
