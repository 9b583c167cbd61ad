/**
 * Tells public IP addresses from all others. Pure. Source: the special-purpose registries of IANA, and the documentation
 * of cloud providers for the addresses of their metadata services.
 */
import { type IpAddress, type IpNetwork, ipv4, isWithin, networkOf, parseIpv4, parseIpv6 } from './ip-address.ts'

export const ADDRESS_CLASSES = [
  'public',
  'loopback',
  'private',
  'link-local',
  'unique-local',
  'cgnat',
  'metadata',
  'multicast',
  'broadcast',
  'unspecified',
  'reserved',
] as const
export type AddressClass = (typeof ADDRESS_CLASSES)[number]

/** Addresses of one class. */
export interface AddressBlock {
  readonly addressClass: AddressClass
  readonly network: IpNetwork
}

const IPV4_BLOCKS: readonly (readonly [AddressClass, ...string[]])[] = [
  ['unspecified', '0.0.0.0/32'],
  ['private', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'],
  ['cgnat', '100.64.0.0/10'],
  ['loopback', '127.0.0.0/8'],
  ['link-local', '169.254.0.0/16'],
  ['multicast', '224.0.0.0/4'],
  ['broadcast', '255.255.255.255/32'],
  ['reserved', '0.0.0.0/8', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '198.18.0.0/15'],
  ['reserved', '198.51.100.0/24', '203.0.113.0/24', '240.0.0.0/4'],
  // Amazon, Google, Microsoft, Oracle and others; Amazon's containers; Tencent; Scaleway.
  ['metadata', '169.254.169.254/32', '169.254.170.2/32', '169.254.170.23/32', '169.254.0.23/32', '169.254.42.42/32'],
  // Alibaba; Microsoft's WireServer, which lies among public addresses; Oracle.
  ['metadata', '100.100.100.200/32', '168.63.129.16/32', '192.0.0.192/32'],
]

const IPV6_BLOCKS: readonly (readonly [AddressClass, ...string[]])[] = [
  ['reserved', '::/0'],
  ['public', '2000::/3'],
  ['unspecified', '::/128'],
  ['loopback', '::1/128'],
  // Protocol assignments with Teredo, documentation, 6to4, documentation.
  ['reserved', '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
  ['unique-local', 'fc00::/7'],
  ['link-local', 'fe80::/10'],
  ['private', 'fec0::/10'],
  ['multicast', 'ff00::/8'],
  // Amazon, twice; Google; Scaleway; OpenStack.
  ['metadata', 'fd00:ec2::254/128', 'fd00:ec2::23/128', 'fd20:ce::254/128', 'fd00:42::42/128', 'fe80::a9fe:a9fe/128'],
]

/** Blocks by version, the most specific first. Built when they are asked for: that takes longer than what a start does. */
let blocks: Readonly<Record<4 | 6, readonly AddressBlock[]>> | undefined
const blocksByVersion = () => (blocks ??= { 4: blocksOf(IPV4_BLOCKS), 6: blocksOf(IPV6_BLOCKS) })

function blocksOf(table: typeof IPV4_BLOCKS): AddressBlock[] {
  const blocks = table.flatMap(([addressClass, ...texts]) =>
    texts.map((text) => ({ addressClass, network: networkFrom(text) })),
  )
  return blocks.sort((a, b) => b.network.prefixBits - a.network.prefixBits)
}

function networkFrom(text: string): IpNetwork {
  const [address, bits] = text.split('/') as [string, string]
  return networkOf((parseIpv4(address) ?? parseIpv6(address))!, Number(bits))
}

const ALL_IPV4: AddressBlock = { addressClass: 'public', network: networkFrom('0.0.0.0/0') }

/** Forms of IPv6 addresses that contain an IPv4 address, which a gateway or the kernel may connect to instead. */
const EMBEDDINGS: readonly { readonly network: IpNetwork; readonly isRouted: boolean }[] = [
  { network: networkFrom('::/96'), isRouted: false }, // IPv4-compatible
  { network: networkFrom('64:ff9b::/96'), isRouted: true }, // NAT64, which DNS64 makes of public IPv4 addresses
  { network: networkFrom('2002::/16'), isRouted: false }, // 6to4
]

const embeddingOf = (address: IpAddress) => EMBEDDINGS.find(({ network }) => isWithin(network, address))

/** The IPv4 address that a `::a.b.c.d`, NAT64 or 6to4 address contains. Undefined for others. */
export function embeddedIpv4(address: IpAddress): IpAddress | undefined {
  const embedding = embeddingOf(address)
  if (embedding === undefined) return undefined
  return ipv4(address.value >> BigInt(96 - embedding.network.prefixBits))
}

/**
 * The most specific block that `address` lies in. An IPv6 address that contains an IPv4 address has the class of that one,
 * unless that one is public: then only NAT64 is public, as the other forms are out of use.
 */
export function blockOf(address: IpAddress): AddressBlock {
  const block = blocksByVersion()[address.version].find(({ network }) => isWithin(network, address)) ?? ALL_IPV4
  const embedding = embeddingOf(address)
  if (embedding === undefined || block.network.prefixBits > embedding.network.prefixBits) return block
  const inner = blockOf(embeddedIpv4(address)!)
  const { network, isRouted } = embedding
  if (inner.addressClass === 'public') return { addressClass: isRouted ? 'public' : 'reserved', network }
  return {
    addressClass: inner.addressClass,
    network: networkOf(address, network.prefixBits + inner.network.prefixBits),
  }
}

export const classOf = (address: IpAddress): AddressClass => blockOf(address).addressClass
