/** What is kept of callbacks: those that wait for delivery, and the ids of those that are over. */
import { isObject } from '../../shared/text/json.ts'

/** A callback that waits for delivery. */
export interface Delivery {
  /** The same for each try. */
  readonly id: string
  readonly graphId: string
  readonly event: string
  readonly url: string
  readonly body: string
  /** When the callback became due; milliseconds since 1970. */
  readonly since: number
}

/** Whether `entry`, read from JSON, is a delivery. */
export const isDelivery = (entry: unknown): entry is Delivery =>
  isObject(entry) &&
  ['id', 'graphId', 'event', 'url', 'body'].every((name) => typeof entry[name] === 'string') &&
  typeof entry.since === 'number'

export interface StoredCallbacks {
  readonly waiting: Map<string, Delivery>
  /** Ids of delivered and given-up callbacks, with the ids of their graphs. */
  readonly over: Map<string, string>
}

/** Where callbacks are kept. What is lost of it only repeats a delivery. */
export interface KeptCallbacks {
  /** The callbacks of an earlier run. */
  read(): StoredCallbacks
  /** Called before the first try. */
  add(delivery: Delivery): void
  /** The callback was delivered, or given up. */
  addOver(delivery: Delivery): void
  /** Whether so many were added since the last rewrite that it pays. `count` is the number of those that count. */
  mayShrink(count: number): boolean
  /** Forgets all others. */
  rewrite(stored: StoredCallbacks): Promise<void>
}
