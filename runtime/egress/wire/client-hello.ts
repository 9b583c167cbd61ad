/**
 * Reads the server name from the first message of TLS, the ClientHello. Pure. Source: RFC 8446, RFC 6066, RFC 9849.
 *
 * A message that a server may read differently from us is malformed: two names, an extension twice, lengths that do not
 * add up, more data behind the message.
 */
import { Malformed } from './malformed.ts'

/** Maximum bytes of a ClientHello with its record headers. Those with keys of post-quantum exchanges have 2 KB. */
export const MAX_HELLO_BYTES = 32 * 1024

/** Maximum records of a ClientHello. Some clients use two. */
export const MAX_HELLO_RECORDS = 16

/** The first byte of a TLS connection: a record of a handshake. A server may begin with an alert instead. */
export const TLS_HANDSHAKE = 0x16
export const TLS_ALERT = 0x15

const MAX_RECORD_BYTES = 2 ** 14
const RECORD_HEADER_BYTES = 5
const MESSAGE_HEADER_BYTES = 4
const CLIENT_HELLO = 1
const RANDOM_BYTES = 32
const MAX_SESSION_ID_BYTES = 32

const EXTENSION = { serverName: 0, encryptedServerName: 0xffce, encryptedClientHello: 0xfe0d } as const
const HOST_NAME = 0

export interface ClientHello {
  /** As sent. Undefined if there is none. */
  readonly serverName: string | undefined
  /** Whether it has an encrypted part, which may name another server. */
  readonly isEncrypted: boolean
  /** Bytes of its records. */
  readonly length: number
}

/** The ClientHello that `bytes` begin with. Undefined if more bytes are needed. Throws `Malformed`. */
export function readClientHello(bytes: Uint8Array): ClientHello | undefined {
  const found = messageIn(bytes)
  if (found === undefined) {
    if (bytes.length >= MAX_HELLO_BYTES) throw new Malformed(`a ClientHello of more than ${MAX_HELLO_BYTES} bytes`)
    return undefined
  }
  return { ...namesIn(new Fields(found.message)), length: found.length }
}

/** The body of the handshake message, from all its records, and their length. */
function messageIn(bytes: Uint8Array): { message: Uint8Array; length: number } | undefined {
  const parts: Uint8Array[] = []
  let collected = 0
  let needed = MESSAGE_HEADER_BYTES
  let at = 0
  while (collected < needed) {
    if (parts.length === MAX_HELLO_RECORDS)
      throw new Malformed(`a ClientHello of more than ${MAX_HELLO_RECORDS} records`)
    const header = bytes.subarray(at, at + RECORD_HEADER_BYTES)
    if (header.length > 0 && header[0] !== TLS_HANDSHAKE) throw new Malformed('a record that is no handshake')
    if (header.length > 1 && header[1] !== 3) throw new Malformed('a record of an unknown version')
    if (header.length < RECORD_HEADER_BYTES) return undefined
    const length = header[3]! * 256 + header[4]!
    if (length === 0 || length > MAX_RECORD_BYTES) throw new Malformed(`a record of ${length} bytes`)
    const part = bytes.subarray(at + RECORD_HEADER_BYTES, at + RECORD_HEADER_BYTES + length)
    parts.push(part)
    collected += part.length
    if (needed === MESSAGE_HEADER_BYTES && collected >= MESSAGE_HEADER_BYTES) needed = messageLength(joined(parts))
    if (part.length < length) {
      if (collected >= needed) throw new Malformed('more data in the record of a ClientHello')
      return undefined
    }
    at += RECORD_HEADER_BYTES + length
  }
  if (collected > needed) throw new Malformed('more data in the record of a ClientHello')
  return { message: joined(parts).subarray(MESSAGE_HEADER_BYTES), length: at }
}

/** Bytes of the message with its header. */
function messageLength(start: Uint8Array): number {
  if (start[0] !== CLIENT_HELLO) throw new Malformed('a handshake that begins without a ClientHello')
  const length = MESSAGE_HEADER_BYTES + start[1]! * 65_536 + start[2]! * 256 + start[3]!
  if (length > MAX_HELLO_BYTES) throw new Malformed(`a ClientHello of more than ${MAX_HELLO_BYTES} bytes`)
  return length
}

const joined = (parts: readonly Uint8Array[]): Uint8Array => (parts.length === 1 ? parts[0]! : Buffer.concat(parts))

type Names = Pick<ClientHello, 'serverName' | 'isEncrypted'>

function namesIn(fields: Fields): Names {
  if (fields.number(2) >> 8 !== 3) throw new Malformed('a ClientHello of an unknown version')
  fields.bytes(RANDOM_BYTES)
  const sessionId = fields.vector(1)
  const cipherSuites = fields.vector(2)
  const compressions = fields.vector(1)
  if (
    sessionId.length > MAX_SESSION_ID_BYTES ||
    cipherSuites.length === 0 ||
    cipherSuites.length % 2 !== 0 ||
    compressions.length === 0
  ) {
    throw new Malformed('a ClientHello with a field of a wrong length')
  }
  if (fields.isAtEnd) return { serverName: undefined, isEncrypted: false }
  const extensions = new Fields(fields.vector(2))
  if (!fields.isAtEnd) throw new Malformed('a ClientHello with more than its extensions')
  return readExtensions(extensions)
}

function readExtensions(extensions: Fields): Names {
  const seen = new Set<number>()
  let serverName: string | undefined
  while (!extensions.isAtEnd) {
    const type = extensions.number(2)
    const data = extensions.vector(2)
    if (seen.has(type)) throw new Malformed(`a ClientHello with extension ${type} twice`)
    seen.add(type)
    if (type === EXTENSION.serverName) serverName = serverNameIn(new Fields(data))
  }
  const isEncrypted = seen.has(EXTENSION.encryptedClientHello) || seen.has(EXTENSION.encryptedServerName)
  return { serverName, isEncrypted }
}

function serverNameIn(extension: Fields): string {
  const list = new Fields(extension.vector(2))
  const type = list.number(1)
  const name = list.vector(2)
  if (!extension.isAtEnd || !list.isAtEnd || type !== HOST_NAME || name.length === 0) {
    throw new Malformed('a ClientHello without exactly one server name in its extension')
  }
  return Buffer.from(name).toString('latin1')
}

/** Reads numbers and vectors one after the other. Throws `Malformed` beyond the end. */
class Fields {
  readonly #all: Uint8Array
  #at = 0

  constructor(all: Uint8Array) {
    this.#all = all
  }

  get isAtEnd(): boolean {
    return this.#at === this.#all.length
  }

  bytes(count: number): Uint8Array {
    if (this.#at + count > this.#all.length) throw new Malformed('a ClientHello that is cut short')
    this.#at += count
    return this.#all.subarray(this.#at - count, this.#at)
  }

  number(width: number): number {
    return this.bytes(width).reduce((sum, byte) => sum * 256 + byte, 0)
  }

  /** Bytes after their number, which has `width` bytes. */
  vector(width: number): Uint8Array {
    return this.bytes(this.number(width))
  }
}
