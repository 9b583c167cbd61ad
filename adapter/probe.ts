/** One look at a service: is it there and ready, is something else there, or nobody? */
import { readBounded } from '../shared/bounded-output.ts'
import { faultText, neverConnected } from '../shared/connection-fault.ts'
import { isObject, jsonOrUndefined } from '../shared/json.ts'

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
    if (isObject(jsonOrUndefined(body))) return { outcome: 'ready', statusCode, fault: '', body }
    const what = response.headers.get('content-type') ?? 'something else'
    return { outcome: 'answers', statusCode, fault: `GET ${url} answered with ${what} instead of a JSON object`, body }
  } catch (error) {
    return withoutAnswer(error, timeoutMs, url)
  }
}

/** What closes a connection without an answer is there: the port of a container takes them before its service does. */
const withoutAnswer = (error: unknown, timeoutMs: number, url: string): Probe => ({
  outcome: neverConnected(error) ? 'absent' : 'silent',
  fault: `GET ${url}: ${faultText(error, { timeoutMs })}`,
})
