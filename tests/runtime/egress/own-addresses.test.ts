/** Which addresses are those of our own services. */
import { expect, test } from 'bun:test'
import { OwnAddresses } from '../../../runtime/egress/own-addresses.ts'
import { serviceAddressOf } from '../../../runtime/intake/service-address.ts'

const texts = (own: OwnAddresses, port: number) => own.rulesFor(port).map(({ text }) => text)
const HERE = ['127.0.0.0/8', '[::1]', '192.0.2.7', '[2001:db8::7]']
const on = (port: number) => HERE.map((host) => `${host}:${port}`)

test('a port of this machine is closed on all of its addresses', () => {
  const own = new OwnAddresses(() => ['192.0.2.7', '2001:db8::7'])
  own.addPort(80)
  own.addPort(0) // none: the service picks one
  for (const text of [':81', '127.0.0.1:82', 'localhost:83', '[::1]:84', '192.0.2.7:85', '0.0.0.0:86', '[::]:87']) {
    own.add(serviceAddressOf(text)!)
  }
  for (const port of [80, 81, 82, 83, 84, 85, 86, 87]) expect(texts(own, port)).toEqual(on(port))
  expect(texts(own, 88)).toEqual([])
})

test('an address elsewhere is closed by itself, once', () => {
  const own = new OwnAddresses(() => ['192.0.2.7'])
  for (let i = 0; i < 3; i++) own.add(serviceAddressOf('192.0.2.8:80')!)
  own.add(serviceAddressOf('[2001:db8::8]:443')!)
  expect([texts(own, 80), texts(own, 443), texts(own, 81)]).toEqual([['192.0.2.8:80'], ['[2001:db8::8]:443'], []])
})

test('there is a bound for those that callers add', () => {
  const own = new OwnAddresses(() => [])
  own.addPort(1)
  for (let port = 2; port < 1_000; port++) {
    own.addPort(port)
    own.add(serviceAddressOf(`192.0.2.8:${port}`)!)
  }
  expect(texts(own, 1)).toContain('127.0.0.0/8:1')
  const closed = Array.from({ length: 999 }, (_, i) => texts(own, i + 1).length)
  expect(closed.filter((count) => count > 1)).toHaveLength(64)
  expect(closed.filter((count) => count > 0)).toHaveLength(257)
})

test('the addresses of this machine are those of its interfaces', () => {
  const own = new OwnAddresses()
  own.addPort(80)
  expect(texts(own, 80)).toContain('127.0.0.1:80')
})

test.each(['', '80', 'x:80', '10.0.0.1', '10.0.0.1:0', '10.0.0.1:65536', '::1:80', '10.0.0.1:80/'])(
  '%j is no address',
  (text) => {
    expect(serviceAddressOf(text)).toBeUndefined()
  },
)
