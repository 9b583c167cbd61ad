/**
 * Calls to our services with ofetch, which joins addresses, merges headers and wraps `fetch`. Its retries are off, because
 * they would hide the first fault and repeat its time limit. Its errors are off, too: every failure, also a proxy's error
 * page or no answer at all, is one `CallFailed` that names it. Its timeout ends with the headers of an answer, so ours is a
 * signal. ofetch's share of the CPU time of a call is below the noise (10,000 calls of 50 µs).
 */
import { createFetch } from 'ofetch'
import { Expected, type Setting } from '../settings/flags.ts'
import { readBounded } from '../streams/bounded-output.ts'
import { isObject, jsonOrUndefined } from '../text/json.ts'
import { type CalledService, faultText, isTimeout, neverConnected } from './connection-fault.ts'
import { fetchAsIs, type RequestAsIs } from './fetch-as-is.ts'
import { shownUrl } from './shown-url.ts'
import { fetchTarget, plainSocketUrl } from './socket-address.ts'

/** Milliseconds for a request that the service answers at once. */
export const REQUEST_TIMEOUT_MS = 60_000

/** Bytes of an answer. Our services send less, so a longer answer comes from something else. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

/** Bytes of an answer with a whole graph and twice the ids of its tasks. */
export const MAX_ACTION_ANSWER_BYTES = 4 * MAX_ANSWER_BYTES

/** Status of a success without a body. */
const NO_CONTENT = 204

const UNAUTHORIZED = 401
const NOT_FOUND = 404

/** Characters of the address of a redirect in an error. */
const MAX_SHOWN_LOCATION = 200

/** Characters of the answer in a `CallFailed`. */
const MAX_REPEATED_BODY = 64 * 1024

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: Uint8Array
  /** Headers in addition to those of every call. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly timeoutMs?: number
  readonly maxAnswerBytes?: number
  /** Aborts the call. */
  readonly signal?: AbortSignal | undefined
}

/** A call with a body of any length. */
export interface Upload {
  readonly method: 'PUT'
  readonly path: string
  readonly body: ReadableStream<Uint8Array>
  /** Media type of the body. */
  readonly type: string
  readonly headers?: Readonly<Record<string, string>>
  /** Aborts the call, which has no time limit. */
  readonly signal: AbortSignal
}

/** A failed call, with its HTTP answer if there was one. */
export class CallFailed extends Error {
  override name = 'CallFailed'
  /** Status of the HTTP answer; 0 without one. */
  readonly statusCode: number
  /** Body of the HTTP answer, at most its first 64 KiB; empty without one. */
  readonly body: string
  /** The request was sent, so the service may have executed it. */
  readonly wasSent: boolean
  /** The cause in a few words, without address and remedy: `connection refused`, `it answered 503`. */
  readonly fault: string
  /** The `Content-Range` of the HTTP answer, which tells the size of a file that lacks the part. */
  readonly contentRange: string | undefined
  constructor(
    message: string,
    answer: {
      readonly statusCode?: number
      readonly body?: string
      readonly contentRange?: string | undefined
      readonly wasSent?: boolean
      readonly fault?: string
    } = {},
  ) {
    super(message)
    this.statusCode = answer.statusCode ?? 0
    this.fault = answer.fault ?? (this.statusCode === 0 ? message : `it answered ${this.statusCode}`)
    this.body = answer.body ?? ''
    this.contentRange = answer.contentRange
    this.wasSent = answer.wasSent ?? true
  }
}

/** The service did not answer in time. */
export class NoAnswerInTime extends CallFailed {
  override name = 'NoAnswerInTime'
}

interface Exchange {
  readonly method: string
  readonly body: Uint8Array | undefined
  readonly headers: Readonly<Record<string, string>> | undefined
  readonly timeoutMs: number
  readonly maxAnswerBytes: number
  readonly signal: AbortSignal | undefined
}

interface Sending {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  readonly body?: Uint8Array | ReadableStream<Uint8Array>
  /** Media type of the body. Default: JSON. */
  readonly type?: string
  /** Bun gives up after five silent minutes, which a stream may have. */
  readonly timeout?: false
}

export class ServiceClient {
  /** Without a final slash. */
  readonly baseUrl: string
  /** The same without user and password. */
  readonly shownUrl: string
  readonly #fetch: ReturnType<typeof createFetch>
  readonly #service: CalledService
  readonly #hasToken: boolean

  constructor(service: CalledService, { url, token }: { url: string; token: string | undefined }) {
    this.#service = service
    this.baseUrl = url.replace(/\/+$/, '')
    this.shownUrl = shownUrl(this.baseUrl)
    this.#hasToken = Boolean(token)
    const headers = { ...(token && { authorization: `Bearer ${token}` }) }
    const { origin, socket } = fetchTarget(this.baseUrl)
    const send = (to: string, init: RequestAsIs) => fetchAsIs(to, { ...init, ...socket })
    this.#fetch = createFetch({
      fetch: send as typeof fetch,
      defaults: { baseURL: origin, headers, retry: 0, ignoreResponseError: true, responseType: 'stream' },
    })
  }

  /** The body of a successful answer, which must be a JSON object; empty for a 204. Throws `CallFailed`. */
  async call(call: Call): Promise<object> {
    return (await this.#answer(call, isObject, 'a JSON object')).body
  }

  /** The body of a successful answer, which must be a JSON object, and its headers. Throws `CallFailed`. */
  answer(call: Call): Promise<{ readonly body: object; readonly headers: Headers }> {
    return this.#answer(call, isObject, 'a JSON object')
  }

  /** The array of a successful answer, and its headers. Throws `CallFailed`. */
  list(call: Call): Promise<{ readonly body: readonly unknown[]; readonly headers: Headers }> {
    return this.#answer(call, (value): value is readonly unknown[] => Array.isArray(value), 'a JSON array')
  }

  /**
   * A successful answer as it arrives. `signal` also ends the reading. Throws `CallFailed`; reading throws whatever broke the
   * connection.
   */
  async open(path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal) {
    const { stream, ...answer } = await this.openAny('GET', path, headers, signal)
    if (stream !== undefined) return { ...answer, stream }
    throw this.#refused('GET', path, { statusCode: answer.status, body: '' }, '', answer.headers)
  }

  /** The same for a GET or a HEAD, which has no stream. */
  async openAny(
    method: 'GET' | 'HEAD',
    path: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<{
    readonly status: number
    readonly headers: Headers
    readonly stream: ReadableStream<Uint8Array> | undefined
  }> {
    const sent = await this.#send(path, { method, headers, signal, timeout: false }).catch((error) => {
      throw this.#unreachable(error, 0)
    })
    const { response, stream } = sent
    if (response.ok) return { status: response.status, headers: response.headers, stream }
    const { text } = stream ? await readBounded(stream, MAX_REPEATED_BODY, { stopAtLimit: true }) : { text: '' }
    throw this.#refused(method, path, { statusCode: response.status, body: text }, text, response.headers)
  }

  /**
   * Sends a body as it comes, as fast as the service takes it. The body of a successful answer, which must be a JSON object.
   * Throws `CallFailed`, also if the body cannot be read. A refusal may come before all was sent.
   */
  async upload({ method, path, body, type, headers, signal }: Upload): Promise<object> {
    const accepting = { accept: 'application/json', ...headers }
    const sending = { method, headers: accepting, signal, body, type, timeout: false } as const
    const { response, stream } = await this.#send(path, sending).catch((error) => {
      throw this.#unreachable(error, 0)
    })
    const { text } = stream ? await readBounded(stream, MAX_REPEATED_BODY, { stopAtLimit: true }) : { text: '' }
    const value = jsonOrUndefined(text)
    if (response.ok && isObject(value)) return value
    throw this.#refused(method, path, { statusCode: response.status, body: text }, text, response.headers)
  }

  async #answer<T extends object>(
    { method, path, body, headers, timeoutMs = REQUEST_TIMEOUT_MS, maxAnswerBytes = MAX_ANSWER_BYTES, signal }: Call,
    isExpected: (value: unknown) => value is T,
    expected: string,
  ): Promise<{ readonly body: T; readonly headers: Headers }> {
    const url = this.shownUrl + path
    const request = { method, body, headers, timeoutMs, maxAnswerBytes, signal }
    const { status, text, truncated, headers: answered } = await this.#exchange(path, request)
    const answer = { statusCode: status, body: text.slice(0, MAX_REPEATED_BODY) }
    if (truncated) throw new CallFailed(`${method} ${url} answered with more than ${maxAnswerBytes} bytes`, answer)
    if (status < 200 || status > 299) throw this.#refused(method, path, answer, text, answered)
    if (status === NO_CONTENT) return { body: {} as T, headers: answered }
    const value = jsonOrUndefined(text)
    if (!isExpected(value)) {
      const what = answered.get('content-type') ?? 'something else'
      throw new CallFailed(
        `${method} ${url} answered with ${what} instead of ${expected}: is this the ${this.#service.name} service?`,
        answer,
      )
    }
    return { body: value, headers: answered }
  }

  async #exchange(path: string, { method, body, headers: others, timeoutMs, maxAnswerBytes, signal }: Exchange) {
    const inTime = AbortSignal.timeout(timeoutMs)
    const ending = signal === undefined ? inTime : AbortSignal.any([signal, inTime])
    const accepting = { accept: 'application/json', ...others }
    try {
      const sending = { method, headers: accepting, signal: ending, ...(body !== undefined && { body }) }
      const { response, stream } = await this.#send(path, sending)
      const read = stream
        ? await readBounded(stream, maxAnswerBytes, { stopAtLimit: true })
        : { text: '', truncated: false }
      return { status: response.status, headers: response.headers, ...read }
    } catch (error) {
      throw this.#unreachable(error, timeoutMs)
    }
  }

  #unreachable(error: unknown, timeoutMs: number): CallFailed {
    const fault = faultText(error, { service: this.#service, timeoutMs })
    const message = `cannot reach the ${this.#service.name} service at ${this.shownUrl}: ${fault}`
    const short = faultText(error, { timeoutMs })
    if (isTimeout(error)) return new NoAnswerInTime(message, { fault: short })
    return new CallFailed(message, { wasSent: !neverConnected(error), fault: short })
  }

  #refused(
    method: string,
    path: string,
    answered: { readonly statusCode: number; readonly body: string },
    text: string,
    headers: Headers,
  ): CallFailed {
    const answer = { ...answered, contentRange: headers.get('content-range') ?? undefined }
    const value = jsonOrUndefined(text)
    const reason = isObject(value) && 'error' in value ? errorText(value.error) : ''
    const remedy = this.#remedyFor(answer.statusCode, headers)
    // Our other services have the same words for a path that they do not have.
    const isUnknownPath = reason.startsWith(`not found: ${method} `)
    if (reason !== '' && !isUnknownPath) return new CallFailed(`${reason}${remedy}`, answer)
    const doubt = answer.statusCode === NOT_FOUND ? `: is this the ${this.#service.name} service?` : ''
    return new CallFailed(`${method} ${this.shownUrl}${path} answered ${answer.statusCode}${remedy}${doubt}`, answer)
  }

  #remedyFor(status: number, headers: Headers): string {
    const { tokenVariable, urlVariable } = this.#service
    if (status === UNAUTHORIZED) return ` (${this.#hasToken ? 'correct' : 'set'} ${tokenVariable})`
    const to = status > 299 && status < 400 ? headers.get('location') : null
    if (to === null) return ''
    const shown = shownUrl(to.slice(0, MAX_SHOWN_LOCATION))
    return `: a redirect to ${JSON.stringify(shown)}, which is not followed (set ${urlVariable} to where it leads)`
  }

  async #send(path: string, { headers, body, type = 'application/json', ...others }: Sending) {
    const sent = body === undefined ? { headers } : { headers: { ...headers, 'content-type': type }, body }
    const options = others as Omit<typeof others, 'timeout'> // ofetch passes it on, but knows only numbers
    const response = await this.#fetch.raw(path, { ...options, ...sent })
    return { response, stream: response._data as ReadableStream<Uint8Array> | undefined }
  }
}

/** A setting with the base URL of a service. */
export const httpUrl = (setting: { variable: string; default: string; help: string }): Setting<string> => ({
  ...setting,
  value: 'url',
  absent: '',
  parse(text) {
    const socket = plainSocketUrl(text)
    if (socket !== undefined) return socket
    const url = URL.parse(text)
    const isHttp = url !== null && (url.protocol === 'http:' || url.protocol === 'https:')
    const isBase = isHttp && !/[?#]/.test(url.href)
    return isBase
      ? url.href
      : new Expected(`an http: or https: address without query, such as ${setting.default}, or unix:/path`)
  },
})

/** The error text of an answer: `{error: "text"}` in control, `{error: {message: "text"}}` in others. */
function errorText(error: unknown): string {
  if (typeof error === 'string') return error
  const message = (error as { message?: unknown } | null)?.message
  return typeof message === 'string' ? message : ''
}
