/**
 * An MCP server on standard input and output that forwards to `POST /mcp` of the control service.
 *
 * Each input line is a message and is sent unchanged. Each message of the answer, JSON or an event stream, is printed as a
 * line. Messages are sent concurrently, so a long wait delays no other message. The service keeps no sessions, so a cancel
 * aborts its request. A failed request is answered with an error, so that every request gets exactly one answer.
 *
 * It calls `fetch`, not ofetch, because answers are streams without an end and bodies go through unparsed.
 */

import { type Toolset, toolsetQuery } from '../../shared/contract/toolsets.ts'
import { faultText } from '../../shared/http/connection-fault.ts'
import { fetchTarget } from '../../shared/http/socket-address.ts'
import { readBounded } from '../../shared/streams/bounded-output.ts'
import { LineSplitter, LineTooLong } from '../../shared/streams/line-splitter.ts'
import { EventSplitter } from '../../shared/streams/server-sent-events.ts'
import { jsonOrUndefined } from '../../shared/text/json.ts'
import type { CalledService } from '../called-service.ts'
import { controlService } from '../client.ts'
import { answerIdsOf, asMessage, CODES, failure, headersFor, type Id, idAtStart, type Message } from './message.ts'

/** Bytes of a message. The service accepts no larger ones. */
export const MAX_LINE_BYTES = 4 * 1024 * 1024

/** Bytes at the start of a message that is too large, in which its id is searched. */
const MAX_START_BYTES = 64 * 1024

/** Bytes of an answer, or of one of its events. Those of the service are far smaller. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

/** Milliseconds after the end of the input for open answers: more than a tool may wait. */
export const LAST_ANSWERS_MS = 60_000

/** Methods whose answer is a stream without an end. It is closed at the end of the input. */
const ENDLESS_METHODS = new Set(['subscriptions/listen'])

/** Requests at a time. Further ones are refused. They cannot be left unread, because one of them may be a cancel. */
export const MAX_OPEN_REQUESTS = 256

export interface BridgeOptions {
  /** The control service. Asked before each message: the host may live longer than the service, or be started before. */
  readonly service: () => Pick<CalledService, 'url' | 'token'>
  /** Empty: those of the service. */
  readonly toolsets?: readonly Toolset[]
  readonly input: ReadableStream<Uint8Array>
  /** Prints one line. */
  readonly print: (line: string) => Promise<void>
  /** Prints a line for people. */
  readonly complain: (text: string) => Promise<void>
}

/** Resolves at the end of the input, once all requests are answered. Throws if a line is too long or cannot be printed. */
export async function runBridge(options: BridgeOptions): Promise<void> {
  const bridge = new Bridge(options)
  await Promise.race([passOnAll(bridge, options), bridge.outputGone])
}

async function passOnAll(bridge: Bridge, options: BridgeOptions): Promise<void> {
  const lines = new LineSplitter(MAX_LINE_BYTES)
  try {
    for await (const chunk of options.input) {
      for (const line of lines.push(chunk)) bridge.receive(line)
    }
    bridge.receive(lines.rest()) // the end of the input also ends a line
  } catch (error) {
    if (!(error instanceof LineTooLong)) throw error
    // The next message cannot be found any more.
    bridge.refuse(
      idAtStart(lines.rest(MAX_START_BYTES)) ?? null,
      CODES.invalidRequest,
      `a message has more than ${MAX_LINE_BYTES} bytes`,
    )
    await bridge.finish()
    throw new Error(`a message has more than ${MAX_LINE_BYTES} bytes`)
  }
  await bridge.finish()
}

class Bridge {
  readonly #options: BridgeOptions
  /** As of the last message. */
  #service: Pick<CalledService, 'url' | 'token'>
  /** Requests without an answer yet. */
  readonly #open = new Set<Promise<void>>()
  readonly #byId = new Map<Id, AbortController>()
  /** Aborts the requests of `ENDLESS_METHODS`. */
  readonly #endless = new Set<AbortController>()
  #printing: Promise<void> = Promise.resolve()
  readonly #gone = Promise.withResolvers<never>()
  /** Rejects when the reader of our output is gone. */
  readonly outputGone = this.#gone.promise
  /** Protocol version and session agreed on by `initialize`, in older protocol versions. */
  #version: string | undefined
  #session: string | undefined

  constructor(options: BridgeOptions) {
    this.#options = options
    this.#service = options.service()
  }

  get #url(): string {
    return `${this.#service.url}/mcp`
  }

  receive(line: string): void {
    if (line.trim() === '') return
    const value = jsonOrUndefined(line)
    if (value === undefined) {
      this.refuse(null, CODES.parseError, 'this line is not JSON')
      return
    }
    const message = asMessage(value)
    if (message?.method === 'notifications/cancelled') {
      this.#byId.get(message.params?.requestId as Id)?.abort()
      return
    }
    const ids = answerIdsOf(value)
    if (this.#open.size >= MAX_OPEN_REQUESTS) {
      this.#refuseAll(ids, `more than ${MAX_OPEN_REQUESTS} requests at a time; wait for some of them`)
      return
    }
    const sending = this.#send(line, message, ids)
    this.#open.add(sending)
    sending.finally(() => this.#open.delete(sending))
  }

  refuse(id: Id | null, code: number, message: string): void {
    this.#print(failure(id, code, message))
  }

  /** Answers `ids` with an error. Without an id, as for a notification, the error is printed for people. */
  #refuseAll(ids: Iterable<Id>, text: string): void {
    const [...waiting] = ids
    for (const id of waiting) this.refuse(id, CODES.unreachable, text)
    if (waiting.length > 0) return
    this.#printing = this.#printing.then(() => this.#options.complain(text)).catch(() => {}) // nobody reads it
  }

  /** Resolves when all answers are printed, at the latest after `LAST_ANSWERS_MS`. */
  async finish(): Promise<void> {
    for (const controller of this.#endless) controller.abort()
    const answered = Promise.all(this.#open)
    await Promise.race([answered, Bun.sleep(LAST_ANSWERS_MS)])
    await this.#printing
  }

  async #send(line: string, message: Message | undefined, ids: readonly Id[]): Promise<void> {
    const controller = new AbortController()
    for (const id of ids) this.#byId.set(id, controller)
    if (ENDLESS_METHODS.has(message?.method ?? '')) this.#endless.add(controller)
    const unanswered = new Set(ids)
    try {
      const response = await this.#post(line, message, controller.signal)
      if (message?.method === 'initialize') this.#session = response.headers.get('mcp-session-id') ?? undefined
      await this.#passOn(response, message, unanswered)
      if (unanswered.size > 0) this.#refuseAll(unanswered, `${this.#url} ended its answer too early`)
    } catch (error) {
      // A cancelled request gets no answer.
      if (!controller.signal.aborted) this.#refuseAll(unanswered, this.#faultOf(error))
    } finally {
      this.#endless.delete(controller)
      for (const id of ids) if (this.#byId.get(id) === controller) this.#byId.delete(id)
    }
  }

  #post(body: string, message: Message | undefined, signal: AbortSignal): Promise<Response> {
    this.#service = this.#options.service()
    const { token, url } = this.#service
    const { origin, socket } = fetchTarget(url)
    return fetch(`${origin}/mcp${toolsetQuery(this.#options.toolsets)}`, {
      ...socket,
      method: 'POST',
      body,
      headers: {
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(this.#session !== undefined && { 'mcp-session-id': this.#session }),
        ...(message !== undefined && headersFor(message, this.#version)),
      },
      redirect: 'manual',
      signal,
      // The service limits waits. Bun would give up after five minutes.
      timeout: false,
    } as RequestInit)
  }

  /** Prints the messages of `response`, and removes the answered ids from `unanswered`. */
  async #passOn(response: Response, asked: Message | undefined, unanswered: Set<Id>): Promise<void> {
    const { body, headers, status, ok } = response
    if (body !== null && headers.get('content-type')?.startsWith('text/event-stream')) {
      for await (const data of eventData(body, MAX_ANSWER_BYTES)) this.#passOnText(data, asked, unanswered, status)
      return
    }
    const { text } = body === null ? { text: '' } : await readBounded(body, MAX_ANSWER_BYTES, { stopAtLimit: true })
    if (text !== '' || !ok) this.#passOnText(text, asked, unanswered, status)
  }

  #passOnText(text: string, asked: Message | undefined, unanswered: Set<Id>, status: number): void {
    const value = jsonOrUndefined(text)
    const messages = (Array.isArray(value) ? value : [value]).map(asMessage)
    if (messages.some((message) => message?.jsonrpc !== '2.0'))
      throw new Error(refusalText(this.#url, status, messages[0]))
    for (const message of messages) {
      if (message?.id != null && message.method === undefined) unanswered.delete(message.id)
    }
    const [answer] = messages
    if (asked?.method === 'initialize' && typeof answer?.result?.protocolVersion === 'string') {
      this.#version = answer.result.protocolVersion
    }
    // A protocol error without an id is the answer to the open request, too.
    const [id] = unanswered
    if (answer?.error !== undefined && answer.id == null && id !== undefined) {
      unanswered.delete(id)
      this.#print({ ...answer, id })
    } else this.#print(value)
  }

  #print(value: unknown): void {
    const line = `${JSON.stringify(value)}\n`
    this.#printing = this.#printing.then(() => this.#options.print(line)).catch((error) => this.#gone.reject(error))
  }

  #faultOf(error: unknown): string {
    const reason = faultText(error, { service: controlService })
    return reason.startsWith(this.#url) ? reason : `cannot reach the control service at ${this.#service.url}: ${reason}`
  }
}

function refusalText(url: string, status: number, body: Message | undefined): string {
  const text =
    typeof body?.error === 'string' ? body.error : 'an answer that is no MCP message: is this the control service?'
  return `${url} answered ${status}: ${text}${status === 401 ? ' (check SERVICE_TOKEN)' : ''}`
}

/** The data of each event as it arrives. Throws `LineTooLong`. */
export async function* eventData(stream: ReadableStream<Uint8Array>, maxBytes: number): AsyncGenerator<string> {
  const events = new EventSplitter(maxBytes)
  for await (const chunk of stream) yield* events.push(chunk)
}
