/**
 * One POST to an address from an untrusted caller.
 *
 * `post` resolves the host name, checks the address, and connects to the checked address. So a name that resolves to a
 * private address a moment later (DNS rebinding) gains nothing. `fetch` cannot do that, so `post` speaks HTTP over its
 * own socket. It follows no redirect, uses no proxy, and reads only the status of the answer.
 */
import { lookup } from 'node:dns/promises'
import { connect as connectPlain, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { unlessAborted } from '../../shared/unless-aborted.ts'
import { isPublicAddress } from './public-address.ts'

/** `public` allows only addresses of the public internet. */
export type CallbackPolicy = 'public' | 'any'

/** Bytes of an answer that are searched for its status line. */
const MAX_ANSWER_BYTES = 16 * 1024

/** The address must not be called. */
export class NotAllowed extends Error {
  override name = 'NotAllowed'
  constructor(host: string, addresses: readonly string[]) {
    const which = addresses.includes(host) ? host : `${host} (${addresses.join(', ')})`
    super(`${which} is no public address (allow it with --callback-policy any)`)
  }
}

export interface Post {
  readonly url: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
  readonly policy: CallbackPolicy
  /** Cancels the request, also during the DNS lookup. */
  readonly signal: AbortSignal
}

/** Returns the status of the answer. Throws `NotAllowed`, or the error of the connection. */
export async function post({ url: text, body, headers, policy, signal }: Post): Promise<number> {
  const url = new URL(text)
  const host = hostOf(url)
  const gaveUp = () => new Error('no answer in time')
  const address = await unlessAborted(addressOf(host, policy), signal, gaveUp)
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

/** The host of a URL. An IPv6 address has no brackets. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

/** An allowed address of `host`. Throws `NotAllowed`. */
async function addressOf(host: string, policy: CallbackPolicy): Promise<string> {
  const addresses = isIP(host) === 0 ? (await lookup(host, { all: true })).map(({ address }) => address) : [host]
  const allowed = policy === 'any' ? addresses : addresses.filter(isPublicAddress)
  if (allowed.length > 0) return allowed[Math.floor(Math.random() * allowed.length)]!
  throw new NotAllowed(host, addresses)
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
  const to = { host: address, port: Number(url.port) || (isTls ? 443 : 80) }
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
