/**
 * The addresses of our own services, which no rule reaches: a task that can talk to them without a token could have another
 * task run without a sandbox.
 *
 * A port of ours is closed on all addresses of this machine, whichever of them the service listens on. Which addresses these
 * are is asked at each connection: they change while a service runs.
 */
import { type IpAddress, isSameAddress, parseIp } from '../../shared/egress/ip-address.ts'
import { reachedBy } from '../../shared/egress/rules.ts'
import { isLocalAddress } from '../../shared/http/local-address.ts'
import type { ServiceAddress } from '../plan/authority.ts'

/** Maximum ports of this machine, and addresses. Callers that say that they are control may add some. */
const MAX_PORTS = 64
const MAX_SERVICES = 256

export class ServiceAddresses {
  readonly #ports = new Set<number>()
  readonly #services: ServiceAddress[] = []
  readonly #isLocal: (address: IpAddress) => boolean

  /** `isLocal` tells addresses of this machine. */
  constructor(isLocal: (address: IpAddress) => boolean = isLocalAddress) {
    this.#isLocal = isLocal
  }

  /** Closes a port of this machine. */
  addPort(port: number): void {
    if (port > 0 && this.#ports.size < MAX_PORTS) this.#ports.add(port)
  }

  /** Closes the address of a service; while that is one of this machine, or any of them, the port of this machine. */
  add({ address, port }: ServiceAddress): void {
    const isKnown = this.#services.some((one) => one.port === port && isSameAddress(one.address, address))
    if (!isKnown && this.#services.length < MAX_SERVICES) this.#services.push({ address, port })
  }

  /** Whether a connection to `address` may reach a service of ours. `from` is the own address of one that was made. */
  isOfService(address: IpAddress, port: number, from?: string): boolean {
    const services = this.#services.filter((one) => one.port === port)
    const reached = reachedBy(address)
    if (services.some((one) => reached.some((other) => isSameAddress(one.address, other)))) return true
    const isOwnPort = this.#ports.has(port) || services.some((one) => this.#isLocal(one.address))
    if (!isOwnPort) return false
    const own = from === undefined ? undefined : parseIp(from)
    return (own !== undefined && isSameAddress(own, address)) || reached.some(this.#isLocal)
  }
}
