/**
 * Connects to a host that a task names, if the rules allow it.
 *
 * The name is looked up here, once, and as it was checked: without the search list of the system, which would make another
 * name of it. Each address is checked, and the connection goes to an address that passed: a second lookup might answer with
 * another (DNS rebinding).
 */

import { systemCodeOf } from '../../shared/contract/errors.ts'
import { type IpAddress, ipText, parseIp } from '../../shared/egress/ip-address.ts'
import { absoluteAddresses } from '../../shared/http/system-addresses.ts'
import type { Authority } from '../plan/authority.ts'
import { Endpoint } from './endpoint.ts'
import type { RulesInForce } from './rules-in-force.ts'
import type { Refusal } from './verdict.ts'

/** Time limits in milliseconds, each with the wait for a turn. */
export interface DialTimes {
  readonly lookupMs: number
  /** For each address. */
  readonly connectMs: number
}

export const DIAL_TIMES: DialTimes = { lookupMs: 10_000, connectMs: 10_000 }

/** Maximum addresses of a name that are checked, and to which a connection is tried. */
export const MAX_ADDRESSES = 16
export const MAX_TRIED_ADDRESSES = 4

/**
 * Maximum lookups at a time, and connections that are being made: of a task, and of all tasks. Both hold a descriptor.
 */
export const MAX_TASK_LOOKUPS = 4
export const MAX_LOOKUPS = 256
export const MAX_TASK_ATTEMPTS = 64
export const MAX_ATTEMPTS = 1_024

/** The addresses of a name, in the order in which to try them. The name is absolute: it ends with a dot. */
export type Resolve = (name: string) => Promise<readonly string[]>

export type Dialed =
  | {
      readonly kind: 'connected'
      readonly server: Endpoint
      readonly address: string
      readonly rule: string | undefined
    }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** The rules allow it, but there is no connection. `why` is a clause. */
  | { readonly kind: 'failed'; readonly why: string; readonly rule: string | undefined }

export class Dialer {
  readonly #resolve: Resolve
  readonly #times: DialTimes
  readonly #lookups = new Turns(MAX_LOOKUPS)
  readonly #attempts = new Turns(MAX_ATTEMPTS)

  constructor(resolve: Resolve = absoluteAddresses, times: DialTimes = DIAL_TIMES) {
    this.#resolve = resolve
    this.#times = times
  }

  /** The dialer of a task. */
  forTask(rules: RulesInForce): (target: Authority) => Promise<Dialed> {
    const { lookupMs, connectMs } = this.#times
    const lookups = [new Turns(MAX_TASK_LOOKUPS), this.#lookups] as const
    const attempts = [new Turns(MAX_TASK_ATTEMPTS), this.#attempts] as const
    const lookUp: Resolve = (name) => limited(lookupMs, lookups, () => this.#resolve(name))
    const connectTo = (address: string, port: number) =>
      limited(connectMs, attempts, (isLate) => attempt(address, port, isLate))
    return (target) => dial(target, rules, lookUp, connectTo)
  }
}

type ConnectTo = (address: string, port: number) => Promise<Endpoint>

interface Checked {
  readonly address: IpAddress
  readonly rule: string | undefined
}

const OF_SERVICE = { isAllowed: false, reason: { kind: 'never' } } as const

/** Never rejects. */
async function dial(target: Authority, rules: RulesInForce, lookUp: Resolve, connectTo: ConnectTo): Promise<Dialed> {
  const { host, port } = target
  const name = 'name' in host ? host.name : undefined
  let found: readonly IpAddress[]
  if ('name' in host) {
    const decision = rules.decideName(host.name, port)
    if (!decision.isAllowed) return { kind: 'refused', refusal: decision.reason }
    try {
      found = (await lookUp(`${host.name}.`)).slice(0, MAX_ADDRESSES).flatMap((text) => parseIp(text) ?? [])
    } catch (error) {
      return { kind: 'failed', why: `the name cannot be looked up (${causeOf(error)})`, rule: decision.rule }
    }
    if (found.length === 0) return { kind: 'failed', why: 'the name has no address', rule: decision.rule }
  } else found = [host.address]
  const allowed: Checked[] = []
  let refusal: Refusal | undefined
  for (const address of found) {
    const decision = rules.isOfService(address, port) ? OF_SERVICE : rules.decideAddress(name, address, port)
    if (decision.isAllowed) allowed.push({ address, rule: decision.rule })
    else refusal ??= decision.reason
  }
  if (allowed.length === 0) return { kind: 'refused', refusal: refusal! }
  const isOfService = (server: Endpoint, address: IpAddress) => rules.isOfService(address, port, server.localAddress)
  return await connectToOne(allowed.slice(0, MAX_TRIED_ADDRESSES), port, connectTo, isOfService)
}

/** Tries one address after the other. An address may have become one of this machine since it was checked. */
async function connectToOne(
  allowed: readonly Checked[],
  port: number,
  connectTo: ConnectTo,
  isOfService: (server: Endpoint, address: IpAddress) => boolean,
): Promise<Dialed> {
  let why = ''
  for (const { address, rule } of allowed) {
    const text = ipText(address)
    try {
      const server = await connectTo(text, port)
      if (!isOfService(server, address)) return { kind: 'connected', server, address: text, rule }
      server.destroy()
      return { kind: 'refused', refusal: OF_SERVICE.reason }
    } catch (error) {
      why = `${text} cannot be connected to (${causeOf(error)})`
    }
  }
  return { kind: 'failed', why, rule: allowed[0]!.rule }
}

/** Settles when the kernel has an answer. A connection that comes too late is broken off. */
async function attempt(hostname: string, port: number, isLate: () => boolean): Promise<Endpoint> {
  const opened = Promise.withResolvers<Endpoint>()
  const socket = { ...Endpoint.handlers(opened.resolve), connectError: () => {} }
  await Bun.connect({ hostname, port, allowHalfOpen: true, data: undefined, socket })
  const endpoint = await opened.promise
  if (isLate()) endpoint.destroy()
  return endpoint
}

/** As much work at a time as `count`. The rest waits in turn. */
class Turns {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  /** Runs `work` in its turn. */
  async use<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free++
      else next()
    }
  }
}

class TimedOut extends Error {
  override name = 'TimedOut'
}

/**
 * Runs `work` in its turn, of its task and of all tasks. Rejects with `TimedOut` after `ms`; work whose turn has not come by then
 * is not begun.
 */
async function limited<T>(
  ms: number,
  [ofTask, all]: readonly [Turns, Turns],
  work: (isLate: () => boolean) => Promise<T>,
): Promise<T> {
  const late = Promise.withResolvers<never>()
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    late.reject(new TimedOut())
  }, ms)
  const begin = async () => {
    if (isLate) throw new TimedOut()
    return await work(() => isLate)
  }
  try {
    return await Promise.race([ofTask.use(() => all.use(begin)), late.promise])
  } finally {
    clearTimeout(timer)
  }
}

const causeOf = (error: unknown): string =>
  error instanceof TimedOut ? 'no answer in time' : (systemCodeOf(error) ?? 'an unknown fault')
