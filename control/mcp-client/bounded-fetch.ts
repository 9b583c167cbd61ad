/**
 * `fetch` for servers that are reached by HTTP, with what the SDK leaves open.
 *
 * Nothing is read without a limit: an answer, or one event of a stream, has at most `MAX_MESSAGE_BYTES`. A stream that
 * ends without having brought the answer would have its caller wait for ever: `onLost` is told, unless the stream had
 * event ids, by which the SDK takes it up again. It is told of an answer that is none, too. And a request that was
 * cancelled is let go of once the server has been told, whether or not it cares.
 */
import { isObject, jsonOrUndefined } from '../../shared/json.ts'
import { answerFault, isAnswer } from './answer-fault.ts'
import { boundedBody } from './bounded-body.ts'

export interface BoundedFetchOptions {
  /** Whether the SDK takes `value` for an answer. */
  readonly isRight: (value: unknown) => boolean
  /** Called with the id of a request that cannot be answered any more, and why. */
  readonly onLost: (id: number, reason: string) => void
}

/** Milliseconds after the end of a stream in which what came before it is certainly read. */
const LOST_AFTER_MS = 100

/** For the SDK this says that the server has no streams of its own, and it asks no more. */
const METHOD_NOT_ALLOWED = 405

/** The answer may come another way: in the stream of the session. */
const ACCEPTED = 202

const STREAM_ENDED = 'the stream ended before the answer'

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

export class BoundedFetch {
  readonly #isRight: BoundedFetchOptions['isRight']
  readonly #onLost: BoundedFetchOptions['onLost']
  /** Requests that are not answered yet, and what lets go of each. */
  readonly #open = new Map<number, AbortController>()
  /** Those of them whose stream has ended and can be taken up again. */
  readonly #resumable = new Set<number>()
  /** False once the server has said that it does not let one take up a stream again. */
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
      const response = await fetch(url, { ...init, signal, timeout: false } as RequestInit)
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

  /** To be told of every answer. */
  answered(id: unknown): void {
    this.#open.delete(id as number)
    this.#resumable.delete(id as number)
  }

  /** The SDK has given up taking up streams again, or the server does not let it. */
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

  /** Looks for a wrong answer to the request `id`, or, in a stream that was taken up again, to any. */
  #checkMessage(message: unknown, id: number | undefined): void {
    if (!isAnswer(message)) return
    const answered = Number(message.id)
    if (id !== undefined && answered !== id) return
    const fault = answerFault(message, this.#isRight)
    if (fault !== undefined) this.#lose(answered, fault)
  }

  /** The SDK makes an error of a body that is no JSON, but waits on where one holds no answer. */
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
  readonly params?: { readonly requestId?: unknown }
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
