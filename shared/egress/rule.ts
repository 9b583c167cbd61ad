/**
 * One rule about connections: which hosts, and which port. Pure.
 *
 * | rule | hosts |
 * | --- | --- |
 * | `*` | every name, and every public address |
 * | `pypi.org` | this name |
 * | `*.githubusercontent.com` | every name below this one, at any depth |
 * | `10.0.0.0/8`, `10.1.2.3`, `[2001:db8::]/32` | these addresses |
 *
 * Each may end with a port: `pypi.org:443`. Without one, a rule is about all ports. A rule of an allowlist for sandboxes may
 * end with the word ` opaque`: what is sent through such a connection is not looked at.
 */
import { type Host, hostOf, hostText } from './host.ts'
import { type IpAddress, type IpNetwork, isWithin, networkOf, networkText, widthOf } from './ip-address.ts'

export type Rule = {
  /** The rule in its normal form. */
  readonly text: string
  /** Undefined: all ports. */
  readonly port: number | undefined
  /** Whether connections under this rule may hide the name that they are for. Default: false. */
  readonly isOpaque?: boolean
  /** Whether it is about single requests, so that connections under it are opened. Default: false. */
  readonly isOpened?: boolean
  /** Whether a name stands for its addresses of any kind, because the operator trusts whoever says them. Default: false. */
  readonly isTrusted?: boolean
} & RuleHosts

type RuleHosts =
  | { readonly hosts: 'all' }
  | { readonly hosts: 'name'; readonly name: string }
  | { readonly hosts: 'below'; readonly name: string }
  | { readonly hosts: 'network'; readonly network: IpNetwork }

/** Maximum characters of a rule. */
export const MAX_RULE_CHARACTERS = 512

const MAX_PORT = 65_535

/** A text that is no rule. Its message completes `egress.allow[2]: `. */
export class NotARule extends Error {
  override name = 'NotARule'
}

/** Parses a rule. Throws `NotARule`. */
export function parseRule(text: string): Rule {
  if (text.length > MAX_RULE_CHARACTERS) throw new NotARule(`expected at most ${MAX_RULE_CHARACTERS} characters`)
  if (text.includes('://')) throw new NotARule(`expected a host, not a URL, got ${JSON.stringify(text)}`)
  const { host, port } = withoutPort(text)
  const hosts = hostsOf(host, text)
  return { text: textOf(hosts) + (port === undefined ? '' : `:${port}`), port, ...hosts }
}

/** Parses what an operator lists in addition to public addresses. Throws `NotARule`. */
export function parseReach(text: string): Rule {
  const rule = parseRule(text)
  if (rule.hosts === 'all')
    throw new NotARule('expected names, addresses or networks: every public address is reached anyway')
  return { ...rule, isTrusted: true }
}

const OPAQUE = ' opaque'

/** Parses a rule of an allowlist, which may be opaque. Throws `NotARule`. */
export function parseAllowRule(text: string): Rule {
  if (!text.endsWith(OPAQUE)) return parseRule(text)
  const rule = parseRule(text.slice(0, -OPAQUE.length))
  return { ...rule, text: `${rule.text}${OPAQUE}`, isOpaque: true }
}

/** Parses an address, a name or a network, each with or without a port. */
function withoutPort(text: string): { host: string; port: number | undefined } {
  const [, host, port] = /^(\[[^\]]*\](?:\/[^:]*)?|[^:]*):([^:]*)$/s.exec(text) ?? []
  if (host === undefined) return { host: text, port: undefined }
  const number = /^\d{1,5}$/.test(port!) ? Number(port) : 0
  if (number < 1 || number > MAX_PORT) {
    throw new NotARule(`expected a port from 1 to ${MAX_PORT} after the colon, got ${JSON.stringify(text)}`)
  }
  return { host, port: number }
}

function hostsOf(host: string, text: string): RuleHosts {
  if (host === '*') return { hosts: 'all' }
  if (host.includes('/')) return { hosts: 'network', network: networkFrom(host, text) }
  const isBelow = host.startsWith('*.')
  const found = hostIn(isBelow ? host.slice(2) : host, text)
  if ('name' in found) return { hosts: isBelow ? 'below' : 'name', name: found.name }
  if (isBelow) throw new NotARule(`expected a name after "*.", got ${JSON.stringify(text)}`)
  return { hosts: 'network', network: networkOf(found.address, widthOf(found.address)) }
}

function hostIn(host: string, text: string): Host {
  if (host.includes('*'))
    throw new NotARule(`expected "*" only alone or as "*." before a name, got ${JSON.stringify(text)}`)
  if (host.includes(':') && !host.startsWith('[')) {
    throw new NotARule(`expected brackets around an IPv6 address ([2001:db8::1]:443), got ${JSON.stringify(text)}`)
  }
  const found = hostOf(host)
  if (found === undefined) {
    throw new NotARule(`expected a name, an address or a network (10.0.0.0/8), got ${JSON.stringify(text)}`)
  }
  return found
}

function networkFrom(host: string, text: string): IpNetwork {
  const slash = host.indexOf('/')
  const before = host.slice(0, slash)
  const found = hostIn(before, text)
  if ('name' in found) throw new NotARule(`expected an address before "/", got ${JSON.stringify(text)}`)
  // An IPv4-mapped network counts its bits as one of IPv6.
  const isMapped = before.startsWith('[') && found.address.version === 4
  const width = isMapped ? 128 : widthOf(found.address)
  const bits = /^\d{1,3}$/.test(host.slice(slash + 1)) ? Number(host.slice(slash + 1)) : -1
  const least = isMapped ? 96 : 0
  if (bits < least || bits > width) {
    throw new NotARule(`expected a prefix length from ${least} to ${width} after "/", got ${JSON.stringify(text)}`)
  }
  const network = networkOf(found.address, isMapped ? bits - 96 : bits)
  if (network.value !== found.address.value) {
    throw new NotARule(
      `expected a network, which has no bits after its prefix: ${networkText(network)}, got ${JSON.stringify(text)}`,
    )
  }
  return network
}

function textOf(hosts: RuleHosts): string {
  if (hosts.hosts === 'all') return '*'
  if (hosts.hosts === 'network') return networkText(hosts.network)
  return hosts.hosts === 'below' ? `*.${hosts.name}` : hostText(hosts)
}

export const coversPort = (rule: Rule, port: number): boolean => rule.port === undefined || rule.port === port

export function coversName(rule: Rule, name: string): boolean {
  if (rule.hosts === 'all') return true
  return (rule.hosts === 'name' && rule.name === name) || (rule.hosts === 'below' && name.endsWith(`.${rule.name}`))
}

export const coversAddress = (rule: Rule, address: IpAddress): boolean =>
  rule.hosts === 'all' || (rule.hosts === 'network' && isWithin(rule.network, address))
