/**
 * A network with rules for the attempts of one sandbox: the proxy of the service, with rules that ask for as much as rules
 * can, and names that all lead to what they must not reach. One of them has the proxy add the planted secret, which it reads as it
 * reads those of a service.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DEFAULT_MAX_CONNECTIONS } from '../../shared/contract/runtime-request.ts'
import { SecretRules } from '../../shared/files/secret-rules.ts'
import { openSecrets } from '../../shared/files/secrets-directory.ts'
import { silentLog } from '../../shared/logs/log.ts'
import { placeholderText } from '../../shared/request/placeholder.ts'
import { CertificateAuthority } from '../egress/authority.ts'
import { Dialer, MAX_ADDRESSES, type Resolve } from '../egress/dial.ts'
import { Egress } from '../egress/egress.ts'
import { ServiceAddresses } from '../egress/service-addresses.ts'
import type { LaunchEgress } from '../launch/plan.ts'
import { Secrets } from '../store/secrets.ts'
import type { Baits } from './baits.ts'
import { echoServer } from './echo-server.ts'

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
  /** Arguments of --bait. */
  readonly baits: readonly string[]
}

export interface RuledNetworkPlaces {
  /** Is made for the socket. */
  readonly socketsDir: string
  /** Is made for the planted secret. No sandbox sees it. */
  readonly secretsDir: string
}

const TASK = 'escape'
const SECRET = 'planted'

/** The secrets of a service that has one, for a server at `port`. The files are as they have to be. */
function plant(secretsDir: string, value: string, port: number): Secrets {
  const files = join(secretsDir, 'files')
  mkdirSync(files, { recursive: true, mode: 0o700 })
  writeFileSync(join(files, SECRET), value, { mode: 0o600 })
  const rules = join(secretsDir, 'rules.toml')
  writeFileSync(rules, `[${SECRET}]\nhosts = ["http://127.0.0.1:${port}"]\n`, { mode: 0o600 })
  const settings = { secretsDir: files, credentialsDir: undefined, ownFiles: {} }
  return new Secrets(openSecrets({ ...settings, rules: new SecretRules(rules, silentLog()) }))
}

/**
 * The baits tell the port of who stands for the service: the rules name it, and do not reach it.
 */
export function ruledNetwork({ socketsDir, secretsDir }: RuledNetworkPlaces, { list, secret }: Baits): RuledNetwork {
  const services = new ServiceAddresses()
  const ports = list.flatMap((bait) => (bait.startsWith('service=') ? [Number(bait.slice('service='.length))] : []))
  for (const port of ports) services.addPort(port)
  const echo = echoServer()
  const secrets = plant(secretsDir, secret, echo.port)
  const proxies = new Egress({
    ...{ directory: join(socketsDir, 'egress'), services, maxConnections: DEFAULT_MAX_CONNECTIONS, maxTasks: 1 },
    bounds: { allow: undefined, deny: [] },
    dialer: new Dialer(resolve),
    authority: new CertificateAuthority(join(socketsDir, 'egress-ca')),
    onUseFault: () => {},
    onFault: () => {}, // it closes the connection: nothing got through
  })
  const hosts = new Set(['127.0.0.1', '::1', ...hostAddresses()])
  const inBrackets = [...hosts].map((host) => (host.includes(':') ? `[${host}]` : host))
  const carried = { secret: SECRET }
  const allow = [
    ...['*', ...ports.flatMap((port) => inBrackets.map((host) => `${host}:${port}`))],
    {
      ...{ host: `127.0.0.1:${echo.port}`, headers: { 'X-Token': carried }, query: { key: carried } },
      basic: { user: 'user', ...carried },
    },
  ]
  const placeholder = placeholderText(TASK, SECRET)
  const socket = proxies.open({
    ...{ task_id: TASK, ordinal: 0, earlier: [], onEvent: () => {} },
    readSecret: (name, to) => secrets.carried(name, {}, to),
    placeholders: new Map([[placeholder, SECRET]]),
    rules: { allow, deny: [], max_connections: DEFAULT_MAX_CONNECTIONS },
  })
  return {
    egress: { socket, port: PORT },
    baits: [
      ...[`proxy=${PORT}`, `echo=${echo.port}`, `placeholder=${placeholder}`],
      `secret=${join(secretsDir, 'files', SECRET)}`,
    ],
    [Symbol.dispose]: () => {
      proxies.forget(TASK)
      echo[Symbol.dispose]()
      rmSync(secretsDir, { recursive: true, force: true })
    },
  }
}
