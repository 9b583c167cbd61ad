/**
 * Addresses of services on Unix sockets: `unix:/run/user/1000/control.sock`. Pure, also for browsers.
 *
 * The path is escaped as in a URL, so that lists of addresses can have spaces and commas between them.
 */

/** The address of the socket at the absolute `path`. */
export const socketUrl = (path: string): string => `unix:${path.split('/').map(encodeURIComponent).join('/')}`

/** The path is taken as it is: parsers of URLs would resolve dots in it. */
const SOCKET_URL = /^unix:(?:\/\/)?(\/(?!\/)[^?#]*)$/is

/** The path of the socket; undefined if `address` is no address of one. */
export function socketPathOf(address: string): string | undefined {
  const escaped = SOCKET_URL.exec(address)?.[1]
  if (escaped === undefined || escaped.endsWith('/')) return undefined
  try {
    const path = decodeURIComponent(escaped)
    return path.includes('\0') ? undefined : path
  } catch {
    return undefined // a malformed escape
  }
}

/** The same address in the form of `socketUrl`; undefined if `address` is no address of a socket. */
export function plainSocketUrl(address: string): string | undefined {
  const path = socketPathOf(address)
  return path === undefined ? undefined : socketUrl(path)
}

/** The host of requests over a socket. It only fills the URL and the header `Host`. */
const SOCKET_ORIGIN = 'http://localhost'

/** Where `fetch` sends the requests to `baseUrl`: what precedes the path, and Bun's option for a socket. */
export function fetchTarget(baseUrl: string): { readonly origin: string; readonly socket: { readonly unix?: string } } {
  const unix = socketPathOf(baseUrl)
  return unix === undefined ? { origin: baseUrl, socket: {} } : { origin: SOCKET_ORIGIN, socket: { unix } }
}
