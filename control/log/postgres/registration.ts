/**
 * Registers this replica, once no replica of an earlier version is active.
 *
 * In that version, one active replica has all graphs. Its lease ends by itself when it is gone, in the clock of the
 * database. Whoever finds the database only after an outage waits for a whole lease before it declares that one dead: it
 * had no chance to renew its lease either.
 */
import { within } from './database.ts'
import type { DatabaseFault } from './database-fault.ts'
import type { OtherReplica, ReplicaRows } from './replica-rows.ts'

/** Longest milliseconds between two tries to register. */
const MAX_PAUSE_MS = 500

export interface RegistrationOptions {
  readonly rows: Pick<ReplicaRows, 'register'>
  readonly leaseMs: number
  /** Milliseconds that a try to register may be repeated after faults. */
  readonly timeoutMs: number
  /** Called with each such fault. */
  readonly onFault: (fault: DatabaseFault) => void
  /** Called when a replica of an earlier version is active, and when another one is after that. */
  readonly onWaiting: (active: OtherReplica) => void
  /** Fires when this replica is to stop. */
  readonly signal: AbortSignal
}

/** Resolves when this replica is registered. Rejects with the reason of the signal, and with the fault after `timeoutMs`. */
export async function registered(options: RegistrationOptions): Promise<void> {
  const { rows, leaseMs, timeoutMs, onFault, onWaiting, signal } = options
  let known: number | undefined
  let lookedAt = Number.NEGATIVE_INFINITY
  let steadySince = Number.POSITIVE_INFINITY
  for (;;) {
    signal.throwIfAborted()
    const askedAt = performance.now()
    if (askedAt - lookedAt > leaseMs / 2) steadySince = askedAt // the database or this process was away
    const active = await rows.register(askedAt - steadySince > leaseMs, { ...within(timeoutMs), onFault })
    lookedAt = performance.now()
    if (lookedAt - askedAt > leaseMs / 2) steadySince = lookedAt
    if (active === undefined) return
    if (active.id !== known) onWaiting(active)
    known = active.id
    await Bun.sleep(Math.min(MAX_PAUSE_MS, leaseMs / 10))
  }
}
