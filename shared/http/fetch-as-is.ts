/**
 * `fetch` that also requests a path with a segment `.` or `..`, which a task id may be. URL parsers resolve such segments,
 * escaped or not, so `fetch` would request another path. Node's client sends the path unchanged. It uses no proxy.
 * It is loaded for such a path only: that takes 6 ms of CPU time.
 *
 * Redirects are answers, and are not followed: a POST would arrive as a GET, or its body at another service.
 */
import type { IncomingMessage } from 'node:http'

/** Whether a URL parser would change the path of `url`. */
const hasDotSegment = (url: string): boolean => /\/\.\.?(?=[/?]|$)/.test(url)

export interface RequestAsIs {
  readonly method: string
  readonly headers: Headers
  readonly signal: AbortSignal
  readonly body?: Uint8Array
  /** Path of the Unix socket to connect to. */
  readonly unix?: string
  /** Connects to the service itself, whatever `HTTP_PROXY` says. */
  readonly proxy?: false
}

/** `url` is an http: or https: address. */
export const fetchAsIs = (url: string, init: RequestAsIs): Promise<Response> =>
  hasDotSegment(url) ? requestAsIs(url, init) : fetch(url, { ...init, redirect: 'manual' })

async function requestAsIs(url: string, { method, headers, signal, body: sent, unix }: RequestAsIs): Promise<Response> {
  const [, address = '', path = ''] = /^([^/]*\/\/[^/]*)(.*)$/.exec(url) ?? []
  const { protocol, hostname, port } = new URL(address)
  const { request } = protocol === 'https:' ? await import('node:https') : await import('node:http')
  const { Readable } = await import('node:stream')
  const isEmptyPost = method === 'POST' && sent === undefined
  const options = {
    ...{ method, signal, port, path, hostname: hostname.replace(/^\[|\]$/g, '') },
    ...(unix !== undefined && { socketPath: unix }),
    headers: { ...Object.fromEntries(headers), ...(isEmptyPost && { 'content-length': '0' }) },
  }
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    // If the signal has fired, its reason says more than the error.
    const fail = (error: Error) => reject(signal.aborted ? signal.reason : error)
    request(options, resolve).on('error', fail).end(sent)
  })
  const { statusCode = 0, headers: answered } = answer
  signal.addEventListener('abort', () => answer.destroy(signal.reason), { once: true })
  const body = Readable.toWeb(answer) as unknown as ReadableStream<Uint8Array>
  const hasBody = ![204, 205, 304].includes(statusCode)
  const copied = Object.entries(answered).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : []))
  return new Response(hasBody ? body : null, { status: statusCode, headers: Object.fromEntries(copied) })
}
