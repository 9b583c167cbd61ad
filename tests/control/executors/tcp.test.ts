/** Goal: an address is what it looks like, and no wait is longer than it may be. Method: addresses, and real listeners. */
import { describe, expect, test } from 'bun:test'
import { parseAddress, tcp } from '../../../control/executors/os/tcp.ts'
import { testContext } from '../../support/executor-context.ts'
import { startFullListener } from '../../support/full-listener.ts'

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

describe('tcp', () => {
  const failureOf = (answer: unknown) => Promise.resolve(answer).catch((error) => error)

  test('gives up at timeout_ms', async () => {
    using listener = await startFullListener()
    const { address } = listener
    expect(await failureOf(tcp.execute({ address, timeout_ms: 20 }, testContext()))).toMatchObject({
      code: 'external_failure',
      message: `tcp ${address}: no connection within 20ms`,
    })
  })

  test('is ended by the signal while it waits', async () => {
    using listener = await startFullListener()
    const context = testContext()
    const answer = failureOf(tcp.execute({ address: listener.address, timeout_ms: 60_000 }, context))
    context.abort()
    expect(await answer).toMatchObject({ code: 'cancelled', message: `tcp ${listener.address} was ended` })
    expect(context.calls).toEqual(['begin'])
  })
})
