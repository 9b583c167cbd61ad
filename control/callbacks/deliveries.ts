/**
 * Delivers callbacks. Each is tried until the receiver accepts it or a day has passed, with pauses of 1 s, 2 s, 4 s …
 * 10 min.
 *
 * A limit per receiver keeps a slow or unreachable receiver from delaying the callbacks of others.
 */
import type { CallbackHeaders } from '../../shared/contract/callbacks.ts'
import { messageOf } from '../../shared/contract/errors.ts'
import { secretTargetOf } from '../../shared/egress/secret-host.ts'
import type { SecretsDirectory } from '../../shared/files/secrets-directory.ts'
import type { Log } from '../../shared/logs/log.ts'
import { VERSION } from '../../shared/process/version.ts'
import type { Delivery, KeptCallbacks } from '../log/kept-callbacks.ts'
import type { AddressGuard } from '../outbound/address-guard.ts'
import { CarriedSecrets } from '../outbound/carried-secrets.ts'
import { secretIn } from '../rules/callback-headers.ts'

/** Maximum number of waiting callbacks. Beyond it, the oldest are given up. */
export const MAX_WAITING = 10_000

/** Milliseconds after which an undelivered callback is given up. */
export const GIVE_UP_AFTER_MS = 24 * 3_600_000

/** Milliseconds that one try may take. */
export const TRY_TIMEOUT_MS = 10_000

/** Maximum number of simultaneous tries, in total and to one receiver. */
export const MAX_TRIES = 32
export const MAX_TRIES_OF_RECEIVER = 4

const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 600_000

/** Milliseconds before try `n` (2 and up): 1 s, 2 s, 4 s … 10 min. */
export const pauseBeforeTry = (n: number): number => Math.min(FIRST_PAUSE_MS * 2 ** (n - 2), LONGEST_PAUSE_MS)

export interface DeliveryOptions {
  readonly kept: Pick<KeptCallbacks, 'keep'>
  readonly guard: AddressGuard
  /** Key of the signature. Undefined: callbacks are not signed. */
  readonly secret: string | undefined
  /** Has the values for headers of graphs. */
  readonly secrets: SecretsDirectory
  readonly log: Log
  /** Called once a callback is delivered or given up. */
  readonly onOver: () => void
}

export type DeliveryOutcome = 'delivered' | 'failed' | 'given_up'

interface Waiting {
  readonly delivery: Delivery
  receiver: Receiver
  tries: number
}

/** A server that gets callbacks, identified by the origin of its URL. */
interface Receiver {
  readonly origin: string
  /** Due callbacks, in the order in which they became due. */
  readonly due: Set<Waiting>
  /** Number of tries in progress. */
  tries: number
}

export class Deliveries {
  readonly #options: DeliveryOptions
  readonly #stopping = new AbortController()
  /** Undelivered callbacks by id, in the order of creation. */
  readonly #waiting = new Map<string, Waiting>()
  /** Receivers with due callbacks or tries in progress, by origin. */
  readonly #receivers = new Map<string, Receiver>()
  /** Receivers to which another try may start, in round-robin order. */
  readonly #ready = new Set<Receiver>()
  #tries = 0
  /** Since the start of the service. */
  readonly counts: Record<DeliveryOutcome, number> = { delivered: 0, failed: 0, given_up: 0 }

  constructor(options: DeliveryOptions) {
    this.#options = options
  }

  get waitingCount(): number {
    return this.#waiting.size
  }

  isWaiting(id: string): boolean {
    return this.#waiting.has(id)
  }

  /** Tries the callback at once. The caller has kept it. */
  add(delivery: Delivery): void {
    const waiting = { delivery, receiver: this.#receiver(new URL(delivery.url).origin), tries: 0 }
    this.#waiting.set(delivery.id, waiting)
    if (this.#waiting.size > MAX_WAITING) {
      const [oldest] = this.#waiting.values()
      this.#giveUp(oldest!, `more than ${MAX_WAITING} callbacks wait`)
    }
    this.#tryNow(waiting)
  }

  /** Cancels the requests in progress. What is undelivered stays kept. */
  stop(): void {
    this.#stopping.abort()
  }

  #receiver(origin: string): Receiver {
    const known = this.#receivers.get(origin)
    if (known !== undefined) return known
    const receiver = { origin, due: new Set<Waiting>(), tries: 0 }
    this.#receivers.set(origin, receiver)
    return receiver
  }

  #tryNow(waiting: Waiting): void {
    const receiver = this.#receiver(waiting.receiver.origin) // the object of the last try may have been removed
    waiting.receiver = receiver
    receiver.due.add(waiting)
    this.#look(receiver)
    this.#tryDue()
  }

  /** Updates whether another try to `receiver` may start. */
  #look(receiver: Receiver): void {
    this.#ready.delete(receiver)
    if (receiver.due.size > 0 && receiver.tries < MAX_TRIES_OF_RECEIVER) this.#ready.add(receiver)
    else if (receiver.due.size === 0 && receiver.tries === 0) this.#receivers.delete(receiver.origin)
  }

  /** Starts due tries up to the limits. */
  #tryDue(): void {
    while (this.#tries < MAX_TRIES && !this.#stopping.signal.aborted) {
      const [receiver] = this.#ready
      if (receiver === undefined) return
      const [waiting] = receiver.due
      receiver.due.delete(waiting!)
      void this.#try(waiting!)
    }
  }

  async #try(waiting: Waiting): Promise<void> {
    const { receiver } = waiting
    this.#tries++
    receiver.tries++
    this.#look(receiver)
    waiting.tries++
    const fault = await this.#send(waiting.delivery)
    this.#tries--
    receiver.tries--
    this.#look(receiver)
    if (this.#stopping.signal.aborted) return
    if (fault === undefined) this.#delivered(waiting)
    else this.#failed(waiting, fault)
    this.#tryDue()
  }

  /** Why the try failed; undefined if the receiver accepted the callback. */
  async #send({ id, event, url, body, headers: given, tenant }: Delivery): Promise<string | undefined> {
    const { guard, secret, secrets: directory } = this.#options
    const secrets = new CarriedSecrets(directory, 'callback', tenant)
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(TRY_TIMEOUT_MS)])
    const ofService = {
      'Content-Type': 'application/json',
      'User-Agent': `taskmill/${VERSION}`,
      'X-Taskmill-Event': event,
      'X-Taskmill-Delivery': id,
      ...(secret !== undefined && { 'X-Taskmill-Signature': signatureOf(body, secret, Math.floor(Date.now() / 1000)) }),
    }
    try {
      await directory.ready(secretsIn(given ?? {}), secrets.asker, signal)
      const headers = { ...ofService, ...textsOf(given ?? {}, secrets) }
      secrets.checkTargets([secretTargetOf(new URL(url))].flatMap((target) => target ?? []))
      const { post } = await import('./post.ts') // its sockets would cost each start 4 ms
      const status = await post({ url, body, headers, guard: guard.for(tenant), signal })
      return status >= 200 && status <= 299 ? undefined : `answered ${status}`
    } catch (error) {
      return secrets.maskedText(messageOf(error))
    }
  }

  #delivered(waiting: Waiting): void {
    this.counts.delivered++
    this.#options.log.info('callback delivered', fieldsOf(waiting))
    this.#over(waiting)
  }

  #failed(waiting: Waiting, cause: string): void {
    if (this.#waiting.get(waiting.delivery.id) !== waiting) return // given up meanwhile
    this.counts.failed++
    if (Date.now() - waiting.delivery.since >= GIVE_UP_AFTER_MS) {
      this.#giveUp(waiting, cause)
      return
    }
    const pauseMs = pauseBeforeTry(waiting.tries + 1)
    this.#options.log.warn('callback failed', { ...fieldsOf(waiting), cause, retry_in_ms: pauseMs })
    setTimeout(() => this.#tryNow(waiting), pauseMs).unref()
  }

  #giveUp(waiting: Waiting, cause: string): void {
    this.counts.given_up++
    this.#options.log.error('callback given up', { ...fieldsOf(waiting), cause })
    this.#over(waiting)
  }

  #over(waiting: Waiting): void {
    const { delivery, receiver } = waiting
    if (!this.#waiting.delete(delivery.id)) return
    receiver.due.delete(waiting)
    this.#look(receiver)
    this.#options.kept.keep({ id: delivery.id, graphId: delivery.graphId, delivery: undefined })
    this.#options.onOver()
  }
}

/** The headers of a callback, with the values that its secrets have now. Throws `SecretFault`. */
function textsOf(given: CallbackHeaders, secrets: CarriedSecrets): Record<string, string> {
  const texts = Object.entries(given).map(([name, value]): [string, string] => {
    const secret = secretIn(value)
    // A fault was refused at submission; whoever edits the journal gets here.
    if (typeof secret === 'string') throw new Error(`headers.${name}: ${secret}`)
    return [name, secret === undefined ? String(value) : secrets.textOf(secret, true)]
  })
  return Object.fromEntries(texts)
}

/** The names of the secrets of headers. */
const secretsIn = (given: CallbackHeaders): string[] =>
  Object.values(given).flatMap((value) => {
    const secret = secretIn(value)
    return typeof secret === 'object' ? secret.name : []
  })

/** The address without its query, which may hold a secret. */
const fieldsOf = ({ delivery: { id, graphId, event, url }, tries }: Waiting) => {
  const { origin, pathname } = new URL(url)
  return { ...(graphId !== '' && { graph_id: graphId }), event, delivery_id: id, url: origin + pathname, tries }
}

/** `seconds` since 1970. */
export const signatureOf = (body: string, secret: string, seconds: number): string =>
  `t=${seconds},v1=${new Bun.CryptoHasher('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`
