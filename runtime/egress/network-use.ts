/**
 * What a task has used of the network: its totals, and the events about its connections, of which there is a bounded number.
 * An earlier service told the events that it wrote; its totals are their sums.
 */
import type { NetworkUsage } from '../../shared/contract/runtime.ts'
import { MAX_NETWORK_EVENTS, NETWORK_EVENTS, networkEvent, type Report } from './report.ts'
import { reasonText, targetText } from './verdict.ts'

/** An event about the network, as it is stored. */
export interface NetworkEvent {
  readonly event_type: string
  readonly message: string
  readonly data: Readonly<Record<string, unknown>>
}

const UNLISTED: NetworkEvent = {
  event_type: NETWORK_EVENTS.unlisted,
  message: `the task has had ${MAX_NETWORK_EVENTS} connections of a kind: further ones are only counted, in usage.network`,
  data: {},
}

export class NetworkUse {
  #allowed = 0
  #refused = 0
  #sent = 0
  #received = 0
  /** Of connections that are open, too. */
  #bytes = 0
  readonly #events = { allowed: 0, refused: 0, unlisted: 0 }
  #firstRefusal: string | undefined
  readonly #onReport: (report: Report) => void
  readonly #onEvent: (event: NetworkEvent) => void

  constructor(
    earlier: readonly NetworkEvent[],
    onReport: (report: Report) => void,
    onEvent: (event: NetworkEvent) => void,
  ) {
    this.#onReport = onReport
    this.#onEvent = onEvent
    for (const event of earlier) this.#recall(event)
  }

  /** Bytes that were passed on, in both directions together. */
  get bytes(): number {
    return this.#bytes
  }

  get usage(): NetworkUsage {
    return {
      connections_allowed: this.#allowed,
      connections_refused: this.#refused,
      bytes_sent: this.#sent,
      bytes_received: this.#received,
    }
  }

  /** A clause about the first connection that was refused; undefined if there was none. */
  get firstRefusal(): string | undefined {
    return this.#firstRefusal
  }

  spend(bytes: number): void {
    this.#bytes += bytes
  }

  report(report: Report): void {
    this.#onReport(report)
    const { verdict } = report
    if (report.verdict === 'allowed') {
      this.#allowed++
      this.#sent += report.bytesSent
      this.#received += report.bytesReceived
    } else {
      this.#refused++
      this.#firstRefusal ??= refusalText(report)
    }
    if (this.#events[verdict]++ < MAX_NETWORK_EVENTS) this.#onEvent(networkEvent(report))
    else if (this.#events.unlisted++ === 0) this.#onEvent(UNLISTED)
  }

  #recall({ event_type, message, data }: NetworkEvent): void {
    if (event_type === NETWORK_EVENTS.unlisted) this.#events.unlisted++
    else if (event_type === NETWORK_EVENTS.refused) {
      this.#refused++
      this.#events.refused++
      this.#firstRefusal ??= message
    } else if (event_type === NETWORK_EVENTS.allowed) {
      this.#allowed++
      this.#events.allowed++
      this.#sent += numberIn(data.bytes_sent)
      this.#received += numberIn(data.bytes_received)
      this.#bytes = this.#sent + this.#received
    }
  }
}

const numberIn = (value: unknown): number => (typeof value === 'number' ? value : 0)

function refusalText(report: Extract<Report, { verdict: 'refused' }>): string {
  const { target, refusal } = report
  const what = target === undefined ? 'a connection' : `the connection to ${targetText(target)}`
  return `${what} is refused: ${reasonText(refusal)}`
}
