/**
 * One POST to an address from an untrusted caller.
 *
 * `post` connects to an address that the guard has checked. So a name that resolves to a private address a moment later
 * (DNS rebinding) gains nothing. It follows no redirect, uses no proxy, and reads only the status of the answer. It speaks
 * HTTP over its own socket: Bun limits the number of simultaneous `fetch` requests, which slow http tasks may use up.
 */
import { connect as connectPlain, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { unlessAborted } from '../../shared/process/unless-aborted.ts'
import { type AddressGuard, portOf } from '../outbound/address-guard.ts'

/** Bytes of an answer that are searched for its status line. */
const MAX_ANSWER_BYTES = 16 * 1024

export interface Post {
  readonly url: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
  readonly guard: AddressGuard
  /** Cancels the request, also during the DNS lookup. */
  readonly signal: AbortSignal
}

/** Returns the status of the answer. Throws `AddressRefused`, or the error of the connection. */
export async function post({ url: text, body, headers, guard, signal }: Post): Promise<number> {
  const url = new URL(text)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const gaveUp = () => new Error('no answer in time')
  const addresses = await unlessAborted(guard.addressesFor(url, signal), signal, gaveUp)
  const address = addresses[Math.floor(Math.random() * addresses.length)]!
  const lines = [
    `POST ${url.pathname}${url.search} HTTP/1.1`,
    `Host: ${url.host}`,
    'Connection: close',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ]
  const answer = statusOf({ url, host, address, request: `${lines.join('\r\n')}\r\n\r\n${body}` }, signal)
  return unlessAborted(answer, signal, gaveUp)
}

interface Exchange {
  readonly url: URL
  readonly host: string
  readonly address: string
  readonly request: string
}

function statusOf({ url, host, address, request }: Exchange, signal: AbortSignal): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const isTls = url.protocol === 'https:'
  const to = { host: address, port: portOf(url) }
  const socket = isTls ? connectTls({ ...to, ...(isIP(host) === 0 && { servername: host }) }) : connectPlain(to)
  const end = () => void socket.destroy()
  signal.addEventListener('abort', end, { once: true })
  let received = ''
  socket.once(isTls ? 'secureConnect' : 'connect', () => socket.write(request))
  socket.on('data', (bytes) => {
    received += bytes.toString('latin1')
    const status = statusIn(received)
    if (status !== undefined) resolve(status)
    else if (received.length > MAX_ANSWER_BYTES) reject(new Error('the answer is no HTTP'))
  })
  socket.on('error', reject)
  socket.on('close', () => reject(new Error('the connection was closed without an answer')))
  return promise.finally(() => {
    signal.removeEventListener('abort', end)
    socket.destroy()
  })
}

/** The status of the first answer that is not 1xx; undefined until it has arrived. */
function statusIn(text: string): number | undefined {
  for (let from = 0; ; ) {
    const status = /^HTTP\/1\.[01] (\d{3})[ \r]/.exec(text.slice(from, from + 64))?.[1]
    if (status === undefined) return undefined
    if (!status.startsWith('1')) return Number(status)
    const end = text.indexOf('\r\n\r\n', from)
    if (end < 0) return undefined
    from = end + 4
  }
}
