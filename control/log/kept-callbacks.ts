/** What is kept of callbacks: those that wait for delivery, and the ids of those that are over. */
import type { CallbackHeaders } from '../../shared/contract/callbacks.ts'
import { isObject } from '../../shared/text/json.ts'

/** A callback that waits for delivery. */
export interface Delivery {
  /** The same for each try. */
  readonly id: string
  /** Empty for that of a schedule: it belongs to no graph. */
  readonly graphId: string
  readonly event: string
  readonly url: string
  readonly body: string
  /** As the graph, or the schedule, has them: with names of secrets. */
  readonly headers?: CallbackHeaders | undefined
  /** Whose graph it tells of. Absent for that of a token without a tenant. */
  readonly tenant?: string | undefined
  /** When the callback became due; milliseconds since 1970. */
  readonly since: number
}

/** Whether `entry`, read from JSON, is a delivery. */
export const isDelivery = (entry: unknown): entry is Delivery =>
  isObject(entry) &&
  ['id', 'graphId', 'event', 'url', 'body'].every((name) => typeof entry[name] === 'string') &&
  typeof entry.since === 'number' &&
  (entry.headers === undefined || isObject(entry.headers)) &&
  (entry.tenant === undefined || typeof entry.tenant === 'string')

export interface StoredCallbacks {
  readonly waiting: Map<string, Delivery>
  /** Ids of delivered and given-up callbacks, with the ids of their graphs. */
  readonly over: Map<string, string>
}

/** A callback that is to be delivered, or is over. */
export interface CallbackState {
  readonly id: string
  readonly graphId: string
  /** Undefined once it was delivered or given up. */
  readonly delivery: Delivery | undefined
}

/** Where callbacks are kept, at least as long as their graphs. What is lost of it only repeats a delivery. */
export interface KeptCallbacks {
  /** The callbacks of an earlier run. */
  readonly found: StoredCallbacks
  /** Called before the first try, and when the callback is over. */
  keep(callback: CallbackState): void
}
