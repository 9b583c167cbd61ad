/**
 * The normal form of a host: an IP address, or a name. Pure.
 *
 * Programs spell one host in many ways: `EXAMPLE.com.`, `bücher.example`, `0x7f.1`, `2130706433`, `[::ffff:7f00:1]`,
 * `１２７。０。０。１`. Rules and connections use the normal form, so that a check and a connection mean the same host.
 */
import { type IpAddress, ipText, parseIpv4, parseIpv6 } from './ip-address.ts'

export type Host = { readonly address: IpAddress } | { readonly name: string }

/** Maximum characters of a host before it is brought into its normal form. */
export const MAX_HOST_CHARACTERS = 1_024

/** Maximum characters of a name and of one label. Source: RFC 1035, 2.3.4. */
const MAX_NAME_CHARACTERS = 253
const MAX_LABEL_CHARACTERS = 63

/**
 * `text` in its normal form; undefined if it is no host. It has no port. Brackets around an IPv6 address may be left out.
 * A zone (`%eth0`) is dropped: it chooses an interface, not an address.
 */
export function hostOf(text: string): Host | undefined {
  if (text.length > MAX_HOST_CHARACTERS) return undefined
  const [, bracketed] = /^\[(.*)\]$/s.exec(text) ?? []
  if (bracketed !== undefined || text.includes(':')) {
    const address = parseIpv6((bracketed ?? text).replace(/%[\w.~%-]{1,64}$/, ''))
    return address && { address }
  }
  return nameOrIpv4(text)
}

function nameOrIpv4(text: string): Host | undefined {
  // Without characters that separate the parts of a URL, or that its parser skips or decodes.
  if (!/^[\w.\-\u0080-\u{10ffff}]+$/u.test(text)) return undefined
  // The parser of URLs applies IDNA, and reads IPv4 addresses as resolvers do: decimal, octal, hexadecimal, 1 to 4 parts.
  const name = URL.parse(`http://${text}/`)?.hostname.replace(/\.$/, '')
  if (name === undefined) return undefined
  const address = parseIpv4(name)
  if (address !== undefined) return { address }
  return isName(name) ? { name } : undefined
}

function isName(name: string): boolean {
  if (name.length > MAX_NAME_CHARACTERS || !/^[a-z0-9_.-]+$/.test(name)) return false
  const labels = name.split('.')
  // Resolvers read a last label that is a number as the end of an address.
  if (/^(\d+|0x[0-9a-f]*)$/.test(labels.at(-1)!)) return false
  return labels.every((label) => label !== '' && label.length <= MAX_LABEL_CHARACTERS)
}

/** `example.com`, `10.0.0.1`, `2001:db8::1`. */
export const hostText = (host: Host): string => ('name' in host ? host.name : ipText(host.address))

/** Whether a name means this machine whatever a resolver says. Source: RFC 6761, 6.3. */
export const isLocalName = (name: string): boolean => name === 'localhost' || name.endsWith('.localhost')
