/** Goal: an address is what it looks like. */
import { describe, expect, test } from 'bun:test'
import { parseAddress } from '../../../control/executors/os/tcp.ts'

const refusal = (address: string) => {
  try {
    parseAddress(address)
  } catch (error) {
    return (error as Error).message
  }
  return undefined
}

describe('an address', () => {
  test.each([
    ['127.0.0.1:80', { host: '127.0.0.1', port: 80 }],
    ['localhost:1', { host: 'localhost', port: 1 }],
    ['db_1.internal-net:65535', { host: 'db_1.internal-net', port: 65_535 }],
    ['[::1]:80', { host: '::1', port: 80 }],
    ['[fe80::1%eth0]:443', { host: 'fe80::1%eth0', port: 443 }],
    ['[::ffff:127.0.0.1]:443', { host: '::ffff:127.0.0.1', port: 443 }],
  ])('%s is a host and a port', (address, expected) => {
    expect(parseAddress(address)).toEqual(expected)
  })

  test.each(['localhost', ':80', 'localhost:', 'localhost:http', 'a b:80', '[]:80', '[localhost]:80', 'http://x:80/'])(
    '%s is none',
    (address) => {
      expect(refusal(address)).toBe(`parse tcp params: address: expected host:port, got "${address}"`)
    },
  )

  test.each(['::1:80', '::1', '1:2:80'])('%s needs brackets', (address) => {
    expect(refusal(address)).toEndWith(`got "${address}"; write an IPv6 address in brackets: [::1]:80`)
  })

  test.each(['0', '65536', '99999'])('has no port %s', (port) => {
    const message = `parse tcp params: address: expected a port from 1 to 65535, got ${port}`
    expect(refusal(`localhost:${port}`)).toBe(message)
  })
})
