/** Goal: no address of a private, local, reserved or multicast block is public. Method: tables, and random addresses. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type AddressClass, blockOf, classOf, embeddedIpv4 } from '../../../shared/egress/address-class.ts'
import { ipText, isWithin, networkOf, parseIp } from '../../../shared/egress/ip-address.ts'

const judged = (text: string) => classOf(parseIp(text)!)

const CLASSES: readonly (readonly [AddressClass, ...string[]])[] = [
  ['public', '1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '172.15.255.255', '172.32.0.0', '100.63.255.255'],
  ['public', '100.128.0.0', '126.255.255.255', '128.0.0.0', '169.253.255.255', '169.255.0.0', '223.255.255.255'],
  ['public', '168.63.129.15', '2606:4700::1111', '2001:4860:4860::8888', '2a00:1450:4001:81b::200e', '2001:200::1'],
  ['public', '::ffff:8.8.8.8', '64:ff9b::8.8.8.8', '2000::', '3ffe:ffff::'],
  ['unspecified', '0.0.0.0', '::', '::ffff:0.0.0.0', '64:ff9b::'],
  [
    'loopback',
    '127.0.0.1',
    '127.255.255.255',
    '::1',
    '::ffff:127.0.0.1',
    '2002:7f00:1::',
    '64:ff9b::7f00:1',
    '::7f00:1',
  ],
  ['private', '10.0.0.0', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.1.1', '::10.0.0.1', 'fec0::1'],
  ['private', '64:ff9b::10.0.0.1', '2002:c0a8:101::', '::ffff:10.0.0.1'],
  ['cgnat', '100.64.0.1', '100.127.255.255', '64:ff9b::100.64.0.1'],
  ['link-local', '169.254.0.1', '169.254.255.255', 'fe80::1', 'febf:ffff::1', '::ffff:169.254.1.1'],
  ['metadata', '169.254.169.254', '169.254.170.2', '100.100.100.200', '168.63.129.16', '192.0.0.192'],
  ['metadata', 'fd00:ec2::254', 'fd20:ce::254', 'fe80::a9fe:a9fe', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe'],
  ['metadata', '2002:a9fe:a9fe::', '::169.254.169.254', '169.254.42.42', 'fd00:42::42', '169.254.0.23'],
  ['unique-local', 'fc00::1', 'fd12::1', 'fdff:ffff::', 'fd00:ec2::255'],
  ['multicast', '224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1'],
  ['broadcast', '255.255.255.255', '64:ff9b::255.255.255.255'],
  ['reserved', '0.0.0.1', '0.255.255.255', '192.0.0.1', '192.0.2.1', '192.88.99.1', '198.18.0.1', '198.19.255.255'],
  ['reserved', '198.51.100.1', '203.0.113.9', '240.0.0.1', '255.255.255.254', '2001::1', '2001:1ff::1', '2001:db8::1'],
  [
    'reserved',
    '3fff::1',
    '100::1',
    '64:ff9b:1::1',
    '5f00::1',
    '::8.8.8.8',
    '2002:808:808::1',
    '::1:0:0',
    '4000::',
    '1::',
  ],
]

describe.each(CLASSES.map(([addressClass, ...addresses]) => ({ addressClass, addresses })))(
  '$addressClass',
  ({ addressClass, addresses }) => {
    test.each(addresses)('%s', (address) => {
      expect(judged(address)).toBe(addressClass)
    })
  },
)

test('an IPv4-mapped address is the IPv4 address', () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      expect(ipText(parseIp(`::ffff:${address}`)!)).toBe(address)
    }),
  )
})

const ipv6 = fc
  .array(fc.oneof(fc.nat(0xffff), fc.constantFrom(0, 0x64, 0xff9b, 0x2002)), { minLength: 8, maxLength: 8 })
  .map((groups) => groups.map((group) => group.toString(16)).join(':'))

test('of IPv6 only addresses that begin with 2 or 3, or are NAT64 or IPv4-mapped, are public', () => {
  fc.assert(
    fc.property(ipv6, (text) => {
      const address = parseIp(text)!
      if (classOf(address) !== 'public' || address.version === 4) return
      const inner = embeddedIpv4(address)
      if (address.value >> 125n !== 1n) expect(inner && classOf(inner)).toBe('public')
    }),
  )
})

test('all addresses of a block but those of smaller blocks have its class', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), ipv6), fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }), (text, random) => {
      const address = parseIp(text)!
      const { network, addressClass } = blockOf(address)
      expect(isWithin(network, address)).toBe(true)
      const hostBits = BigInt((network.version === 4 ? 32 : 128) - network.prefixBits)
      const other = { version: network.version, value: network.value | (random & ((1n << hostBits) - 1n)) }
      const block = blockOf(other)
      if (block.network.prefixBits <= network.prefixBits) expect(block.addressClass).toBe(addressClass)
      else expect(isWithin(network, block.network)).toBe(true)
    }),
    { numRuns: 500 },
  )
})

test('a network has no bits after its prefix', () => {
  expect(ipText(networkOf(parseIp('10.1.2.3')!, 8))).toBe('10.0.0.0')
  expect(ipText(networkOf(parseIp('2001:db8:ffff::1')!, 33))).toBe('2001:db8:8000::')
})
