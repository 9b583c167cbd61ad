/**
 * Requests to the control service: with its token, a time limit, and another try where that is safe.
 *
 * A request is tried again if it cannot have been executed (no connection, or the service said that it takes nothing now),
 * and a request that may be repeated also if its answer was lost.
 */
import { GrowingPause } from '../shared/http/growing-pause.ts'
import { fetchTarget, plainSocketUrl } from '../shared/http/socket-address.ts'
import { pause } from '../shared/streams/pause.ts'
import { chunksOf, type OpenStream, type StreamSource } from '../shared/streams/source.ts'
import { refusal, TaskmillError, unreachable } from './errors.ts'

/** Bytes of an answer. A graph of 100,000 tasks has less. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024

/** Bytes of the body of a refusal. */
const MAX_REFUSAL_BYTES = 64 * 1024

/** Between two tries. */
const PAUSES = { firstMs: 100, longestMs: 3_000 }

export interface ConnectionOptions {
  /** Address of the service; in Bun also `unix:/path` of a socket. Default: the variable SERVICE_URL, else http://127.0.0.1:8080. */
  readonly url?: string | undefined
  /** Token of the service. Default: the variable SERVICE_TOKEN. */
  readonly token?: string | undefined
  /** Milliseconds for an answer. Default 60000. */
  readonly timeoutMs?: number | undefined
  /** Milliseconds for which a failed call is tried again. Default 30000; 0: never. */
  readonly retryMs?: number | undefined
  /** Milliseconds for which waiting, events and followed logs outlast the absence of the service. Default 600000. */
  readonly awayMs?: number | undefined
  /** Sends the requests. Default: the global `fetch`. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
}

export interface CallOptions {
  /** Aborts the call, which then throws the reason of the signal. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for each answer, in place of those of the client. */
  readonly timeoutMs?: number | undefined
  /** Trace id of the call: 1 to 128 visible ASCII characters. Log lines of the service carry it. */
  readonly traceId?: string | undefined
}

/** How a call is tried. */
interface Trying {
  readonly signal?: AbortSignal | undefined
  /** Whether it may be executed twice. */
  readonly isRepeatable: boolean
  /** Milliseconds for which it is tried again, in place of those of the client. */
  readonly retryMs?: number
  /** A try may have been executed although its answer was lost. */
  readonly onLost?: () => void
}

export interface Call extends CallOptions, Trying {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly query?: Query
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>

export interface Answer {
  readonly body: unknown
  readonly headers: Headers
}

export class Connection implements StreamSource {
  /** Without a final slash. */
  readonly url: string
  readonly timeoutMs: number
  readonly awayMs: number
  readonly retryMs: number
  readonly #headers: Readonly<Record<string, string>>
  readonly #fetch: NonNullable<ConnectionOptions['fetch']>

  /** Throws `TypeError` for an address that is none. */
  constructor(options: ConnectionOptions) {
    const { url = variable('SERVICE_URL') ?? 'http://127.0.0.1:8080', token = variable('SERVICE_TOKEN') } = options
    this.url = baseOf(url)
    this.timeoutMs = milliseconds('timeoutMs', options.timeoutMs, 60_000)
    this.awayMs = milliseconds('awayMs', options.awayMs, 600_000)
    this.retryMs = milliseconds('retryMs', options.retryMs, 30_000)
    this.#headers = token === undefined || token === '' ? {} : { authorization: `Bearer ${token}` }
    this.#fetch = options.fetch ?? ((to, init) => fetch(to, init))
  }

  /** The successful answer, decoded; undefined for one without a body. Throws `TaskmillError`, or the reason of the signal. */
  call(call: Call): Promise<Answer> {
    return this.tried(call, () => this.#once(call))
  }

  /** What `attempt` resolves with, which is tried again where that is safe. */
  async tried<T>(call: Trying, attempt: () => Promise<T>): Promise<T> {
    const { signal, retryMs = this.retryMs } = call
    const growing = new GrowingPause(PAUSES)
    let failedAt: number | undefined
    for (;;) {
      signal?.throwIfAborted()
      try {
        return await attempt()
      } catch (error) {
        signal?.throwIfAborted()
        if (!(error instanceof TaskmillError) || !mayTryAgain(error, call)) throw error
        failedAt ??= Date.now()
        const waitMs = Math.max(growing.next(), error.retryAfterMs ?? 0)
        if (Date.now() + waitMs - failedAt > retryMs) throw error
        if (mayHaveHappened(error)) call.onLost?.()
        await pause(waitMs, signal)
      }
    }
  }

  /** A successful answer as it arrives. Throws `TaskmillError`, or the reason of the signal. */
  async open(path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<OpenStream> {
    const response = await this.#send({ method: 'GET', path, headers }, signal)
    if (response.ok && response.body !== null)
      return { headers: response.headers, stream: response.body as ReadableStream<Uint8Array> }
    throw refusal(`GET ${path}`, response, await textOf(response, MAX_REFUSAL_BYTES))
  }

  async #once(call: Call): Promise<Answer> {
    const { timeoutMs = this.timeoutMs, signal, method, path } = call
    const name = `${method} ${path}`
    const inTime = AbortSignal.timeout(timeoutMs)
    const ending = signal === undefined ? inTime : AbortSignal.any([signal, inTime])
    try {
      const response = await this.#send(call, ending)
      if (!response.ok) throw refusal(name, response, await textOf(response, MAX_REFUSAL_BYTES))
      const { headers, status } = response
      const text = status === 204 ? '' : await textOf(response, MAX_ANSWER_BYTES)
      return { body: status === 204 ? undefined : decoded(name, text), headers }
    } catch (error) {
      if (signal?.aborted || error instanceof TaskmillError) throw error
      if (!inTime.aborted) throw unreachable(name, this.url, error)
      throw new TaskmillError(`${name}: no answer from ${this.url} within ${timeoutMs} ms`, { code: 'timeout' })
    }
  }

  async #send(call: Omit<Call, 'isRepeatable'>, signal: AbortSignal): Promise<Response> {
    const { method, path, query = {}, body, headers, traceId } = call
    const { origin, socket } = fetchTarget(this.url)
    const init = {
      ...socket,
      ...{ method, signal, redirect: 'manual' as const },
      headers: {
        ...this.#headers,
        accept: 'application/json',
        ...(traceId !== undefined && { 'x-trace-id': traceId }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(method === 'DELETE' && { keepalive: false }), // Bun would repeat it unasked on a connection that was used before
      timeout: false, // Bun gives up after five silent minutes, which a stream may have
    }
    try {
      return await this.#fetch(`${origin}${path}${queryText(query)}`, init)
    } catch (error) {
      if (signal.aborted) throw signal.reason
      throw unreachable(`${method} ${path}`, this.url, error)
    }
  }
}

/** Whether the request may have been executed although it failed. */
const mayHaveHappened = ({ code, wasSent, status }: TaskmillError): boolean =>
  wasSent && (code === 'unreachable' || code === 'timeout' || status === 502 || status === 504)

function mayTryAgain(error: TaskmillError, { isRepeatable }: Trying): boolean {
  const isPassing = error.code === 'unreachable' || error.code === 'timeout' || error.code === 'unavailable'
  return isPassing && (isRepeatable || !mayHaveHappened(error))
}

/** Reads at most `maxBytes`. Throws `TaskmillError` if there is more. */
async function textOf({ body }: Response, maxBytes: number): Promise<string> {
  if (body === null) return ''
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of chunksOf(body)) {
    bytes += chunk.length
    if (bytes > maxBytes)
      throw new TaskmillError(`the answer has more than ${maxBytes} bytes`, { code: 'unexpected_answer' })
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}

function decoded(name: string, text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // not JSON
  }
  throw new TaskmillError(`${name} answered something else than JSON: is this the control service?`, {
    code: 'unexpected_answer',
  })
}

export function queryText(query: Query): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const each of value) params.append(name, each)
    else if (value !== undefined) params.append(name, String(value))
  }
  return params.size === 0 ? '' : `?${params}`
}

/** A variable of the environment. Browsers have none. */
function variable(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Readonly<Record<string, string | undefined>> } }
  const value = process?.env?.[name]
  return value === '' ? undefined : value
}

function baseOf(url: string): string {
  const socket = plainSocketUrl(url)
  if (socket !== undefined && 'Bun' in globalThis) return socket
  if (socket !== undefined) throw new TypeError(`url: only Bun can call a Unix socket, got ${JSON.stringify(url)}`)
  const isBase = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol) && !/[?#]/.test(url)
  if (isBase) return url.replace(/\/+$/, '')
  throw new TypeError(`url: expected an http: or https: address without query, got ${JSON.stringify(url)}`)
}

/** The limit of a timer. */
const MAX_TIMER_MS = 2 ** 31 - 1

function milliseconds(name: string, value: number | undefined, otherwise: number): number {
  if (value === undefined) return otherwise
  if (value >= 0 && value <= MAX_TIMER_MS) return value
  throw new TypeError(`${name}: expected milliseconds from 0 to ${MAX_TIMER_MS}, got ${value}`)
}
