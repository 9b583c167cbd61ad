/** The proxy of a task in this process, and clients of it that speak in bytes. */
import { connect, createServer, type Socket as NodeSocket, type Server } from 'node:net'
import { join } from 'node:path'
import { CertificateAuthority } from '../../runtime/egress/authority.ts'
import type { ReadSecret } from '../../runtime/egress/credentials.ts'
import { Dialer, type Resolve } from '../../runtime/egress/dial.ts'
import { Egress } from '../../runtime/egress/egress.ts'
import type { NetworkEvent } from '../../runtime/egress/report.ts'
import { ServiceAddresses } from '../../runtime/egress/service-addresses.ts'
import type { SessionTimes } from '../../runtime/egress/session.ts'
import type { NetworkRules } from '../../shared/contract/runtime-request.ts'
import { parseAllowRule, parseRule } from '../../shared/egress/rule.ts'
import { validRules } from '../../shared/request/network-rules.ts'
import { tempDir } from './temp.ts'

export interface ProxyOptions {
  readonly rules: NetworkRules
  readonly bounds?: { readonly allow?: readonly string[]; readonly deny?: readonly string[] }
  /** The addresses of names; a name that is missing has none. */
  readonly names?: Readonly<Record<string, readonly string[]>>
  readonly resolve?: Resolve
  /** Ports of this machine that no rule reaches. */
  readonly ownPorts?: readonly number[]
  readonly maxConnections?: number
  readonly maxTasks?: number
  readonly times?: SessionTimes
  readonly earlier?: readonly NetworkEvent[]
  readonly readSecret?: ReadSecret
  readonly placeholders?: ReadonlyMap<string, string>
  /** Authorities of servers, in PEM. */
  readonly roots?: string
}

/** Proxies that allow what tasks ask for. */
export const testEgress = (dataDir: string): Egress =>
  new Egress({
    directory: join(dataDir, 'egress'),
    bounds: { allow: undefined, deny: [] },
    ...{ maxConnections: 4_096, maxTasks: 4 },
    ...{
      services: new ServiceAddresses(),
      dialer: new Dialer(),
      authority: new CertificateAuthority(join(dataDir, 'ca')),
    },
    onFault: (_, error) => {
      throw error
    },
    onUseFault: (_, error) => {
      throw error
    },
  })

export class TestProxy implements AsyncDisposable {
  readonly #dir = tempDir()
  readonly events: NetworkEvent[] = []
  readonly faults: unknown[] = []
  readonly authority = new CertificateAuthority(join(this.#dir.path, 'ca'))
  readonly egress: Egress
  readonly socketPath: string
  readonly #options: ProxyOptions
  #bridge: Server | undefined

  constructor(options: ProxyOptions) {
    const { bounds = {}, names = {}, ownPorts = [], maxConnections = 4_096 } = options
    this.#options = options
    const services = new ServiceAddresses()
    for (const port of ownPorts) services.addPort(port)
    const resolve = async (name: string) => names[name.replace(/\.$/, '')] ?? []
    this.egress = new Egress({
      directory: join(this.#dir.path, 'egress'),
      bounds: { allow: bounds.allow?.map(parseAllowRule), deny: (bounds.deny ?? []).map(parseRule) },
      maxConnections,
      maxTasks: options.maxTasks ?? 1,
      services,
      ...(options.times !== undefined && { times: options.times }),
      dialer: new Dialer(options.resolve ?? resolve),
      authority: this.authority,
      ...(options.roots !== undefined && { roots: options.roots }),
      onFault: (_, error) => this.faults.push(error),
      onUseFault: (_, error) => this.faults.push(error),
    })
    this.socketPath = this.open('task-1', 1)
  }

  /** Opens the proxy of a task with the same rules. */
  open(task_id: string, ordinal: number): string {
    const { rules, earlier = [], readSecret = () => Buffer.of(), placeholders = new Map() } = this.#options
    const onEvent = (event: NetworkEvent) => void this.events.push(event)
    return this.egress.open({ task_id, ordinal, rules: validRules(rules), readSecret, placeholders, earlier, onEvent })
  }

  get usage() {
    return this.egress.useOf('task-1')!.usage
  }

  /** A TCP port that leads to the socket, for clients that cannot use one. */
  async port(): Promise<number> {
    this.#bridge = createServer({ allowHalfOpen: true }, (client) => {
      const proxy = connect({ path: this.socketPath, allowHalfOpen: true })
      client.pipe(proxy).pipe(client)
      client.on('error', () => proxy.destroy())
      proxy.on('error', () => client.destroy())
      proxy.on('close', () => client.destroy())
    })
    await new Promise<void>((resolve) => this.#bridge!.listen(0, '127.0.0.1', resolve))
    return (this.#bridge.address() as { port: number }).port
  }

  client(): TestClient {
    return new TestClient(connect({ path: this.socketPath, allowHalfOpen: true }))
  }

  /** Sends `text` and returns all that comes back until the end. */
  async exchange(text: string | Uint8Array): Promise<string> {
    const client = this.client()
    client.write(text)
    return await client.rest()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.egress.stop()
    this.#bridge?.close()
    this.#dir[Symbol.dispose]()
  }
}

/** A client that reads and writes bytes, as Latin-1. */
export class TestClient {
  readonly socket: NodeSocket
  #received = ''
  #hasEnded = false
  #wake = () => {}

  constructor(socket: NodeSocket) {
    this.socket = socket
    socket.on('data', (bytes) => {
      this.#received += (bytes as Buffer).toString('latin1')
      this.#wake()
    })
    const ended = () => {
      this.#hasEnded = true
      this.#wake()
    }
    socket.on('end', ended)
    socket.on('close', ended)
    socket.on('error', ended)
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  write(text: string | Uint8Array): void {
    this.socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text)
  }

  /** All that comes up to `end`, which is taken off. */
  async upTo(end: string): Promise<string> {
    while (!this.#received.includes(end)) {
      if (this.#hasEnded) throw new Error(`ended after ${JSON.stringify(this.#received)}`)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
    const at = this.#received.indexOf(end) + end.length
    const found = this.#received.slice(0, at)
    this.#received = this.#received.slice(at)
    return found
  }

  async rest(): Promise<string> {
    while (!this.#hasEnded) await new Promise<void>((resolve) => (this.#wake = resolve))
    this.socket.destroy()
    return this.#received
  }
}

/** The bytes of a SOCKS5 client that asks for a name. The proxy answers with `SOCKS_CONNECTED`. */
export const socksRequest = (host: string, port: number) =>
  `\x05\x01\x00\x05\x01\x00\x03${String.fromCharCode(host.length)}${host}${String.fromCharCode(port >> 8, port & 255)}`

export const SOCKS_CONNECTED = '\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00'

/** A TCP server on 127.0.0.1 that keeps what it receives. */
export class TestServer implements AsyncDisposable {
  readonly #server: Server
  readonly sockets = new Set<NodeSocket>()
  received = ''

  private constructor(onConnection: (socket: NodeSocket, server: TestServer) => void) {
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      this.sockets.add(socket)
      socket.on('close', () => this.sockets.delete(socket))
      socket.on('error', () => {})
      socket.on('data', (bytes) => {
        this.received += (bytes as Buffer).toString('latin1')
      })
      onConnection(socket, this)
    })
  }

  static async start(onConnection: (socket: NodeSocket, server: TestServer) => void): Promise<TestServer> {
    const server = new TestServer(onConnection)
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve))
    return server
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

/** Answers the first head of a connection with `answer`, and ends. */
export const answering = (answer: string) => (socket: NodeSocket, server: TestServer) => {
  socket.on('data', () => {
    if (server.received.includes('\r\n\r\n')) socket.end(answer)
  })
}
