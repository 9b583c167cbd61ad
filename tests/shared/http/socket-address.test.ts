/** Goal: addresses of Unix sockets, as flags and records have them. Method: tables, and a rule for any path. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { fetchTarget, plainSocketUrl, socketPathOf, socketUrl } from '../../../shared/http/socket-address.ts'

describe('an address of a socket', () => {
  test.each([
    ['unix:/run/a.sock', '/run/a.sock'],
    ['unix:///run/a.sock', '/run/a.sock'],
    ['UNIX:/run/a.sock', '/run/a.sock'],
    ['unix:/home/Ada Lovelace/a,b.sock', '/home/Ada Lovelace/a,b.sock'],
    ['unix:/home/Ada%20Lovelace/%C3%A9.sock', '/home/Ada Lovelace/é.sock'],
  ])('%s', (address, path) => {
    expect(socketPathOf(address)).toBe(path)
    expect(socketPathOf(plainSocketUrl(address)!)).toBe(path)
  })

  test.each([
    '',
    'unix:',
    'unix:/',
    'unix:a.sock',
    'unix://host/a.sock',
    'unix:/run/',
    'unix:/a?b',
    'unix:/a#b',
    'unix:/a%00',
    'unix:/a%zz',
    '/run/a.sock',
    'http://127.0.0.1:8080',
  ])('%p is none', (address) => {
    expect([socketPathOf(address), plainSocketUrl(address)]).toEqual([undefined, undefined])
  })

  test('has no characters that separate addresses, and gives back any path', () => {
    const segment = fc.string({ minLength: 1 }).filter((text) => !/[/\0]/.test(text))
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 4 }), (segments) => {
        const path = `/${segments.map((text) => text.toWellFormed()).join('/')}`
        const url = socketUrl(path)
        expect(url).not.toMatch(/[\s,?#]/)
        expect(socketPathOf(url)).toBe(path)
      }),
    )
  })
})

test('requests go over the socket, or to the address', () => {
  expect(fetchTarget('unix:/run/a%20b.sock')).toEqual({ origin: 'http://localhost', socket: { unix: '/run/a b.sock' } })
  expect(fetchTarget('http://h:1/base')).toEqual({ origin: 'http://h:1/base', socket: {} })
})
