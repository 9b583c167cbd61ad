/** A DNS server for one test, on a loopback port. It answers from a table, or never. */
import { createSocket, type RemoteInfo } from 'node:dgram'

interface Zone {
  /** IPv4 addresses of the first, second … answer; the last answer repeats. */
  readonly a?: readonly (readonly string[])[]
  readonly txt?: readonly (readonly string[])[]
  readonly cname?: string
  readonly mx?: readonly { readonly exchange: string; readonly priority: number }[]
  /** A code for every question: SERVFAIL is 2, REFUSED is 5. */
  readonly rcode?: number
  /** The server never answers questions about this name. */
  readonly isSilent?: boolean
}

export interface DnsServer extends AsyncDisposable {
  /** `address:port`. */
  readonly address: string
  /** Names that were asked about so far. */
  readonly asked: readonly string[]
}

const TYPES = { a: 1, cname: 5, mx: 15, txt: 16 } as const
const NXDOMAIN = 3

/** A name without an entry in `zones` does not exist; one without the record asked for has none of it. Default port: a free one. */
export async function startDnsServer(zones: Readonly<Record<string, Zone>>, port = 0): Promise<DnsServer> {
  const asked: string[] = []
  const addressesGiven = new Map<string, number>()
  const socket = createSocket('udp4')
  socket.on('message', (query: Buffer, from: RemoteInfo) => {
    const { name, type, end } = questionOf(query)
    asked.push(name)
    const zone = zones[name]
    if (zone?.isSilent) return
    const given = addressesGiven.get(name) ?? 0
    if (type === TYPES.a) addressesGiven.set(name, given + 1)
    const answers = zone === undefined ? [] : answersOf(zone, type, given)
    const header = Buffer.alloc(12)
    query.copy(header, 0, 0, 2)
    header.writeUInt16BE(0x8180 | (zone === undefined ? NXDOMAIN : (zone.rcode ?? 0)), 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(answers.length, 6)
    socket.send(Buffer.concat([header, query.subarray(12, end), ...answers]), from.port, from.address)
  })
  await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', resolve))
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    [Symbol.asyncDispose]: () => new Promise((resolve) => socket.close(() => resolve())),
  }
}

function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.'), type: query.readUInt16BE(at + 1), end: at + 5 }
}

function answersOf(zone: Zone, type: number, given: number): Buffer[] {
  switch (type) {
    case TYPES.a:
      return (zone.a?.[Math.min(given, zone.a.length - 1)] ?? []).map((address) =>
        record(type, Buffer.from(address.split('.').map(Number))),
      )
    case TYPES.txt:
      return (zone.txt ?? []).map((parts) =>
        record(
          type,
          Buffer.concat(parts.map((part) => Buffer.concat([Buffer.of(Buffer.byteLength(part)), Buffer.from(part)]))),
        ),
      )
    case TYPES.cname:
      return zone.cname === undefined ? [] : [record(type, encoded(zone.cname))]
    case TYPES.mx:
      return (zone.mx ?? []).map(({ exchange, priority }) =>
        record(type, Buffer.concat([Buffer.of(priority >> 8, priority & 255), encoded(exchange)])),
      )
    default:
      return []
  }
}

/** A record about the name of the question, which stands at offset 12. */
function record(type: number, data: Buffer): Buffer {
  const head = Buffer.from([
    0xc0,
    12,
    0,
    type,
    0,
    1,
    0,
    0,
    0,
    0, // to be asked for each time
    data.length >> 8,
    data.length & 255,
  ])
  return Buffer.concat([head, data])
}

const encoded = (name: string): Buffer =>
  Buffer.concat([
    ...name.split('.').map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label)])),
    Buffer.of(0),
  ])
