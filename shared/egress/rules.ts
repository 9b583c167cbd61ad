/**
 * Which connections are allowed. Pure.
 *
 * A connection is made to an address, often on behalf of a name. It is allowed if every layer of rules allows it; layers
 * are the bounds of an operator, and the rules of a caller within them. A layer allows a connection if
 *
 * - no rule of `deny` covers the name or the address, and
 * - a rule of `allow` covers the name, where there is one, and
 * - the address is public, and covered by `allow` where there is no name; or a rule of `allow` names it by address.
 *
 * A rule names an address that is not public only if all of the rule's network is of the same special block. So
 * `10.0.0.0/8` allows private addresses, but `0.0.0.0/0` does not, nor does `169.254.0.0/16` allow the metadata service. A rule
 * about single requests names no address for a name: requests by that name are not looked at. A name that an operator trusts
 * (`parseReach`) names its addresses, whatever they are.
 *
 * Callers ask first whether a name may be looked up (`decideName`), then for each address (`decideAddress`), and connect
 * to an allowed address without another lookup.
 */
import { type AddressClass, blockOf, embeddedIpv4 } from './address-class.ts'
import { type IpAddress, isSameAddress, isWithin, parseIpv4, parseIpv6 } from './ip-address.ts'
import { coversAddress, coversName, coversPort, NotARule, parseRule, type Rule } from './rule.ts'

/** Maximum number of rules in a list. Each check reads all of them. */
export const MAX_RULES = 256

export interface RuleLayer {
  /** Undefined: this layer restricts nothing beyond `deny`. */
  readonly allow: readonly Rule[] | undefined
  readonly deny: readonly Rule[]
}

export interface Egress {
  readonly layers: readonly RuleLayer[]
}

export type Decision =
  /** `rule` is that of the last layer; undefined if it has no `allow`. */
  | { readonly isAllowed: true; readonly rule: string | undefined }
  | { readonly isAllowed: false; readonly reason: Refusal }

export type Refusal =
  | { readonly kind: 'denied'; readonly rule: string }
  /** The address is not public, and no rule names it. */
  | { readonly kind: 'class'; readonly addressClass: AddressClass }
  | { readonly kind: 'unlisted' }

/** Allows public addresses and all names. */
export const PUBLIC_ONLY: Egress = { layers: [{ allow: [parseRule('*')], deny: [] }] }

/** Parses a list of rules, each with `parse`. Throws `NotARule` with the index in its message. */
export function parseRules<T = string>(
  given: readonly T[],
  name: string,
  parse: (one: T) => Rule = parseRule as (one: T) => Rule,
): Rule[] {
  if (given.length > MAX_RULES) throw new NotARule(`${name}: expected at most ${MAX_RULES} rules, got ${given.length}`)
  return given.map((one, i) => {
    try {
      return parse(one)
    } catch (error) {
      if (error instanceof NotARule) throw new NotARule(`${name}[${i}]: ${error.message}`)
      throw error
    }
  })
}

/** Allows what both allow. The layers of `bounds` come first. */
export const intersection = (bounds: Egress, rules: Egress): Egress => ({
  layers: [...bounds.layers, ...rules.layers],
})

/** Whether a connection to an address of `name` may be allowed, so that the name may be looked up. */
export const decideName = (egress: Egress, { name, port }: { name: string; port: number }): Decision =>
  firstRefusal(egress, (layer) => {
    const denied = layer.deny.find((rule) => coversPort(rule, port) && coversName(rule, name))
    if (denied !== undefined) return refused({ kind: 'denied', rule: denied.text })
    return allowedBy(layer.allow, (rule) => coversPort(rule, port) && coversName(rule, name))
  })

/** `egress` with only its opaque rules: the connections that it allows may hide the name that they are for. */
export const opaquePart = ({ layers }: Egress): Egress => ({
  layers: layers.map(({ allow, deny }) => ({ allow: allow?.filter(({ isOpaque }) => isOpaque), deny })),
})

export interface Target {
  /** The name that `address` was looked up for. Undefined if the caller named the address itself. */
  readonly name: string | undefined
  readonly address: IpAddress
  readonly port: number
}

export function decideAddress(egress: Egress, { name, address, port }: Target): Decision {
  const reached = reachedBy(address)
  const covers = (rule: Rule) => coversPort(rule, port) && reached.some((one) => coversAddress(rule, one))
  const ofName = name === undefined ? undefined : decideName(egress, { name, port })
  if (ofName?.isAllowed === false) return ofName
  const { addressClass, network } = blockOf(address)
  return firstRefusal(egress, ({ allow, deny }) => {
    const denied = deny.find(covers)
    if (denied !== undefined) return refused({ kind: 'denied', rule: denied.text })
    const names = (rule: Rule) => coversPort(rule, port) && coversAddress(rule, address)
    if (addressClass === 'public') return name === undefined ? allowedBy(allow, names) : ofName!
    const isNamed = (rule: Rule) =>
      rule.hosts === 'network'
        ? names(rule) && isWithin(network, rule.network) && !(rule.isOpened && name !== undefined)
        : rule.isTrusted === true && name !== undefined && coversPort(rule, port) && coversName(rule, name)
    const decision = allowedBy(allow, isNamed)
    return decision.isAllowed ? decision : refused({ kind: 'class', addressClass })
  })
}

/** The first refusal of a layer, else the decision of the last layer. */
function firstRefusal({ layers }: Egress, decide: (layer: RuleLayer) => Decision): Decision {
  let last: Decision = { isAllowed: true, rule: undefined }
  for (const layer of layers) {
    last = decide(layer)
    if (!last.isAllowed) return last
  }
  return last
}

function allowedBy(allow: RuleLayer['allow'], covers: (rule: Rule) => boolean): Decision {
  const rule = allow?.find(covers)
  if (allow !== undefined && rule === undefined) return refused({ kind: 'unlisted' })
  return { isAllowed: true, rule: rule?.text }
}

const refused = (reason: Refusal): Decision => ({ isAllowed: false, reason })

const [ANY_V4, LOOPBACK_V4] = ['0.0.0.0', '127.0.0.1'].map((text) => parseIpv4(text)!) as [IpAddress, IpAddress]
const [ANY_V6, LOOPBACK_V6] = ['::', '::1'].map((text) => parseIpv6(text)!) as [IpAddress, IpAddress]

/**
 * Every address that a connection to `address` may reach: itself, the IPv4 address that it contains, and this machine for
 * the unspecified addresses.
 */
export function reachedBy(address: IpAddress): IpAddress[] {
  const embedded = embeddedIpv4(address)
  const reached = embedded === undefined ? [address] : [address, embedded]
  if (reached.some((one) => isSameAddress(one, ANY_V4))) reached.push(LOOPBACK_V4)
  if (isSameAddress(address, ANY_V6)) reached.push(LOOPBACK_V6, LOOPBACK_V4)
  return reached
}
