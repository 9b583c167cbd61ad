/**
 * A network with rules for the attempts of one sandbox: the proxy of the service, with rules that ask for as much as rules
 * can, and names that all lead to what they must not reach.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DEFAULT_MAX_CONNECTIONS } from '../../shared/contract/runtime-request.ts'
import { CertificateAuthority } from '../egress/authority.ts'
import { Dialer, MAX_ADDRESSES, type Resolve } from '../egress/dial.ts'
import { Egress } from '../egress/egress.ts'
import { ServiceAddresses } from '../egress/service-addresses.ts'
import type { LaunchEgress } from '../launch/plan.ts'

/** The port of the proxy in the sandbox. */
const PORT = 3128

/** What clouds call the service that gives away keys, at the address it has there. */
const METADATA_NAME = 'metadata.google.internal'
const METADATA_ADDRESS = '169.254.169.254'

/** Names of attempts (network-proxy.c): one with every address of the host, and one that only a search list finds. */
const NAME_OF_ALL = 'addresses.escape'
const NAME_IN_SEARCH_LIST = 'search.escape'

/** Nobody else is asked. Names with a dot at their end are absolute. */
const resolve: Resolve = async (name) => {
  if (name === `${METADATA_NAME}.`) return [METADATA_ADDRESS]
  if (name === `${NAME_OF_ALL}.`) return hostAddresses()
  return name === `${NAME_IN_SEARCH_LIST}.` ? [] : ['127.0.0.1']
}

/** Addresses of this machine by the tables of the kernel, at most as many as a name may have; loopback comes last. */
function hostAddresses(): string[] {
  const routes = textOf('/proc/net/fib_trie').matchAll(/\|-- ([\d.]+)((?:\n +\/\d+ .*)+)/g)
  const v4 = [...routes].flatMap(([, address, kinds]) => (kinds!.includes(' LOCAL') ? [address!] : []))
  const v6 = [...textOf('/proc/net/if_inet6').matchAll(/^(?!fe80)[0-9a-f]{32}/gm)]
  const all = new Set([...v4, ...v6.map(([digits]) => digits.match(/.{4}/g)!.join(':'))])
  const isLoopback = (address: string) => address.startsWith('127.')
  return [...all].sort((a, b) => Number(isLoopback(a)) - Number(isLoopback(b))).slice(0, MAX_ADDRESSES)
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return '' // a kernel without IPv6
  }
}

export interface RuledNetwork extends Disposable {
  readonly egress: LaunchEgress
  /** The argument of --bait. */
  readonly bait: string
}

/**
 * `directory` is made for the socket. The baits tell the port of who stands for the service: the rules name it, and do not
 * reach it.
 */
export function ruledNetwork(directory: string, baits: readonly string[]): RuledNetwork {
  const services = new ServiceAddresses()
  const ports = baits.flatMap((bait) => (bait.startsWith('service=') ? [Number(bait.slice('service='.length))] : []))
  for (const port of ports) services.addPort(port)
  const proxies = new Egress({
    ...{ directory: join(directory, 'egress'), services, maxConnections: DEFAULT_MAX_CONNECTIONS, maxTasks: 1 },
    bounds: { allow: undefined, deny: [] },
    dialer: new Dialer(resolve),
    authority: new CertificateAuthority(join(directory, 'egress-ca')),
    onUseFault: () => {},
    onFault: () => {}, // it closes the connection: nothing got through
  })
  const hosts = new Set(['127.0.0.1', '::1', ...hostAddresses()])
  const inBrackets = [...hosts].map((host) => (host.includes(':') ? `[${host}]` : host))
  const allow = ['*', ...ports.flatMap((port) => inBrackets.map((host) => `${host}:${port}`))]
  const socket = proxies.open({
    ...{ task_id: 'escape', ordinal: 0, earlier: [], onEvent: () => {}, readSecret: () => Buffer.of() },
    rules: { allow, deny: [], max_connections: DEFAULT_MAX_CONNECTIONS },
  })
  return { egress: { socket, port: PORT }, bait: `proxy=${PORT}`, [Symbol.dispose]: () => proxies.forget('escape') }
}
