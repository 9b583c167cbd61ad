/**
 * `fetch` for MCP servers over HTTP, with limits and errors that the SDK lacks.
 *
 * - An answer, or one event of a stream, has at most `MAX_MESSAGE_BYTES`.
 * - If a stream ends without the answer, the SDK would let the caller wait for ever. So `onLost` fails the call, unless
 *   the stream had event ids, with which the SDK resumes it. An invalid answer fails its call too.
 * - A cancelled request is closed once the server has been told, even if the server ignores that.
 */

import type { TraceHeaders } from '../../shared/logs/trace.ts'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import { answerFault, isAnswer } from './answer-fault.ts'
import { boundedBody } from './bounded-body.ts'

export interface BoundedFetchOptions {
  /** Whether the SDK accepts `value` as an answer. */
  readonly isRight: (value: unknown) => boolean
  /** Called with the id of a request that can no longer be answered, and the reason. */
  readonly onLost: (id: number, reason: string) => void
}

/** Milliseconds after the end of a stream, in which the SDK reads the messages before the end. */
const LOST_AFTER_MS = 100

/** With this status the SDK assumes that the server has no stream of its own, and does not ask again. */
const METHOD_NOT_ALLOWED = 405

/** With this status the answer may come in the stream of the session. */
const ACCEPTED = 202

const STREAM_ENDED = 'the stream ended before the answer'

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

export class BoundedFetch {
  readonly #isRight: BoundedFetchOptions['isRight']
  readonly #onLost: BoundedFetchOptions['onLost']
  /** Open requests, each with the function that closes it. */
  readonly #open = new Map<number, AbortController>()
  /** Open requests whose stream has ended and can be resumed. */
  readonly #resumable = new Set<number>()
  /** False once the server has refused to resume a stream. */
  #mayResume = true

  constructor({ isRight, onLost }: BoundedFetchOptions) {
    this.#isRight = isRight
    this.#onLost = onLost
  }

  readonly fetch: Fetch = async (url, init = {}) => {
    const sent = init.method === 'POST' ? asMessage(init.body) : undefined
    const id = sent?.method !== undefined && typeof sent.id === 'number' ? sent.id : undefined
    const controller = new AbortController()
    if (id !== undefined) this.#open.set(id, controller)
    const signal = init.signal ? AbortSignal.any([init.signal, controller.signal]) : controller.signal
    try {
      // The timeout of the task limits the wait. Bun alone would give up after five minutes.
      const response = await fetch(url, { ...init, ...traced(init, sent), signal, timeout: false } as RequestInit)
      const isResumption = init.method === 'GET' && new Headers(init.headers).has('last-event-id')
      if (isResumption && response.status === METHOD_NOT_ALLOWED) {
        this.#mayResume = false
        this.loseResumable()
      }
      const cancelled = sent?.method === 'notifications/cancelled' ? sent.params?.requestId : undefined
      if (typeof cancelled === 'number') {
        this.#open.get(cancelled)?.abort()
        this.answered(cancelled)
      }
      return this.#bounded(response, id)
    } catch (error) {
      if (id !== undefined) this.#open.delete(id)
      throw error
    }
  }

  /** Called for every answer. */
  answered(id: unknown): void {
    this.#open.delete(id as number)
    this.#resumable.delete(id as number)
  }

  /**
   * Fails the requests that wait for a resumed stream. Called when the SDK has given up, or the server refuses to
   * resume.
   */
  loseResumable(): void {
    const lost = [...this.#resumable]
    this.#resumable.clear()
    for (const id of lost) this.#lose(id, STREAM_ENDED)
  }

  #lose(id: number, reason: string): void {
    if (!this.#open.has(id)) return
    this.answered(id)
    this.#onLost(id, reason)
  }

  /** Checks for an invalid answer to the request `id`, or to any request in a resumed stream. */
  #checkMessage(message: unknown, id: number | undefined): void {
    if (!isAnswer(message)) return
    const answered = Number(message.id)
    if (id !== undefined && answered !== id) return
    const fault = answerFault(message, this.#isRight)
    if (fault !== undefined) this.#lose(answered, fault)
  }

  /** Fails the call if a JSON body holds no answer. The SDK reports only bodies that are not JSON. */
  #checkWhole(text: string, id: number): void {
    const value = jsonOrUndefined(text)
    if (value === undefined && text !== '') return
    const messages = Array.isArray(value) ? value : [value]
    for (const message of messages) this.#checkMessage(message, id)
    if (messages.some((message) => isAnswer(message) && Number(message.id) === id)) return
    const told = messages.map(errorTextOf).find((text) => text !== undefined)
    this.#lose(id, told === undefined ? 'it sent no answer' : `it sent no answer but an error: ${told}`)
  }

  #bounded(response: Response, id: number | undefined): Response {
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
    const { body, ok, status, statusText, headers } = response
    if (isStream && body !== null) {
      const end = (hasEventIds: boolean) => {
        if (id === undefined || !this.#open.has(id)) return
        if (hasEventIds && this.#mayResume) this.#resumable.add(id)
        else setTimeout(() => this.#lose(id, STREAM_ENDED), LOST_AFTER_MS)
      }
      const onData = (data: string) => this.#checkMessage(jsonOrUndefined(data), id)
      return new Response(boundedBody(body, { kind: 'stream', onData, end }), { status, statusText, headers })
    }
    const end = (text: string | undefined) => {
      if (id === undefined) return
      if (ok && status !== ACCEPTED && text !== undefined) this.#checkWhole(text, id)
      this.#open.delete(id)
    }
    if (body !== null) return new Response(boundedBody(body, { kind: 'whole', end }), { status, statusText, headers })
    end('')
    return response
  }
}

interface Message {
  readonly id?: unknown
  readonly method?: string
  readonly params?: { readonly requestId?: unknown; readonly _meta?: Partial<TraceHeaders> }
}

/** The headers with the trace that a call names in `_meta`. Those of the configuration of the server count more. */
function traced(init: RequestInit, message: Message | undefined): { readonly headers?: Headers } {
  const { traceparent, tracestate } = message?.params?._meta ?? {}
  if (traceparent === undefined) return {}
  const headers = new Headers(init.headers)
  if (headers.has('traceparent') || headers.has('tracestate')) return {}
  headers.set('traceparent', traceparent)
  if (tracestate !== undefined) headers.set('tracestate', tracestate)
  return { headers }
}

function asMessage(body: unknown): Message | undefined {
  const value = typeof body === 'string' ? jsonOrUndefined(body) : undefined
  return isObject(value) ? value : undefined
}

/** The message of an error that belongs to no request. */
function errorTextOf(message: unknown): string | undefined {
  const error = isObject(message) && isObject(message.error) ? message.error : {}
  return typeof error.message === 'string' ? error.message : undefined
}
