/** The requests of the page to control, all relative to its address. The browser adds the cookie of the session. */
import type { RequestKey } from '../model/request-key.ts'
import { addressOf, takeEarly } from './early-work.ts'

/** An answer that is an error, with the text of the service. Status 0: there was no answer. */
export class ApiError extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

let onUnauthorized: () => void = () => {}

/** Calls `ask` when an answer says that nobody is signed in. */
export const whenUnauthorized = (ask: () => void): void => {
  onUnauthorized = ask
}

/** The address of the service as commands name it, without a final slash. */
export const serviceUrl = (): string => new URL('.', location.href).href.replace(/\/$/, '')

/** Returns the answer without reading its body. Throws `ApiError`, also if the service cannot be reached. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const early = init.method === undefined ? takeEarly(path) : undefined
  let response: Response
  try {
    response = await (early ?? fetch(addressOf(path), init))
  } catch (error) {
    if (init.signal?.aborted) throw error
    throw new ApiError(0, 'the service cannot be reached')
  }
  if (response.ok) return response
  if (response.status === 401) onUnauthorized()
  throw new ApiError(response.status, await errorText(response))
}

export const getJson = async <T>(path: string, signal?: AbortSignal): Promise<T> =>
  (await request(path, signal === undefined ? {} : { signal })).json() as Promise<T>

/** Posts a request that creates a graph. Calls before the answer share an idempotency key. Throws `ApiError`. */
export async function postOnce<T>(key: RequestKey, path: string, body: string): Promise<T> {
  const headers = { 'idempotency-key': key.of(`${path} ${body}`) }
  try {
    const answer = (await (await request(path, { method: 'POST', body, headers })).json()) as T
    key.answered()
    return answer
  } catch (error) {
    // A refused request has created nothing. After a fault of the service or of a proxy, that is unknown.
    if (error instanceof ApiError && error.status >= 400 && error.status < 500) key.answered()
    throw error
  }
}

/** Yields the text of a stream in chunks as they arrive. */
export async function* textOf(response: Response): AsyncGenerator<string> {
  if (response.body === null) return
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      yield decoder.decode(value, { stream: true })
    }
  } finally {
    void reader.cancel().catch(() => {})
  }
}

/** The last event that an answer includes. A stream continues there. */
export const positionOf = (response: Response): string => response.headers.get('x-event-seq') ?? '0'

async function errorText(response: Response): Promise<string> {
  const text = await response.text()
  try {
    return (JSON.parse(text) as { error: string }).error
  } catch {
    return `the answer has status ${response.status} and is not that of taskmill: is a proxy between?`
  }
}
