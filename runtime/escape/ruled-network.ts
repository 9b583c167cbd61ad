/**
 * A network with rules for the attempts of one sandbox: the proxy of the service, with rules that ask for as much as rules
 * can, and names that all lead to what they must not reach.
 */
import { join } from 'node:path'
import { DEFAULT_MAX_CONNECTIONS } from '../../shared/contract/runtime-request.ts'
import { Dialer, type Resolve } from '../egress/dial.ts'
import { Egress } from '../egress/egress.ts'
import { OwnAddresses } from '../egress/own-addresses.ts'
import type { LaunchEgress } from '../launcher/plan.ts'

/** The port of the proxy in the sandbox. */
const PORT = 3128

/** What clouds call the service that gives away keys, at the address it has there. */
const METADATA_NAME = 'metadata.google.internal'
const METADATA_ADDRESS = '169.254.169.254'

/** Nobody else is asked. */
const resolve: Resolve = async (name) => [name === METADATA_NAME ? METADATA_ADDRESS : '127.0.0.1']

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
  const own = new OwnAddresses()
  const ports = baits.flatMap((bait) => (bait.startsWith('service=') ? [Number(bait.slice('service='.length))] : []))
  for (const port of ports) own.addPort(port)
  const proxies = new Egress({
    ...{ directory: join(directory, 'egress'), own, maxConnections: DEFAULT_MAX_CONNECTIONS, maxTasks: 1 },
    bounds: { allow: undefined, deny: [] },
    dialer: new Dialer(resolve),
    onUnkept: () => {},
    onFault: () => {}, // it closes the connection: nothing got through
  })
  const allow = ['*', ...ports.flatMap((port) => [`127.0.0.1:${port}`, `[::1]:${port}`])]
  const socket = proxies.open({
    ...{ task_id: 'escape', ordinal: 0, earlier: [], onEvent: () => {} },
    rules: { allow, deny: [], max_connections: DEFAULT_MAX_CONNECTIONS },
  })
  return { egress: { socket, port: PORT }, bait: `proxy=${PORT}`, [Symbol.dispose]: () => proxies.forget('escape') }
}
