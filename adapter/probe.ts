/** One look at a service: is it there and ready, is something else there, or nobody? */
import { readBounded } from '../shared/bounded-output.ts'
import { messageOf, systemCodeOf } from '../shared/errors.ts'

export interface Target {
  /** Without a slash at its end. */
  readonly baseUrl: string
  readonly path: '/health' | '/readyz'
  /** Sent as `Authorization: Bearer`, unless empty. */
  readonly token: string
}

/** `fault` says what is wrong in words, and is empty when nothing is. */
export type Probe =
  | { readonly outcome: 'ready'; readonly statusCode: number; readonly fault: ''; readonly body: string }
  /** An HTTP answer that is not that of a ready service. */
  | { readonly outcome: 'answers'; readonly statusCode: number; readonly fault: string; readonly body: string }
  /** The address takes connections, or swallows them, and does not answer. */
  | { readonly outcome: 'silent'; readonly fault: string }
  /** Nobody listens. */
  | { readonly outcome: 'absent'; readonly fault: string }

/** Milliseconds for one look. A service of ours answers within one; a network between us takes more. */
export const PROBE_TIMEOUT_MS = 5_000

/** Bytes of an answer that are read; that of a ready service has a hundred. */
const MAX_ANSWER_BYTES = 64 * 1024

export async function probe({ baseUrl, path, token }: Target, timeoutMs = PROBE_TIMEOUT_MS): Promise<Probe> {
  const url = baseUrl + path
  try {
    const response = await fetch(url, {
      headers: { accept: 'application/json', ...(token !== '' && { authorization: `Bearer ${token}` }) },
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    })
    const { text: body } = response.body
      ? await readBounded(response.body, MAX_ANSWER_BYTES, { stopAtLimit: true })
      : { text: '' }
    const { status: statusCode } = response
    if (!response.ok) return { outcome: 'answers', statusCode, fault: `GET ${url} answered ${statusCode}`, body }
    if (isJsonObject(body)) return { outcome: 'ready', statusCode, fault: '', body }
    const what = response.headers.get('content-type') ?? 'something else'
    return { outcome: 'answers', statusCode, fault: `GET ${url} answered with ${what} instead of a JSON object`, body }
  } catch (error) {
    return { ...withoutAnswer(error, timeoutMs, url) }
  }
}

function withoutAnswer(error: unknown, timeoutMs: number, url: string): Probe {
  if ((error as Error).name === 'TimeoutError') {
    return { outcome: 'silent', fault: `GET ${url}: no answer within ${Math.round(timeoutMs)} ms` }
  }
  switch (systemCodeOf(error)) {
    case 'ECONNREFUSED':
    case 'ConnectionRefused':
      return { outcome: 'absent', fault: `GET ${url}: connection refused` }
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return { outcome: 'absent', fault: `GET ${url}: no such host` }
    case 'ECONNRESET':
    case 'ConnectionClosed':
      // The port of a container takes connections before its service does.
      return { outcome: 'silent', fault: `GET ${url}: the connection was closed without an answer` }
    default:
      return { outcome: 'silent', fault: `GET ${url}: ${messageOf(error)}` }
  }
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return value !== null && typeof value === 'object' && !Array.isArray(value)
  } catch {
    return false
  }
}
