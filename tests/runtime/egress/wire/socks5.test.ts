/** The messages of SOCKS5: every host that one can name, every way to cut them, and what is none. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Malformed } from '../../../../runtime/egress/wire/malformed.ts'
import { methodReply, readGreeting, readSocksRequest, socksReply } from '../../../../runtime/egress/wire/socks5.ts'
import { hostText } from '../../../../shared/egress/host.ts'

const request = (type: number, host: readonly number[], port = 443, command = 1) =>
  Uint8Array.from([5, command, 0, type, ...host, port >> 8, port & 255])
const named = (name: string, port?: number) => request(3, [name.length, ...Buffer.from(name, 'latin1')], port)
const target = (bytes: Uint8Array) => {
  const found = readSocksRequest(bytes)?.target
  return found && [hostText(found.host), found.port]
}

describe('a greeting', () => {
  test('offers methods', () => {
    expect(readGreeting(Uint8Array.of(5, 1, 0))).toEqual({ offersNoPassword: true, length: 3 })
    expect(readGreeting(Uint8Array.of(5, 2, 2, 0, 5))).toEqual({ offersNoPassword: true, length: 4 })
    expect(readGreeting(Uint8Array.of(5, 1, 2))).toEqual({ offersNoPassword: false, length: 3 })
    expect(readGreeting(Uint8Array.of(5, 0))).toEqual({ offersNoPassword: false, length: 2 })
    for (const cut of [[], [5], [5, 2, 0]]) expect(readGreeting(Uint8Array.from(cut))).toBeUndefined()
    expect(() => readGreeting(Uint8Array.of(4, 1, 0))).toThrow(Malformed)
  })

  test('is answered', () => {
    expect([...methodReply(true)]).toEqual([5, 0])
    expect([...methodReply(false)]).toEqual([5, 255])
    expect([...socksReply('refusedByRules')]).toEqual([5, 2, 0, 1, 0, 0, 0, 0, 0, 0])
  })
})

describe('a request', () => {
  test.each([
    [named('PyPI.org.'), 'pypi.org'],
    [named('127.0.0.1'), '127.0.0.1'],
    [named('2130706433'), '127.0.0.1'],
    [named('0x7f.1'), '127.0.0.1'],
    [named('[::1]'), '::1'],
    [named('::ffff:127.0.0.1'), '127.0.0.1'],
    [request(1, [127, 0, 0, 1]), '127.0.0.1'],
    [request(4, [...Array(15).fill(0), 1]), '::1'],
    [request(4, [...Array(10).fill(0), 255, 255, 127, 0, 0, 1]), '127.0.0.1'],
    [request(4, [0x20, 1, 0xd, 0xb8, ...Array(11).fill(0), 9]), '2001:db8::9'],
  ])('%# is for %s', (bytes, host) => {
    expect(target(bytes)).toEqual([host, 443])
  })

  test('for something else than a connection has no target', () => {
    for (const command of [0, 2, 3, 240]) {
      expect(readSocksRequest(request(1, [1, 2, 3, 4], 80, command))).toEqual({ target: undefined, length: 10 })
    }
  })

  test.each([
    Uint8Array.of(4, 1, 0, 1, 1),
    request(2, [1, 2, 3, 4]),
    named(''),
    named('a b'),
    named('a\0b'),
    named('u@a.example'),
    named('a.example/x'),
    named('a.example:80'),
    named('a.example', 0),
    named('a'.repeat(255)),
  ])('%# is malformed', (bytes) => {
    expect(() => readSocksRequest(bytes)).toThrow(Malformed)
  })

  test('is read as soon as it is whole', () => {
    const whole = named('a.example')
    for (let length = 0; length < whole.length; length++) {
      expect(readSocksRequest(whole.subarray(0, length))).toBeUndefined()
    }
    expect(readSocksRequest(Uint8Array.from([...whole, 22]))?.length).toBe(whole.length)
  })

  test('of any bytes is read, or is malformed', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        for (const read of [readGreeting, readSocksRequest]) {
          try {
            read(Uint8Array.from([5, ...bytes]))
          } catch (error) {
            expect(error).toBeInstanceOf(Malformed)
          }
        }
      }),
    )
  })
})
