/** The first message of TLS: what real clients send, every way to cut it, and what a server might read differently. */
import { describe, expect, test } from 'bun:test'
import { connect } from 'node:tls'
import fc from 'fast-check'
import { MAX_HELLO_BYTES, MAX_HELLO_RECORDS, readClientHello } from '../../../../runtime/egress/wire/client-hello.ts'
import { Malformed } from '../../../../runtime/egress/wire/malformed.ts'
import { ECH, extension, hello, inRecords, message, serverName } from '../../../support/client-hello.ts'

const ALERT = Uint8Array.of(0x15, 3, 3, 0, 2, 1, 0)
const asHello = (name: string) => inRecords(message([serverName(name)]))

describe('the server name', () => {
  test('of a real client', async () => {
    const sent = Promise.withResolvers<Uint8Array>()
    using listener = Bun.listen({
      ...{ hostname: '127.0.0.1', port: 0 },
      socket: { data: (_, bytes) => sent.resolve(Uint8Array.from(bytes)) },
    })
    const socket = connect({ host: '127.0.0.1', port: listener.port, servername: 'pypi.org' })
    socket.on('error', () => {})
    expect(readClientHello(await sent.promise)).toMatchObject({ serverName: 'pypi.org', isEncrypted: false })
    socket.destroy()
  })

  test.each<[string, Uint8Array, { serverName: string | undefined; isEncrypted: boolean }]>([
    ['is as sent', asHello('Example.COM.'), { serverName: 'Example.COM.', isEncrypted: false }],
    ['may be missing', inRecords(message([extension(23, [])])), { serverName: undefined, isEncrypted: false }],
    [
      'may be missing with all extensions',
      inRecords(message(undefined)),
      { serverName: undefined, isEncrypted: false },
    ],
    ['may be one of two', inRecords(message([serverName('a'), ECH])), { serverName: 'a', isEncrypted: true }],
    [
      'may be one of two in old drafts',
      inRecords(message([extension(0xffce, [1])])),
      { serverName: undefined, isEncrypted: true },
    ],
  ])('%s', (_, bytes, expected) => {
    expect(readClientHello(bytes)).toEqual({ ...expected, length: bytes.length })
  })

  test('is the same in one record and in several, and with records behind', () => {
    fc.assert(
      fc.property(fc.integer({ min: 16, max: 400 }), (size) => {
        const records = inRecords(message([serverName('a.example'), extension(21, Array(80).fill(0))]), size)
        const found = { serverName: 'a.example', isEncrypted: false }
        expect(readClientHello(records)).toMatchObject(found)
        const more = Buffer.concat([records, Uint8Array.of(0x14, 3, 3, 0, 1, 1)])
        expect(readClientHello(more)).toEqual({ ...found, length: records.length })
      }),
    )
  })

  test('needs all bytes of the message, and never fails for want of them', () => {
    const whole = inRecords(message([serverName('a.example')]), 50)
    for (let length = 0; length < whole.length; length++)
      expect(readClientHello(whole.subarray(0, length))).toBeUndefined()
    expect(readClientHello(whole)).toMatchObject({ serverName: 'a.example' })
  })
})

describe('no ClientHello', () => {
  const named = [serverName('a')]
  test.each<[string, Uint8Array]>([
    ['two names', inRecords(message([extension(0, [0, 8, 0, 0, 1, 97, 0, 0, 1, 98])]))],
    ['an empty list', inRecords(message([extension(0, [0, 0])]))],
    ['an empty extension', inRecords(message([extension(0, [])]))],
    ['an empty name', inRecords(message([serverName('')]))],
    ['a name of another type', inRecords(message([extension(0, [0, 4, 1, 0, 1, 97])]))],
    ['more after the list', inRecords(message([extension(0, [0, 4, 0, 0, 1, 97, 0])]))],
    ['a list that is too long', inRecords(message([extension(0, [0, 9, 0, 0, 1, 97])]))],
    ['the extension twice', inRecords(message([serverName('a'), serverName('b')]))],
    ['another extension twice', inRecords(message([extension(5, []), extension(5, [])]))],
    ['more after the extensions', inRecords(message(named, { after: [0] }))],
    ['more after the message', inRecords(Buffer.concat([message(named), Uint8Array.of(1)]))],
    ['two messages', inRecords(Buffer.concat([message(named), message([serverName('b')])]))],
    ['another message', inRecords(Uint8Array.of(2, 0, 0, 1, 0))],
    ['another record', Uint8Array.of(0x17, 3, 3, 0, 1, 0)],
    ['an alert in the middle', Buffer.concat([inRecords(message(named), 20).subarray(0, 25), ALERT])],
    ['a version of SSL 2', Uint8Array.of(0x80, 0x2e, 1, 0, 2)],
    ['a record of another version', Uint8Array.of(0x16, 2, 0, 0, 1, 1)],
    ['a message of another version', inRecords(message(named, { version: 0x0200 }))],
    ['an empty record', Uint8Array.of(0x16, 3, 1, 0, 0)],
    ['a record that is too long', Uint8Array.of(0x16, 3, 1, 0x40, 1, 1)],
    ['a message that is too long', Uint8Array.of(0x16, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff)],
    ['a session id that is too long', inRecords(message(named, { sessionId: 33 }))],
    ['cipher suites of an odd length', inRecords(message(named, { suites: 3 }))],
    ['no compressions', inRecords(message(named, { compressions: 0 }))],
    ['records of single bytes', inRecords(message(named), 1)],
  ])('%s', (_, bytes) => {
    expect(() => readClientHello(bytes)).toThrow(Malformed)
  })

  test('within its bounds only', () => {
    const filled = (size: number) => inRecords(message([serverName('a'), extension(21, Array(size).fill(0))]))
    expect(readClientHello(filled(15_000))).toMatchObject({ serverName: 'a' })
    expect(() => readClientHello(filled(MAX_HELLO_BYTES))).toThrow(`more than ${MAX_HELLO_BYTES} bytes`)
    expect(() => readClientHello(inRecords(message(named), 2))).toThrow(`more than ${MAX_HELLO_RECORDS} records`)
  })
})

test('any bytes are read, or are malformed', () => {
  const mutated = fc
    .tuple(fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { maxLength: 4 }), fc.nat(300))
    .map(([changes, length]) => {
      const bytes = Buffer.from(hello('some.name.example'))
      for (const [at, byte] of changes) bytes[at % bytes.length] = byte
      return bytes.subarray(0, length)
    })
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 400 }), mutated), (bytes) => {
      try {
        readClientHello(bytes)
      } catch (error) {
        expect(error).toBeInstanceOf(Malformed)
      }
    }),
    { numRuns: 2_000 },
  )
})
