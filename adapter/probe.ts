/** Probes an address: a ready service, something else, or nothing. `fetch`, not ofetch: redirects and errors are results. */

import { faultText, neverConnected } from '../shared/http/connection-fault.ts'
import { fetchTarget } from '../shared/http/socket-address.ts'
import { readBounded } from '../shared/streams/bounded-output.ts'
import { isObject, jsonOrUndefined } from '../shared/text/json.ts'

export interface Target {
  /** Without a final slash. */
  readonly baseUrl: string
  readonly path: '/health' | '/readyz'
  /** Sent as `Authorization: Bearer`, unless empty. */
  readonly token: string
}

/** `fault` tells what is wrong. Empty if nothing is. */
export type Probe =
  | { readonly outcome: 'ready'; readonly statusCode: number; readonly fault: ''; readonly body: string }
  /** An HTTP answer, but not that of a ready service. */
  | { readonly outcome: 'answers'; readonly statusCode: number; readonly fault: string; readonly body: string }
  /** Something accepts or drops connections, and does not answer. */
  | { readonly outcome: 'silent'; readonly fault: string }
  /** Nothing listens. */
  | { readonly outcome: 'absent'; readonly fault: string }

/** Milliseconds for a probe. Our services answer within one; a network may take more. */
export const PROBE_TIMEOUT_MS = 5_000

/** Bytes of an answer. A ready service sends about a hundred. */
const MAX_ANSWER_BYTES = 64 * 1024

export async function probe({ baseUrl, path, token }: Target, timeoutMs = PROBE_TIMEOUT_MS): Promise<Probe> {
  const url = baseUrl + path
  const { origin, socket } = fetchTarget(baseUrl)
  try {
    const response = await fetch(origin + path, {
      ...socket,
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

/** A closed connection without an answer is not absence: a container's port accepts connections before its service does. */
const withoutAnswer = (error: unknown, timeoutMs: number, url: string): Probe => ({
  outcome: neverConnected(error) ? 'absent' : 'silent',
  fault: `GET ${url}: ${faultText(error, { timeoutMs })}`,
})
