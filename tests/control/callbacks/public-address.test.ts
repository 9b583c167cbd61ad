/** Goal: no address of a private, local, reserved or multicast block passes. Method: random addresses of each block. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isPublicAddress } from '../../../control/callbacks/public-address.ts'

test.each([
  ...['0.0.0.0', '10.1.2.3', '100.64.0.1', '127.0.0.1', '169.254.169.254', '172.16.0.1', '172.31.255.255'],
  ...['192.168.1.1', '192.0.2.1', '198.18.0.1', '203.0.113.9', '224.0.0.1', '240.0.0.1', '255.255.255.255'],
  ...['::', '::1', 'fe80::1', 'fe80::1%eth0', 'fc00::1', 'fd12::1', 'ff02::1', '64:ff9b::a00:1', '::ffff:10.0.0.1'],
  ...['::ffff:a00:1', '::ffff:127.0.0.1', '2002:7f00:1::', '2001::1', '2001:db8::1', '::10.0.0.1', '100::1', '3fff::1'],
  ...['localhost', '', '1.2.3', '0x7f.1'],
])('%s is not public', (address) => {
  expect(isPublicAddress(address)).toBe(false)
})

test.each([
  ...['1.1.1.1', '8.8.8.8', '172.15.255.255', '172.32.0.0', '100.63.255.255', '100.128.0.0', '223.255.255.255'],
  ...['2606:4700::1111', '2001:4860:4860::8888', '2a00:1450:4001:81b::200e', '::ffff:8.8.8.8', '2001:200::1'],
])('%s is public', (address) => {
  expect(isPublicAddress(address)).toBe(true)
})

test('an address of IPv4 within one of IPv6 is judged as itself', () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      expect(isPublicAddress(`::ffff:${address}`)).toBe(isPublicAddress(address))
    }),
  )
})

test('of IPv6 only addresses that begin with 2 or 3 are public', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(0xffff), { minLength: 8, maxLength: 8 }), (groups) => {
      const address = groups.map((group) => group.toString(16)).join(':')
      if (isPublicAddress(address)) expect(groups[0]! >> 13).toBe(1)
    }),
  )
})
