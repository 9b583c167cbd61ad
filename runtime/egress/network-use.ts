/**
 * What a task has used of the network: its totals, and the events about its connections, of which there is a bounded number.
 *
 * The totals are in a file. Those of an earlier service go on; what it had open was cut when it ended.
 */
import type { NetworkUsage } from '../../shared/contract/runtime.ts'
import {
  MAX_NETWORK_EVENTS,
  NETWORK_EVENTS,
  type NetworkEvent,
  networkEvent,
  type OpenConnection,
  type Report,
  restartEvent,
} from './report.ts'
import type { UseCounts, UseFile } from './use-file.ts'
import { reasonText, targetText } from './verdict.ts'

const UNLISTED: NetworkEvent = {
  event_type: NETWORK_EVENTS.unlisted,
  message: `the task has had ${MAX_NETWORK_EVENTS} connections of a kind: further ones are only counted, in usage.network`,
  data: {},
}

export interface NetworkUseOptions {
  readonly file: UseFile
  /** The events of earlier services. */
  readonly earlier: readonly NetworkEvent[]
  readonly onReport: (report: Report) => void
  readonly onEvent: (event: NetworkEvent) => void
}

export class NetworkUse {
  readonly #options: NetworkUseOptions
  readonly #counts = { allowed: 0, refused: 0, open: 0, sent: 0, received: 0 }
  readonly #events = { allowed: 0, refused: 0, unlisted: 0 }
  #firstRefusal: string | undefined

  constructor(options: NetworkUseOptions) {
    this.#options = options
    for (const event of options.earlier) this.#recall(event)
    const { found } = options.file
    if (found === undefined) return
    const { counts, connections } = found
    Object.assign(this.#counts, { ...counts, allowed: counts.allowed + counts.open, open: 0 } satisfies UseCounts)
    this.#write()
    for (const connection of connections) this.#tell('allowed', restartEvent(connection))
    if (counts.open > connections.length) this.#tellUnlisted()
  }

  /** Bytes that were passed on, in both directions together. */
  get bytes(): number {
    return this.#counts.sent + this.#counts.received
  }

  get usage(): NetworkUsage {
    return {
      connections_allowed: this.#counts.allowed,
      connections_refused: this.#counts.refused,
      bytes_sent: this.#counts.sent,
      bytes_received: this.#counts.received,
    }
  }

  /** Connections that are open. */
  get open(): number {
    return this.#counts.open
  }

  /** A clause about the first connection that was refused; undefined if there was none. */
  get firstRefusal(): string | undefined {
    return this.#firstRefusal
  }

  spend(sent: number, received: number): void {
    this.#counts.sent += sent
    this.#counts.received += received
    this.#options.file.soon(this.#counts)
  }

  /** Notes a connection that has been made. Call the result with the report of its end. */
  opened(connection: OpenConnection): (report: Report) => void {
    const { file } = this.#options
    const row = file.add(connection)
    this.#counts.open++
    this.#write()
    return (report) => {
      this.#counts.open--
      this.report(report)
      if (row !== undefined) file.remove(row)
    }
  }

  /** Counts a connection that has ended, or was never made. */
  report(report: Report): void {
    this.#options.onReport(report)
    const { verdict } = report
    this.#counts[verdict]++
    if (verdict === 'refused') this.#firstRefusal ??= refusalText(report)
    this.#write()
    this.#tell(verdict, networkEvent(report))
  }

  /** Writes nothing any more. */
  close(): void {
    this.#options.file.close()
  }

  #write(): void {
    this.#options.file.now(this.#counts)
  }

  #tell(verdict: Report['verdict'], event: NetworkEvent): void {
    if (this.#events[verdict]++ < MAX_NETWORK_EVENTS) this.#options.onEvent(event)
    else this.#tellUnlisted()
  }

  #tellUnlisted(): void {
    if (this.#events.unlisted++ === 0) this.#options.onEvent(UNLISTED)
  }

  /** Without a file, as of a service of an earlier version, the totals are the sums of what was told. */
  #recall({ event_type, message, data }: NetworkEvent): void {
    if (event_type === NETWORK_EVENTS.unlisted) this.#events.unlisted++
    else if (event_type === NETWORK_EVENTS.refused) {
      this.#counts.refused++
      this.#events.refused++
      this.#firstRefusal ??= message
    } else if (event_type === NETWORK_EVENTS.allowed) {
      this.#counts.allowed++
      this.#events.allowed++
      this.#counts.sent += numberIn(data.bytes_sent)
      this.#counts.received += numberIn(data.bytes_received)
    }
  }
}

const numberIn = (value: unknown): number => (typeof value === 'number' ? value : 0)

function refusalText(report: Extract<Report, { verdict: 'refused' }>): string {
  const { target, refusal } = report
  const what = target === undefined ? 'a connection' : `the connection to ${targetText(target)}`
  return `${what} is refused: ${reasonText(refusal)}`
}
