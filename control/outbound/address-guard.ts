/**
 * Decides which addresses the service connects to for a caller.
 *
 * The guard looks up the host of a URL and returns the allowed addresses. The connection has to go to one of those: a
 * second lookup might answer with another address (DNS rebinding).
 */
import { ADDRESS_CLASSES, type AddressClass, classOf } from '../../shared/egress/address-class.ts'
import { hostOf, isLocalName } from '../../shared/egress/host.ts'
import { type IpAddress, ipText, parseIp, parseIpv4 } from '../../shared/egress/ip-address.ts'
import { parseRule, type Rule } from '../../shared/egress/rule.ts'
import { decideAddress, type Egress } from '../../shared/egress/rules.ts'
import { systemAddresses } from '../../shared/http/system-addresses.ts'
import { unlessAborted } from '../../shared/process/unless-aborted.ts'

/** `public` allows only addresses of the public internet. */
export const ADDRESS_POLICIES = ['public', 'any'] as const
export type AddressPolicy = (typeof ADDRESS_POLICIES)[number]

/** Maximum number of addresses of a name that are considered. */
export const MAX_ADDRESSES = 32

/** No address of the host may be connected to. */
export class AddressRefused extends Error {
  override name = 'AddressRefused'
  constructor(
    readonly host: string,
    readonly addresses: readonly { readonly address: string; readonly class: AddressClass }[],
    remedy: string,
  ) {
    const shown = addresses.map(({ address, class: its }) => (address === host ? its : `${address}, ${its}`))
    super(`${host} (${shown.join('; ')}) is no public address (${remedy})`)
  }
}

export interface AddressGuardOptions {
  readonly policy: AddressPolicy
  /** The flag that sets the policy, for error messages. */
  readonly flag: string
  /** Allowed in addition to public addresses. Default: none. */
  readonly exceptions?: readonly Rule[]
  /** What the operator lists now for requests of a tenant (`parseReach`). Default: nothing. */
  readonly reachOf?: (tenant: string) => readonly Rule[]
  /** The addresses of a name, in the order in which to try them. Default: those of the system resolver. */
  readonly addressesOf?: (name: string) => Promise<readonly string[]>
}

/** The guards of the service, by what they guard. */
export interface AddressGuards {
  readonly callbacks: AddressGuard
  readonly http: AddressGuard
}

const EVERY_PUBLIC = parseRule('*')

/** The address of `localhost`, which is not looked up to check a URL. */
const LOOPBACK = parseIpv4('127.0.0.1')!

export class AddressGuard {
  readonly policy: AddressPolicy
  readonly #options: AddressGuardOptions
  /** Undefined: that of the service. */
  readonly #tenant: string | undefined
  readonly #addressesOf: (name: string) => Promise<readonly string[]>
  readonly #refused: Map<AddressClass, number>

  constructor(options: AddressGuardOptions, ofTenant?: { readonly tenant: string; readonly base: AddressGuard }) {
    this.policy = ofTenant === undefined ? options.policy : 'public'
    this.#options = options
    this.#tenant = ofTenant?.tenant
    this.#addressesOf = options.addressesOf ?? systemAddresses
    const none = () => new Map(ADDRESS_CLASSES.filter((one) => one !== 'public').map((one) => [one, 0]))
    this.#refused = ofTenant === undefined ? none() : ofTenant.base.#refused
  }

  /** The guard of the requests of a tenant: public addresses and what the operator lists for it, whatever the policy is. */
  for(tenant: string | undefined): AddressGuard {
    return tenant === undefined ? this : new AddressGuard(this.#options, { tenant, base: this })
  }

  /** The rules of now. */
  get #egress(): Egress {
    if (this.policy === 'any') return { layers: [{ allow: undefined, deny: [] }] }
    const { exceptions = [], reachOf } = this.#options
    const listed = this.#tenant === undefined ? exceptions : (reachOf?.(this.#tenant) ?? [])
    return { layers: [{ allow: [EVERY_PUBLIC, ...listed], deny: [] }] }
  }

  get #remedy(): string {
    if (this.#tenant === undefined) return `allow it with --${this.#options.flag} any`
    return `the operator lists others in reach of tenant ${this.#tenant}, in the tokens file`
  }

  /** Number of refusals of `addressesFor` since the start of the service, by class of the first address. */
  get refusedByClass(): ReadonlyMap<AddressClass, number> {
    return this.#refused
  }

  /** Throws `AddressRefused` if the host of `url` is certain to be refused, whatever a resolver says. */
  check(url: URL): void {
    const host = hostOf(url.hostname)
    if (host === undefined) return // addressesFor says so
    if ('address' in host) this.#allowed(url, undefined, [host.address])
    else if (isLocalName(host.name)) this.#allowed(url, host.name, [LOOPBACK])
  }

  /**
   * The addresses of the host of `url` that may be connected to, in the order in which to try them. Throws
   * `AddressRefused`, or the error of the lookup.
   */
  async addressesFor(url: URL, signal: AbortSignal): Promise<readonly string[]> {
    try {
      const host = hostOf(url.hostname)
      if (host !== undefined && 'address' in host) return this.#allowed(url, undefined, [host.address])
      if (host === undefined && this.policy === 'public')
        throw new Error(`${JSON.stringify(url.hostname)} is no host name`)
      // As written: a resolver reads a name with a dot at its end as complete.
      const found = await unlessAborted(
        this.#addressesOf(url.hostname),
        signal,
        () => new Error('the lookup was ended'),
      )
      if (host === undefined || this.policy === 'any') return found
      const addresses = found.slice(0, MAX_ADDRESSES).flatMap((text) => parseIp(text) ?? [])
      return this.#allowed(url, host.name, addresses)
    } catch (error) {
      if (error instanceof AddressRefused) this.#count(error.addresses[0]!.class)
      throw error
    }
  }

  /** The allowed ones of `addresses`. `name` is the host, unless the host is an address. Throws `AddressRefused`. */
  #allowed(url: URL, name: string | undefined, addresses: readonly IpAddress[]): string[] {
    const port = portOf(url)
    const egress = this.#egress
    const allowed = addresses.filter((address) => decideAddress(egress, { name, address, port }).isAllowed)
    if (allowed.length > 0) return allowed.map(ipText)
    if (addresses.length === 0) throw new Error(`${name} has no address`)
    const refused = addresses.map((address) => ({ address: ipText(address), class: classOf(address) }))
    throw new AddressRefused(name ?? refused[0]!.address, refused, this.#remedy)
  }

  #count(addressClass: AddressClass): void {
    this.#refused.set(addressClass, (this.#refused.get(addressClass) ?? 0) + 1)
  }
}

export const portOf = ({ port, protocol }: URL): number => Number(port) || (protocol === 'https:' ? 443 : 80)
