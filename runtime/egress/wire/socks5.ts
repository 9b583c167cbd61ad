/**
 * The messages of SOCKS5, without passwords. Pure. Source: RFC 1928.
 *
 * A client first offers methods, and then asks for one connection.
 */
import { type Host, hostOf } from '../../../shared/egress/host.ts'
import { ipv4, parseIpv6 } from '../../../shared/egress/ip-address.ts'
import { Malformed } from './malformed.ts'

export const SOCKS5 = 5

const WITHOUT_PASSWORD = 0
const NO_METHOD = 0xff
const CONNECT = 1
const ADDRESS_BYTES: Readonly<Record<number, number>> = { 1: 4, 4: 16 }
const NAME = 3

/** Values of the answer to a request. */
export const SOCKS_REPLY = {
  connected: 0,
  failed: 1,
  refusedByRules: 2,
  unreachable: 4,
  refused: 5,
  unknownCommand: 7,
} as const
export type SocksReply = keyof typeof SOCKS_REPLY

export interface Greeting {
  readonly offersNoPassword: boolean
  /** Bytes of the message. */
  readonly length: number
}

/** The first message. Undefined if more bytes are needed. Throws `Malformed`. */
export function readGreeting(bytes: Uint8Array): Greeting | undefined {
  if (bytes.length > 0 && bytes[0] !== SOCKS5) throw new Malformed('no SOCKS5')
  const length = 2 + (bytes[1] ?? 0)
  if (bytes.length < 2 || bytes.length < length) return undefined
  return { offersNoPassword: bytes.subarray(2, length).includes(WITHOUT_PASSWORD), length }
}

export interface SocksRequest {
  /** Undefined if the client asks for something else than a connection. */
  readonly target: { readonly host: Host; readonly port: number } | undefined
  /** Bytes of the message. */
  readonly length: number
}

/** The second message. Undefined if more bytes are needed. Throws `Malformed`. */
export function readSocksRequest(bytes: Uint8Array): SocksRequest | undefined {
  if (bytes.length > 0 && bytes[0] !== SOCKS5) throw new Malformed('no SOCKS5')
  if (bytes.length < 5) return undefined
  const [, command, , type, first] = bytes as unknown as [number, number, number, number, number]
  const isName = type === NAME
  const hostBytes = isName ? first : ADDRESS_BYTES[type]
  if (hostBytes === undefined) throw new Malformed(`an address of the unknown type ${type}`)
  const start = isName ? 5 : 4
  const length = start + hostBytes + 2
  if (bytes.length < length) return undefined
  if (command !== CONNECT) return { target: undefined, length }
  const given = Buffer.from(bytes.subarray(start, start + hostBytes))
  const host = isName ? hostOf(given.toString('latin1')) : { address: addressOf(given) }
  const port = bytes[length - 2]! * 256 + bytes[length - 1]!
  if (host === undefined || port === 0) throw new Malformed('a host or a port that is none')
  return { target: { host, port }, length }
}

/** Groups of hexadecimal digits are parsed, so that an IPv4-mapped address becomes the IPv4 address. */
function addressOf(given: Buffer) {
  if (given.length === 4) return ipv4(BigInt(given.readUInt32BE(0)))
  return parseIpv6((given.toString('hex').match(/.{4}/g) as string[]).join(':'))!
}

/** The answer to a greeting. */
export const methodReply = (offersNoPassword: boolean): Uint8Array =>
  Uint8Array.of(SOCKS5, offersNoPassword ? WITHOUT_PASSWORD : NO_METHOD)

/** The answer to a request. The address in it is unspecified: ours concerns nobody. */
export const socksReply = (reply: SocksReply): Uint8Array =>
  Uint8Array.of(SOCKS5, SOCKS_REPLY[reply], 0, 1, 0, 0, 0, 0, 0, 0)
