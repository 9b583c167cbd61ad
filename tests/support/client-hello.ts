/** First messages of TLS as bytes, also such as no client sends. */

const number = (value: number, width: number): number[] =>
  Array.from({ length: width }, (_, i) => Math.floor(value / 256 ** (width - 1 - i)) % 256)

const vector = (bytes: readonly number[], width: number): number[] => [...number(bytes.length, width), ...bytes]

export const extension = (type: number, data: readonly number[]): number[] => [...number(type, 2), ...vector(data, 2)]

export const serverName = (name: string): number[] =>
  extension(0, vector([0, ...vector([...Buffer.from(name, 'latin1')], 2)], 2))

/** An encrypted ClientHello, as servers see it. */
export const ECH = extension(0xfe0d, [0, 0, 1, 0, 1, 7, 0, 0, 0, 0])

interface Oddities {
  readonly version?: number
  readonly sessionId?: number
  readonly suites?: number
  readonly compressions?: number
  /** Bytes after the extensions. */
  readonly after?: readonly number[]
}

/** The handshake message. Without extensions it ends before them. */
export function message(extensions: readonly (readonly number[])[] | undefined, odd: Oddities = {}): Uint8Array {
  const { version = 0x0303, sessionId = 32, suites = 4, compressions = 1, after = [] } = odd
  const body = [
    ...number(version, 2),
    ...Array(32).fill(7),
    ...vector(Array(sessionId).fill(8), 1),
    ...vector(Array(suites).fill(9), 2),
    ...vector(Array(compressions).fill(0), 1),
    ...(extensions === undefined ? [] : vector(extensions.flat(), 2)),
    ...after,
  ]
  return Uint8Array.from([1, ...vector(body, 3)])
}

/** A message in records of `size` bytes. */
export function inRecords(bytes: Uint8Array, size = 16_384): Uint8Array {
  const records: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += size) {
    const part = bytes.subarray(at, at + size)
    records.push(Uint8Array.of(0x16, 3, 1, part.length >> 8, part.length & 255), part)
  }
  return Buffer.concat(records)
}

/** The first bytes of a client that wants to talk to `name`. */
export const hello = (name: string): Uint8Array => inRecords(message([extension(23, []), serverName(name)]))
