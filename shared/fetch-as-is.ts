/**
 * `fetch` for a path that has `.` or `..` as one of its names: those of tasks may be just that. Every URL parser takes
 * them for steps in a tree, escaped or not, and `fetch` asks for something else; Node's client sends a path as it is. It asks
 * no proxy, and follows no redirection.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { Readable } from 'node:stream'

/** Whether `path` is another one for whoever parses it as part of a URL. */
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
    // Of a signal that has fired its own reason says more.
    const fail = (error: Error) => reject(signal.aborted ? signal.reason : error)
    request(options, resolve).on('error', fail).end()
  })
  const { statusCode = 0, headers: answered } = answer
  signal.addEventListener('abort', () => answer.destroy(signal.reason), { once: true })
  const body = Readable.toWeb(answer) as unknown as ReadableStream<Uint8Array>
  const hasBody = ![204, 205, 304].includes(statusCode)
  const type = answered['content-type']
  return new Response(hasBody ? body : null, {
    status: statusCode,
    headers: type === undefined ? {} : { 'content-type': type },
  })
}
