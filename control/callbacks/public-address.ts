/** Tells public IP addresses from private and reserved ones. Pure. Source: the special-purpose registries of IANA. */
import { isIP } from 'node:net'

/** Private, local, reserved and multicast blocks of IPv4. */
const NOT_PUBLIC_V4: readonly (readonly [network: string, bits: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
]

/** Excluded blocks of 2000::/3, the range of public IPv6 addresses. 6to4 and Teredo embed an IPv4 address. */
const NOT_PUBLIC_V6: readonly (readonly [network: string, bits: number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]

/** Whether `address` is a public IP address. False for any other text. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return isPublicV4(v4Of(address))
    case 6: {
      const value = v6Of(address)
      // ::ffff:a.b.c.d embeds an IPv4 address.
      if (value >> 32n === 0xffffn) return isPublicV4(value & 0xffff_ffffn)
      if (value >> 125n !== 1n) return false
      return !NOT_PUBLIC_V6.some(([network, bits]) => isWithin(value, v6Of(network), 128 - bits))
    }
    default:
      return false
  }
}

const isPublicV4 = (value: bigint): boolean =>
  !NOT_PUBLIC_V4.some(([network, bits]) => isWithin(value, v4Of(network), 32 - bits))

const isWithin = (value: bigint, network: bigint, hostBits: number): boolean =>
  value >> BigInt(hostBits) === network >> BigInt(hostBits)

const v4Of = (address: string): bigint => address.split('.').reduce((value, part) => (value << 8n) | BigInt(part), 0n)

function v6Of(address: string): bigint {
  const [plain = ''] = address.split('%') // without a zone
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(plain)
  const v4 = dotted === null ? 0n : v4Of(dotted[2]!)
  const text = dotted === null ? plain : `${dotted[1]}${(v4 >> 16n).toString(16)}:${(v4 & 0xffffn).toString(16)}`
  const [before = '', after] = text.split('::')
  const groupsOf = (part: string) => (part === '' ? [] : part.split(':'))
  const [left, right] = [groupsOf(before), groupsOf(after ?? '')]
  const zeros = Array.from({ length: after === undefined ? 0 : 8 - left.length - right.length }, () => '0')
  return [...left, ...zeros, ...right].reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n)
}
