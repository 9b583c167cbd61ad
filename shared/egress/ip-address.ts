/**
 * IP addresses and networks as numbers. Pure.
 *
 * An address has one normal form. An IPv4-mapped address (`::ffff:a.b.c.d`) is the IPv4 address, because connecting to
 * it speaks IPv4. Text is written as in RFC 5952.
 */

export interface IpAddress {
  readonly version: 4 | 6
  readonly value: bigint
}

/** A block of addresses. The bits of `value` after the prefix are 0. */
export interface IpNetwork extends IpAddress {
  readonly prefixBits: number
}

/** Maximum characters of an IPv6 address without zone: eight groups, of which two may be an IPv4 address. */
const MAX_V6_CHARACTERS = 45

const MAPPED_PREFIX = 0xffffn

export const widthOf = ({ version }: IpAddress): number => (version === 4 ? 32 : 128)

export const isSameAddress = (a: IpAddress, b: IpAddress): boolean => a.version === b.version && a.value === b.value

/** The last 32 bits of `value` as an IPv4 address. */
export const ipv4 = (value: bigint): IpAddress => ({ version: 4, value: value & 0xffff_ffffn })

/** An address in dotted form (`10.0.0.1`). Undefined for any other text. */
export function parseIpv4(text: string): IpAddress | undefined {
  const parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)?.slice(1)
  if (parts === undefined || parts.some((part) => Number(part) > 255 || /^0\d/.test(part))) return undefined
  return ipv4(parts.reduce((value, part) => (value << 8n) | BigInt(part), 0n))
}

/** An address in colon form, without brackets and zone. Undefined for any other text. */
export function parseIpv6(text: string): IpAddress | undefined {
  if (text.length > MAX_V6_CHARACTERS) return undefined
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const [before, after] = halves.map(groupsOf) as [bigint[] | undefined, bigint[] | undefined]
  // An IPv4 address may stand only at the very end.
  if (before === undefined || (after !== undefined && halves[0]!.includes('.'))) return undefined
  if (halves.length === 1) return before.length === 8 ? normalIpv6(before) : undefined
  if (after === undefined || before.length + after.length > 7) return undefined
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => 0n)
  return normalIpv6([...before, ...zeros, ...after])
}

/** The 16-bit groups of a part of an IPv6 address. Undefined for text that is none. */
function groupsOf(text: string): bigint[] | undefined {
  if (text === '') return []
  const parts = text.split(':')
  const groups: bigint[] = []
  for (const [i, part] of parts.entries()) {
    if (/^[0-9a-f]{1,4}$/i.test(part)) {
      groups.push(BigInt(`0x${part}`))
      continue
    }
    const last = i === parts.length - 1 ? parseIpv4(part) : undefined
    if (last === undefined) return undefined
    groups.push(last.value >> 16n, last.value & 0xffffn)
  }
  return groups
}

const normalIpv6 = (groups: readonly bigint[]): IpAddress => {
  const value = groups.reduce((sum, group) => (sum << 16n) | group, 0n)
  return value >> 32n === MAPPED_PREFIX ? ipv4(value) : { version: 6, value }
}

/** An address that a resolver or a socket reported: dotted, or colons with or without a zone. Undefined for other text. */
export const parseIp = (text: string): IpAddress | undefined => parseIpv4(text) ?? parseIpv6(text.replace(/%.*$/s, ''))

export function ipText({ version, value }: IpAddress): string {
  if (version === 4) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join('.')
  const groups = Array.from({ length: 8 }, (_, i) => ((value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16))
  const { start, length } = longestZeros(groups)
  if (length < 2) return groups.join(':')
  return `${groups.slice(0, start).join(':')}::${groups.slice(start + length).join(':')}`
}

/** The first of the longest runs of zero groups. */
function longestZeros(groups: readonly string[]): { start: number; length: number } {
  let longest = { start: 0, length: 0 }
  let length = 0
  for (const [i, group] of groups.entries()) {
    length = group === '0' ? length + 1 : 0
    if (length > longest.length) longest = { start: i - length + 1, length }
  }
  return longest
}

/** The network of the first `prefixBits` bits of `address`. */
export function networkOf(address: IpAddress, prefixBits: number): IpNetwork {
  const hostBits = BigInt(widthOf(address) - prefixBits)
  return { version: address.version, value: (address.value >> hostBits) << hostBits, prefixBits }
}

/** Whether `address`, or the whole of a network, lies within `network`. */
export function isWithin(network: IpNetwork, address: IpAddress | IpNetwork): boolean {
  if (address.version !== network.version) return false
  if ('prefixBits' in address && address.prefixBits < network.prefixBits) return false
  const hostBits = BigInt(widthOf(network) - network.prefixBits)
  return address.value >> hostBits === network.value >> hostBits
}

/** `10.0.0.0/8`, `[2001:db8::]/32`; without the prefix for a single address. */
export function networkText(network: IpNetwork): string {
  const text = network.version === 4 ? ipText(network) : `[${ipText(network)}]`
  return network.prefixBits === widthOf(network) ? text : `${text}/${network.prefixBits}`
}
