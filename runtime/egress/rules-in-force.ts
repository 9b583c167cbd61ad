/** The rules of one task: the bounds of the operator, its own rules, and what no rule reaches. */
import type { IpAddress } from '../../shared/egress/ip-address.ts'
import {
  type Decision,
  decideAddress,
  decideName,
  type Egress,
  opaquePart,
  type RuleLayer,
} from '../../shared/egress/rules.ts'
import type { Authority } from '../plan/authority.ts'
import type { ServiceAddresses } from './service-addresses.ts'

export class RulesInForce {
  readonly #egress: Egress
  readonly #opaque: Egress
  readonly #services: Pick<ServiceAddresses, 'isOfService'>

  /** The bounds come first among the layers. */
  constructor(layers: readonly RuleLayer[], services: Pick<ServiceAddresses, 'isOfService'>) {
    this.#egress = { layers }
    this.#opaque = opaquePart(this.#egress)
    this.#services = services
  }

  decideName(name: string, port: number): Decision {
    return decideName(this.#egress, { name, port })
  }

  decideAddress(name: string | undefined, address: IpAddress, port: number): Decision {
    return decideAddress(this.#egress, { name, address, port })
  }

  /** Whether a connection may reach a service of ours. `from` is the own address of one that was made. */
  isOfService(address: IpAddress, port: number, from?: string): boolean {
    return this.#services.isOfService(address, port, from)
  }

  /**
   * Whether what an allowed connection carries is not looked at: a rule says so, or it was asked for by address, so that
   * there is no name to compare with.
   */
  isOpaque({ host, port }: Authority): boolean {
    return 'address' in host || decideName(this.#opaque, { name: host.name, port }).isAllowed
  }
}
