/**
 * Checks that the address that this replica has registered leads to it.
 *
 * The other replicas send requests there. Without the check, a wrong --advertise shows only with the first of these
 * requests, at another replica. A load balancer may begin to route to a replica after its start, so nothing waits for the
 * check. It is repeated until it succeeds.
 */
import { GrowingPause } from '../../../shared/http/growing-pause.ts'
import type { Log } from '../../../shared/logs/log.ts'
import type { AskedReplica } from '../keeper.ts'
import type { Others } from './others.ts'

/** Pauses between two checks. */
const PAUSES = { firstMs: 1_000, longestMs: 60_000 }

export interface OwnAddressOptions {
  readonly others: Pick<Others, 'faultOf'>
  readonly log: Log
}

export class OwnAddress {
  readonly #options: OwnAddressOptions
  readonly #pauses = new GrowingPause(PAUSES)
  #timer: Timer | undefined
  #isStopped = false
  #fault: string | undefined

  constructor(options: OwnAddressOptions) {
    this.#options = options
  }

  /** Why the address does not lead to this replica. Undefined if it does, and before the end of the first check. */
  get fault(): string | undefined {
    return this.#fault
  }

  /** `replica` is this one. The address is empty if other machines cannot reach it anyway. */
  async check(replica: AskedReplica): Promise<void> {
    const { others, log } = this.#options
    const { address: url } = replica
    if (url === '') return
    const fault = await others.faultOf(replica)
    if (this.#isStopped) return
    const isNews = (fault === undefined) !== (this.#fault === undefined)
    this.#fault = fault
    if (isNews && fault === undefined) log.info('other replicas can reach this one now', { url })
    if (isNews && fault !== undefined) {
      const text = 'other replicas cannot reach this one: set --advertise to an address that leads to it'
      log.warn(text, { url, cause: fault })
    }
    if (fault !== undefined) this.#timer = setTimeout(() => void this.check(replica), this.#pauses.next())
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }
}
