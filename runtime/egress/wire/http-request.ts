/**
 * The head of an HTTP/1 request, read strictly. Pure. Source: RFC 9112.
 *
 * A head that another program may read differently is malformed: two `Host` or `Content-Length` headers, both
 * `Content-Length` and `Transfer-Encoding`, a line end without CR, a line that continues the one before, a space before a
 * colon. What is forwarded is written anew from what was read (`http-forward.ts`).
 */
import { type Authority, authorityOf, isSameHost } from '../../plan/authority.ts'
import { Malformed } from './malformed.ts'

/** Maximum bytes of the head of a request or an answer. */
export const MAX_HEAD_BYTES = 32 * 1024

/** Maximum number of headers. */
export const MAX_HEADERS = 128

export const HEAD_END = '\r\n\r\n'

const HTTP_PORT = 80

export interface Header {
  readonly name: string
  /** In lower case. */
  readonly key: string
  readonly value: string
}

export interface RequestHead {
  readonly method: string
  readonly target: string
  readonly minorVersion: 0 | 1
  readonly headers: readonly Header[]
}

/** The length of a body, in bytes; `chunked` if the body says where it ends. */
export type BodyLength = number | 'chunked'

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const METHOD = /^[A-Z][A-Z-]{0,31}$/
const TARGET = /^[\x21\x22\x24-\x7e]+$/ // without "#"
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Whether a first line may be one of HTTP/1, so that the rest of the head is worth waiting for. */
export const isRequestLine = (line: string): boolean => /^[A-Z-]+ \S+ HTTP\/1\.[01]$/.test(line)

/** Parses `text`, the bytes before the empty line as Latin-1. Throws `Malformed`. */
export function readRequestHead(text: string): RequestHead {
  const [first, ...lines] = text.split('\r\n')
  const [, method, target, minor] = /^(\S+) (\S+) HTTP\/1\.([01])$/.exec(first!) ?? []
  if (minor === undefined) throw new Malformed('a first line that is none of HTTP/1')
  if (!METHOD.test(method!) || method === 'PRI') throw new Malformed('a method that is none')
  if (!TARGET.test(target!)) throw new Malformed('a target with a character that is not allowed')
  if (lines.length > MAX_HEADERS) throw new Malformed(`more than ${MAX_HEADERS} headers`)
  return { method: method!, target: target!, minorVersion: minor === '0' ? 0 : 1, headers: lines.map(headerOf) }
}

function headerOf(line: string): Header {
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(colon, 0))
  const value = line.slice(colon + 1).replace(/^[\t ]+|[\t ]+$/g, '')
  if (!TOKEN.test(name) || !VALUE.test(value)) throw new Malformed('a header with a character that is not allowed')
  return { name, key: name.toLowerCase(), value }
}

const valuesOf = ({ headers }: RequestHead, key: string): string[] =>
  headers.filter((header) => header.key === key).map(({ value }) => value)

/** The names in a header that has a list of them, in lower case. */
export const listOf = (head: RequestHead, key: string): string[] =>
  valuesOf(head, key)
    .flatMap((value) => value.split(','))
    .map((item) => item.trim().toLowerCase())
    .filter((item) => item !== '')

/** The target of CONNECT. Throws `Malformed`. */
export function connectTarget(head: RequestHead): Authority {
  const authority = authorityOf(head.target)
  if (authority === undefined) throw new Malformed('a target of CONNECT that is no host with a port')
  checkHost(head, authority, authority.port)
  if (bodyLengthOf(head) !== 0) throw new Malformed('CONNECT with a body')
  return authority
}

export interface PlainTarget extends Authority {
  /** Path and query. */
  readonly path: string
}

/** The target of a request for a URL. Throws `Malformed`. */
export function plainTarget(head: RequestHead): PlainTarget {
  const [, scheme, given, rest] = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/([^/?]*)(.*)$/.exec(head.target) ?? []
  if (scheme === undefined) throw new Malformed('a request without a URL: this is a proxy')
  if (scheme.toLowerCase() !== 'http') throw new Malformed(`a request for ${scheme}: use CONNECT`)
  const authority = authorityOf(given!, HTTP_PORT)
  if (authority === undefined) throw new Malformed('a URL without a host, or with a user')
  checkHost(head, authority, HTTP_PORT)
  return { ...authority, path: rest!.startsWith('/') ? rest! : `/${rest}` }
}

/** The target of a request in a tunnel, which has to be the one that the tunnel is for. Throws `Malformed`. */
export function tunnelledTarget(head: RequestHead, tunnel: Authority): PlainTarget {
  if (head.method === 'CONNECT' || !head.target.startsWith('/')) throw new Malformed('a target that is no path')
  if (valuesOf(head, 'host').length === 0) throw new Malformed('a request without Host')
  checkHost(head, tunnel, tunnel.port)
  return { ...tunnel, path: head.target }
}

/** At most one Host, which means the target. HTTP/1.0 and CONNECT may do without. */
function checkHost(head: RequestHead, target: Authority, defaultPort: number): void {
  const values = valuesOf(head, 'host')
  if (values.length > 1) throw new Malformed('two Host headers')
  if (values.length === 0) {
    if (head.minorVersion === 1 && head.method !== 'CONNECT') throw new Malformed('a request without Host')
    return
  }
  const found = authorityOf(values[0]!, defaultPort)
  if (found === undefined || found.port !== target.port || !isSameHost(found.host, target.host)) {
    throw new Malformed('a Host header that is not the host of the request')
  }
}

/** Throws `Malformed`. */
export function bodyLengthOf(head: RequestHead): BodyLength {
  const lengths = valuesOf(head, 'content-length')
  const codings = valuesOf(head, 'transfer-encoding')
  if (codings.length > 0) {
    if (lengths.length > 0) throw new Malformed('Content-Length with Transfer-Encoding')
    if (head.minorVersion === 0) throw new Malformed('Transfer-Encoding in HTTP/1.0')
    if (codings.length > 1 || codings[0]!.toLowerCase() !== 'chunked') {
      throw new Malformed('a Transfer-Encoding other than chunked')
    }
    return 'chunked'
  }
  if (lengths.length > 1) throw new Malformed('two Content-Length headers')
  const [length = '0'] = lengths
  if (!/^\d{1,15}$/.test(length)) throw new Malformed('a Content-Length that is no number')
  return Number(length)
}

/** 16 bytes in base64. Source: RFC 6455, 4.1. */
const WEBSOCKET_KEY = /^[A-Za-z0-9+/]{21}[AQgw]==$/

/** The key of a request for a WebSocket. Undefined for other requests. */
export function websocketKey(head: RequestHead): string | undefined {
  const keys = valuesOf(head, 'sec-websocket-key')
  const isAsked =
    head.method === 'GET' &&
    head.minorVersion === 1 &&
    listOf(head, 'connection').includes('upgrade') &&
    listOf(head, 'upgrade').join() === 'websocket' &&
    bodyLengthOf(head) === 0
  return isAsked && keys.length === 1 && WEBSOCKET_KEY.test(keys[0]!) ? keys[0] : undefined
}
