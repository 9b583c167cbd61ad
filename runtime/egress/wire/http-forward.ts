/**
 * Heads as the proxy sends them on. Pure.
 *
 * Each connection carries one request: the head says `Connection: close` both ways. So no bytes after the body of a request
 * can become another request that was not checked.
 */
import { PROXY_HEADERS } from '../../../shared/request/request-rule.ts'
import { authorityText } from '../../plan/authority.ts'
import { bodyLengthOf, type Header, listOf, type PlainTarget, type RequestHead, websocketKey } from './http-request.ts'
import { Malformed } from './malformed.ts'

const HTTP_PORT = 80
const HTTPS_PORT = 443

/**
 * The head of a request as the server gets it, in Latin-1, with the headers `added` in place of its own ones of these names.
 * Throws `Malformed`.
 */
export function forwardedHead(
  head: RequestHead,
  target: PlainTarget,
  added: readonly Header[] = [],
  isTls = false,
): string {
  const length = bodyLengthOf(head)
  const nominated = new Set(listOf(head, 'connection'))
  for (const key of ['host', 'content-length', 'transfer-encoding']) {
    if (nominated.has(key)) throw new Malformed(`Connection with ${key}`)
  }
  for (const { key } of added) nominated.add(key)
  const isKept = ({ key }: Header) => !PROXY_HEADERS.has(key) && !nominated.has(key)
  const lines = [
    `${head.method} ${target.path} HTTP/1.${head.minorVersion}`,
    `Host: ${authorityText(target, isTls ? HTTPS_PORT : HTTP_PORT)}`,
    ...[...head.headers.filter(isKept), ...added].map(({ name, value }) => `${name}: ${value}`),
    ...(length === 'chunked' ? ['Transfer-Encoding: chunked'] : []),
    ...(length !== 'chunked' && head.headers.some(({ key }) => key === 'content-length')
      ? [`Content-Length: ${length}`]
      : []),
    ...(websocketKey(head) === undefined ? ['Connection: close'] : ['Connection: Upgrade', 'Upgrade: websocket']),
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}

export interface AnswerHead {
  readonly status: number
  /** The head as the client gets it, in Latin-1, with the empty line. */
  readonly text: string
}

const SWITCHING_PROTOCOLS = 101

/**
 * The head of an answer; `text` is what comes before the empty line, as Latin-1. `key` is that of a request for a WebSocket.
 * Throws `Malformed`.
 */
export function answerHead(text: string, key: string | undefined): AnswerHead {
  const lines = text.split('\r\n')
  const status = Number(/^HTTP\/1\.[01] ([1-5]\d\d)(?: |$)/.exec(lines[0]!)?.[1])
  if (Number.isNaN(status)) throw new Malformed('an answer that is none of HTTP/1')
  if (status === SWITCHING_PROTOCOLS) {
    if (key === undefined) throw new Malformed('another protocol, which was not asked for')
    if (!isWebsocket(lines, key)) throw new Malformed('an answer to a request for a WebSocket that is none')
    return { status, text: `${text}\r\n\r\n` }
  }
  if (status < 200) return { status, text: `${text}\r\n\r\n` }
  const kept = lines.filter((line, i) => i === 0 || !/^(?:connection|keep-alive|proxy-connection)[ \t]*:/i.test(line))
  return { status, text: `${[...kept, 'Connection: close'].join('\r\n')}\r\n\r\n` }
}

/** Whether a server speaks WebSocket, and means this request: it has computed the answer to the key. Source: RFC 6455, 4.1. */
function isWebsocket(lines: readonly string[], key: string): boolean {
  const accept = new Bun.CryptoHasher('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  const valuesOf = (name: string) =>
    lines.flatMap((line) => (line.toLowerCase().startsWith(`${name}:`) ? [line.slice(name.length + 1).trim()] : []))
  return (
    valuesOf('upgrade').join().toLowerCase() === 'websocket' &&
    /(?:^|,)[ \t]*upgrade[ \t]*(?:,|$)/i.test(valuesOf('connection').join()) &&
    valuesOf('sec-websocket-accept').join() === accept
  )
}

const OWN_ANSWERS = {
  malformed: [400, 'Bad Request'],
  refused: [403, 'Forbidden'],
  failed: [502, 'Bad Gateway'],
} as const
export type AnswerKind = keyof typeof OWN_ANSWERS

/** An answer of the proxy itself. */
export function ownAnswer(kind: AnswerKind, message: string): string {
  const [status, reason] = OWN_ANSWERS[kind]
  const body = `taskmill: ${message}\n`
  return [
    `HTTP/1.1 ${status} ${reason}`,
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}

export const CONNECTED = 'HTTP/1.1 200 Connection established\r\n\r\n'
