/**
 * Sends spans to a collector over OTLP/HTTP, as JSON.
 *
 * Spans wait in a bounded queue and are sent in batches, one request at a time. While the collector is away, a batch is
 * tried again after growing pauses; what finds the queue full is dropped. Nothing waits for it but the end of the service,
 * for a moment.
 */

import { faultText } from '../../shared/http/connection-fault.ts'
import { GrowingPause } from '../../shared/http/growing-pause.ts'
import type { Log } from '../../shared/logs/log.ts'
import { VERSION } from '../../shared/process/version.ts'
import { readBounded } from '../../shared/streams/bounded-output.ts'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import type { TracingSettings } from './settings.ts'
import { type Attribute, attributes, type Span } from './spans.ts'

/** Spans that wait. More are dropped. They take some 8 MB. */
export const MAX_WAITING_SPANS = 10_000

/** Characters of the attributes of spans that wait. Labels of graphs may be long. */
export const MAX_WAITING_CHARACTERS = 16 * 1024 * 1024

/** Spans of one request, and characters of their attributes. Encoding them takes about 1 ms. */
const MAX_BATCH_SPANS = 256
const MAX_BATCH_CHARACTERS = 256 * 1024

/** Milliseconds for which a span waits for others. */
const BATCH_MS = 1_000

/** Before the next try while the collector is away. */
const PAUSES = { firstMs: 1_000, longestMs: 30_000 }

/** Milliseconds that a collector may ask for. */
const LONGEST_WAIT_MS = 300_000

/** Bytes of an answer that are read. */
const MAX_ANSWER_BYTES = 64 * 1024

/** Milliseconds at the end of the service for what still waits. */
const LAST_SPANS_MS = 1_000

/** Answers after which the same batch may be accepted later. Others refuse it for good. */
const PASSING = new Set([429, 502, 503, 504])

interface Waiting {
  readonly span: Span
  readonly characters: number
}

/** Characters of the texts in a span whose length callers decide. */
const charactersOf = ({ name, attributes, status }: Span): number =>
  attributes.reduce(
    (sum, { key, value }) => sum + key.length + ('stringValue' in value ? value.stringValue.length : 0),
    name.length + (status.message?.length ?? 0),
  )

export interface ExporterOptions extends TracingSettings {
  /** Tells this service from others of its name. */
  readonly instanceId: string
  readonly log: Log
}

export class SpanExporter {
  readonly #options: ExporterOptions
  readonly #resource: { readonly attributes: readonly Attribute[] }
  readonly #pause = new GrowingPause(PAUSES)
  readonly #stopping = new AbortController()
  #waiting: Waiting[] = []
  #waitingCharacters = 0
  #timer: Timer | undefined
  #sending: Promise<void> | undefined
  /** Whether the collector did not take the last batch. */
  #isAway = false
  /** Milliseconds that it asks to wait. */
  #notBeforeMs = 0
  /** Since the start of the service. */
  readonly counts = { sent: 0, dropped: 0 }

  constructor(options: ExporterOptions) {
    this.#options = options
    this.#resource = {
      attributes: attributes({
        'service.name': options.serviceName,
        'service.version': VERSION,
        'service.instance.id': options.instanceId,
      }),
    }
  }

  get waitingCount(): number {
    return this.#waiting.length
  }

  /** Whether so much waits that it need not wait for more. */
  get #hasBatch(): boolean {
    return this.#waiting.length >= MAX_BATCH_SPANS || this.#waitingCharacters >= MAX_BATCH_CHARACTERS
  }

  /** Queues the span that `make` returns. It is not made if there is no room. */
  add(make: () => Span): void {
    const isFull = this.#waiting.length >= MAX_WAITING_SPANS || this.#waitingCharacters >= MAX_WAITING_CHARACTERS
    if (isFull || this.#stopping.signal.aborted) {
      this.counts.dropped++
      return
    }
    const span = make()
    const characters = charactersOf(span)
    this.#waiting.push({ span, characters })
    this.#waitingCharacters += characters
    if (this.#hasBatch && !this.#isAway) this.#send()
    else this.#sendAfter(BATCH_MS)
  }

  /** Sends what waits, for a moment. Then nothing is sent any more. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    const late = AbortSignal.timeout(LAST_SPANS_MS)
    const isLate = new Promise<void>((resolve) => late.addEventListener('abort', () => resolve(), { once: true }))
    await Promise.race([this.#sendAll(late), isLate])
    this.#stopping.abort()
    clearTimeout(this.#timer)
    this.counts.dropped += this.#waiting.length
    this.#waiting = []
    this.#waitingCharacters = 0
  }

  async #sendAll(late: AbortSignal): Promise<void> {
    await this.#sending
    while (this.#waiting.length > 0 && !this.#isAway && !late.aborted) await this.#sendBatch()
  }

  #sendAfter(ms: number): void {
    if (this.#sending !== undefined || this.#stopping.signal.aborted) return
    this.#timer ??= setTimeout(() => this.#send(), ms)
    this.#timer.unref()
  }

  #send(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#sending ??= this.#sendBatch().finally(() => {
      this.#sending = undefined
      if (this.#waiting.length === 0) return
      if (this.#isAway) this.#sendAfter(Math.max(this.#pause.next(), this.#notBeforeMs))
      else if (this.#hasBatch) this.#send()
      else this.#sendAfter(BATCH_MS)
    })
  }

  async #sendBatch(): Promise<void> {
    const batch = this.#nextBatch()
    const outcome = await this.#post(batch.map(({ span }) => span))
    if (outcome === 'away') return
    this.#waiting.splice(0, batch.length)
    for (const { characters } of batch) this.#waitingCharacters -= characters
    this.counts.sent += batch.length - outcome.rejected
    this.counts.dropped += outcome.rejected
  }

  /** The first span goes with it, however long it is. */
  #nextBatch(): Waiting[] {
    let characters = 0
    let count = 0
    while (count < Math.min(this.#waiting.length, MAX_BATCH_SPANS)) {
      characters += this.#waiting[count]!.characters
      if (count > 0 && characters > MAX_BATCH_CHARACTERS) break
      count++
    }
    return this.#waiting.slice(0, count)
  }

  async #post(spans: readonly Span[]): Promise<'away' | { readonly rejected: number }> {
    const { url, headers, timeoutMs } = this.#options
    const scope = { name: 'taskmill', version: VERSION }
    const body = JSON.stringify({ resourceSpans: [{ resource: this.#resource, scopeSpans: [{ scope, spans }] }] })
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(timeoutMs)])
    try {
      const sent = { ...headers, 'content-type': 'application/json' }
      const answer = await fetch(url, { method: 'POST', body, headers: sent, signal, redirect: 'manual' })
      const { text } = answer.body
        ? await readBounded(answer.body, MAX_ANSWER_BYTES, { stopAtLimit: true, signal })
        : { text: '' }
      if (PASSING.has(answer.status)) {
        this.#notBeforeMs = retryAfterMs(answer.headers.get('retry-after'))
        return this.#failed(`the collector answered ${answer.status}`)
      }
      if (!answer.ok) return this.#refused(`the collector answered ${answer.status}`, spans.length)
      this.#succeeded()
      return { rejected: Math.min(spans.length, rejectedIn(text)) }
    } catch (error) {
      return this.#failed(faultText(error, { timeoutMs }))
    }
  }

  #failed(cause: string): 'away' {
    if (!this.#isAway && !this.#stopping.signal.aborted)
      this.#options.log.warn('traces cannot be delivered', { url: this.#shownUrl, cause })
    this.#isAway = true
    return 'away'
  }

  #refused(cause: string, rejected: number) {
    this.#options.log.warn('traces were refused', { url: this.#shownUrl, cause, spans: rejected })
    return { rejected }
  }

  #succeeded(): void {
    if (this.#isAway)
      this.#options.log.info('traces are delivered again', { url: this.#shownUrl, dropped: this.counts.dropped })
    this.#isAway = false
    this.#notBeforeMs = 0
    this.#pause.reset()
  }

  /** Without its query, which may be secret. */
  get #shownUrl(): string {
    return this.#options.url.replace(/\?.*$/, '')
  }
}

/** Milliseconds of a `Retry-After` in seconds, at most five minutes. */
const retryAfterMs = (header: string | null): number =>
  header !== null && /^\d{1,9}$/.test(header) ? Math.min(Number(header) * 1_000, LONGEST_WAIT_MS) : 0

/** Spans that the collector did not take, by its answer. */
function rejectedIn(text: string): number {
  const answer = jsonOrUndefined(text)
  const partial = isObject(answer) && isObject(answer.partialSuccess) ? answer.partialSuccess : {}
  const count = Number(partial.rejectedSpans ?? 0)
  return Number.isInteger(count) && count > 0 ? count : 0
}
