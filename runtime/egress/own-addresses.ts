/**
 * The addresses of our own services on this machine, which no rule reaches: a task that can talk to them without a token
 * could have another task run without a sandbox.
 *
 * A port of ours is closed on all addresses of this machine, whichever of them the service listens on.
 */
import { networkInterfaces } from 'node:os'
import { classOf } from '../../shared/egress/address-class.ts'
import { ipText, parseIp } from '../../shared/egress/ip-address.ts'
import { parseRule, type Rule } from '../../shared/egress/rule.ts'
import type { ServiceAddress } from '../intake/service-address.ts'

/** Maximum ports of this machine, and addresses of other machines. Callers that say that they are control may add some. */
const MAX_PORTS = 64
const MAX_ELSEWHERE = 256

const LOOPBACK = ['127.0.0.0/8', '[::1]']

export class OwnAddresses {
  readonly #ports = new Set<number>()
  /** By their texts. */
  readonly #elsewhere = new Map<string, Rule>()
  readonly #local: () => readonly string[]

  /** `local` lists the addresses of this machine. */
  constructor(local: () => readonly string[] = interfaceAddresses) {
    this.#local = local
  }

  /** Closes a port of this machine. */
  addPort(port: number): void {
    if (port > 0 && this.#ports.size < MAX_PORTS) this.#ports.add(port)
  }

  /** Closes the address of a service; one of this machine, or any of them, closes the port of this machine. */
  add({ address, port }: ServiceAddress): void {
    const text = ipText(address)
    const isHere = ['loopback', 'unspecified'].includes(classOf(address)) || this.#local().includes(text)
    if (isHere) this.addPort(port)
    else if (this.#elsewhere.size < MAX_ELSEWHERE) {
      const rule = parseRule(`${inBrackets(text)}:${port}`)
      this.#elsewhere.set(rule.text, rule)
    }
  }

  /** The rules for a connection to `port`. The interfaces are read each time: they change while a service runs. */
  rulesFor(port: number): readonly Rule[] {
    const elsewhere = [...this.#elsewhere.values()].filter((rule) => rule.port === port)
    if (!this.#ports.has(port)) return elsewhere
    const hosts = [...LOOPBACK, ...this.#local().map(inBrackets)]
    return [...elsewhere, ...hosts.map((host) => parseRule(`${host}:${port}`))]
  }
}

const inBrackets = (text: string): string => (text.includes(':') ? `[${text}]` : text)

const interfaceAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.flatMap(({ address }) => {
      const found = parseIp(address)
      return found === undefined ? [] : [ipText(found)]
    }),
  )
