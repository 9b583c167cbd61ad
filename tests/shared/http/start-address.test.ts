import { describe, expect, test } from 'bun:test'
import { isLoopback, startAddress } from '../../../shared/http/start-address.ts'

describe('startAddress', () => {
  test.each([
    ['http://127.0.0.1:8080', '127.0.0.1', 8080, '127.0.0.1:8080'],
    ['http://localhost:8080', '127.0.0.1', 8080, '127.0.0.1:8080'],
    ['http://127.1:18080', '127.0.0.1', 18080, '127.0.0.1:18080'],
    ['http://127.9.8.7', '127.9.8.7', 80, '127.9.8.7:80'],
    ['http://[::1]:8080', '::1', 8080, '[::1]:8080'],
  ])('%s listens on %s, port %i', (url, hostname, port, listen) => {
    expect(startAddress(url)).toEqual({ hostname, port, listen })
  })

  test.each([
    ['http://10.0.0.1:8080', 'it is not on this machine'],
    ['http://0.0.0.0:8080', 'it is not on this machine'],
    ['http://127.0.0.1.example.org', 'it is not on this machine'],
    ['http://localhost.example.org', 'it is not on this machine'],
    ['http://[::]:8080', 'it is not on this machine'],
    ['unix:/run/a.sock', 'it is a Unix socket'],
    ['https://127.0.0.1:8080', 'speaks http, not https'],
    ['http://127.0.0.1:8080/under', 'no path before its routes'],
    ['http://127.0.0.1:0', 'port 0'],
  ])('%s is not started: %s', (url, reason) => {
    expect(startAddress(url)).toContain(reason)
  })
})

test('isLoopback looks at the host alone', () => {
  expect(['https://127.0.0.1/x', 'http://example.org/127.0.0.1'].map(isLoopback)).toEqual([true, false])
})
