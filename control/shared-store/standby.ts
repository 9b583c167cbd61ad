/**
 * Waits until this replica has the lease.
 *
 * The lease of a replica that is gone ends by itself, in the clock of the database. A replica that finds the database only
 * after an outage waits for a whole lease before it takes one that is over: its holder had no chance to renew it either.
 */
import type { ActiveReplica, SharedRows } from './shared-rows.ts'

/** Longest milliseconds between two tries to take the lease. */
const MAX_PAUSE_MS = 500

export interface StandbyOptions {
  readonly rows: Pick<SharedRows, 'activate'>
  /** Where callers reach this replica. */
  readonly address: string
  readonly leaseMs: number
  /** Called when another replica has the lease, and when another one has it after that. */
  readonly onWaiting: (active: ActiveReplica) => void
  /** Fires when this replica is to stop. */
  readonly signal: AbortSignal
}

/** Resolves when this replica has the lease. Rejects with the reason of the signal. */
export async function becomeActive({ rows, address, leaseMs, onWaiting, signal }: StandbyOptions): Promise<void> {
  let known: number | undefined
  let lookedAt = Number.NEGATIVE_INFINITY
  let steadySince = Number.POSITIVE_INFINITY
  for (;;) {
    signal.throwIfAborted()
    const askedAt = performance.now()
    if (askedAt - lookedAt > leaseMs / 2) steadySince = askedAt // the database or this process was away
    const active = await rows.activate(address, askedAt - steadySince > leaseMs)
    lookedAt = performance.now()
    if (lookedAt - askedAt > leaseMs / 2) steadySince = lookedAt
    if (active === undefined) return
    if (active.id !== known) onWaiting(active)
    known = active.id
    await Bun.sleep(Math.min(MAX_PAUSE_MS, leaseMs / 10))
  }
}
