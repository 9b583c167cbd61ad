/**
 * `fetch` for servers that are reached by HTTP, with what the SDK leaves open.
 *
 * Nothing is read without a limit: an answer, or one event of a stream, has at most `MAX_MESSAGE_BYTES`. A stream that
 * ends without having brought the answer would have its caller wait for ever: `onLost` is told, unless the stream had
 * event ids, by which the SDK takes it up again. And a request that was cancelled is let go of once the server has been
 * told, whether or not it cares.
 */
import { isObject } from '../graph/decode.ts'
import { MAX_MESSAGE_BYTES } from './limits.ts'

export interface BoundedFetchOptions {
  /** Called with the id of a request that cannot be answered any more. */
  readonly onLost: (id: number) => void
}

/** Milliseconds after the end of a stream in which what came before it is certainly read. */
const LOST_AFTER_MS = 100

/** For the SDK this says that the server has no streams of its own, and it asks no more. */
const METHOD_NOT_ALLOWED = 405

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

export class BoundedFetch {
  readonly #onLost: (id: number) => void
  /** Requests that are not answered yet, and what lets go of each. */
  readonly #open = new Map<number, AbortController>()
  /** Those of them whose stream has ended and can be taken up again. */
  readonly #resumable = new Set<number>()
  /** False once the server has said that it does not let one take up a stream again. */
  #mayResume = true

  constructor({ onLost }: BoundedFetchOptions) {
    this.#onLost = onLost
  }

  readonly fetch: Fetch = async (url, init = {}) => {
    const sent = init.method === 'POST' ? asMessage(init.body) : undefined
    const id = sent?.method !== undefined && typeof sent.id === 'number' ? sent.id : undefined
    const controller = new AbortController()
    if (id !== undefined) this.#open.set(id, controller)
    const signal = init.signal ? AbortSignal.any([init.signal, controller.signal]) : controller.signal
    try {
      // How long an answer may take is the task's timeout; Bun would give up after five minutes.
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
    for (const id of lost) this.#lose(id)
  }

  #lose(id: number): void {
    if (this.#open.delete(id)) this.#onLost(id)
  }

  #bounded(response: Response, id: number | undefined): Response {
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
    const end = (hasEventIds: boolean) => {
      if (id === undefined || !this.#open.has(id)) return
      if (!isStream) this.#open.delete(id)
      else if (hasEventIds && this.#mayResume) this.#resumable.add(id)
      else setTimeout(() => this.#lose(id), LOST_AFTER_MS)
    }
    if (response.body === null) {
      end(false)
      return response
    }
    const body = boundedBody(response.body, isStream, end)
    return new Response(body, { status: response.status, statusText: response.statusText, headers: response.headers })
  }
}

interface Message {
  readonly id?: unknown
  readonly method?: string
  readonly params?: { readonly requestId?: unknown }
}

function asMessage(body: unknown): Message | undefined {
  if (typeof body !== 'string') return undefined
  try {
    const value: unknown = JSON.parse(body)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** How large a body, or an event of it, has become; and whether its events have ids. */
class MessageSize {
  readonly #isStream: boolean
  #bytes = 0
  #lastCharacters = ''
  hasEventIds = false

  constructor(isStream: boolean) {
    this.#isStream = isStream
  }

  /** Throws when it is too large. */
  add(chunk: Uint8Array): void {
    let from = 0
    if (this.#isStream) {
      const text = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1')
      this.hasEventIds ||= /(^|\n)id:/.test(this.#lastCharacters + text)
      this.#lastCharacters = (this.#lastCharacters + text).slice(-3)
      for (const { index } of text.matchAll(/\n\r?\n/g)) {
        this.#count(index - from)
        this.#bytes = 0
        from = index
      }
    }
    this.#count(chunk.length - from)
  }

  #count(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > MAX_MESSAGE_BYTES) throw new Error(`it sent a message of more than ${MAX_MESSAGE_BYTES} bytes`)
  }
}

/** `body`, which fails when it, or one of its events, is too large. `end` is called once, whatever the end is. */
function boundedBody(
  body: ReadableStream<Uint8Array>,
  isStream: boolean,
  end: (hasEventIds: boolean) => void,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  const size = new MessageSize(isStream)
  let isEnded = false
  const finish = () => {
    if (isEnded) return
    isEnded = true
    end(size.hasEventIds)
  }
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (done) {
          controller.close()
          finish()
          return
        }
        size.add(value)
        controller.enqueue(value)
      } catch (error) {
        void reader.cancel().catch(() => {})
        controller.error(error)
        finish()
      }
    },
    cancel(reason) {
      finish()
      return reader.cancel(reason)
    },
  })
}
