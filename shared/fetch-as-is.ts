/**
 * `fetch` for a path with a segment `.` or `..`, which a task id may be. URL parsers resolve such segments, escaped or not,
 * so `fetch` would request another path. Node's client sends the path unchanged. It uses no proxy and follows no redirect.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { Readable } from 'node:stream'

/** Whether a URL parser would change `path`. */
export const hasDotSegment = (path: string): boolean => /\/\.\.?(?=[/?]|$)/.test(path)

/** `baseUrl` is an http: or https: address; the request has no body. */
export async function fetchAsIs(
  baseUrl: string,
  path: string,
  { method, headers, signal }: { method: string; headers: Readonly<Record<string, string>>; signal: AbortSignal },
): Promise<Response> {
  const { protocol, hostname, port, pathname } = new URL(baseUrl)
  const request = protocol === 'https:' ? httpsRequest : httpRequest
  const options = {
    ...{ method, signal, port, hostname: hostname.replace(/^\[|\]$/g, '') },
    path: pathname.replace(/\/$/, '') + path,
    headers: { ...headers, ...(method === 'POST' && { 'content-length': '0' }) },
  }
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    // If the signal has fired, its reason says more than the error.
    const fail = (error: Error) => reject(signal.aborted ? signal.reason : error)
    request(options, resolve).on('error', fail).end()
  })
  const { statusCode = 0, headers: answered } = answer
  signal.addEventListener('abort', () => answer.destroy(signal.reason), { once: true })
  const body = Readable.toWeb(answer) as unknown as ReadableStream<Uint8Array>
  const hasBody = ![204, 205, 304].includes(statusCode)
  const sent = Object.entries(answered).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : []))
  return new Response(hasBody ? body : null, { status: statusCode, headers: Object.fromEntries(sent) })
}
