/**
 * One connection of a task, from its first byte to its end.
 *
 * The first byte tells SOCKS5 from HTTP. A request is decided on, and connected if it is allowed. What then goes through a
 * tunnel to a name has to be TLS for that name, or HTTP for that name, of which each request is checked; or the rule says
 * `opaque`. Until that is known, nothing is passed on. A rule about single requests may add secrets to one (`credentials.ts`).
 */
import { messageOf } from '../../shared/contract/errors.ts'
import { type Host, hostText } from '../../shared/egress/host.ts'
import type { Authority } from '../plan/authority.ts'
import type { Credentials } from './credentials.ts'
import type { Dialed } from './dial.ts'
import type { Endpoint } from './endpoint.ts'
import { exchange, type Sides } from './exchange.ts'
import { gather, gatherRequestHead } from './gather.ts'
import { relay, relayAnswer } from './relay.ts'
import type { OpenConnection, Report } from './report.ts'
import { beginTls, peekHello } from './tls-start.ts'
import { helloRefusal, type Protocol, type Refusal, reasonText, targetText } from './verdict.ts'
import { TLS_HANDSHAKE } from './wire/client-hello.ts'
import { type AnswerKind, CONNECTED, ownAnswer } from './wire/http-forward.ts'
import {
  connectTarget,
  type PlainTarget,
  plainTarget,
  type RequestHead,
  readRequestHead,
  tunnelledTarget,
} from './wire/http-request.ts'
import { Malformed } from './wire/malformed.ts'
import { methodReply, readGreeting, readSocksRequest, SOCKS5, type SocksReply, socksReply } from './wire/socks5.ts'

/** Time limits of connections, in milliseconds. */
export interface SessionTimes {
  /** For each message of a client until the proxy knows what it wants. */
  readonly messageMs: number
  /** Without a byte in either direction. */
  readonly idleMs: number
}

export const SESSION_TIMES: SessionTimes = { messageMs: 10_000, idleMs: 10 * 60_000 }

/** Milliseconds for which a client may send on after its answer, before its connection is cut. */
const LINGER_MS = 1_000

const MAX_SOCKS_BYTES = 512

/** The task that a connection is of. */
export interface SessionOwner {
  readonly dial: (target: Authority) => Promise<Dialed>
  readonly isOpaque: (target: Authority) => boolean
  /** What is about single requests. */
  readonly credentials: Credentials
  /** Ends the TLS of a client for a host. Undefined if the handshake fails. */
  readonly endTls: (client: Endpoint, host: Host) => Promise<Endpoint | undefined>
  /** Authorities of servers, in PEM. Undefined: those that Bun trusts, with NODE_EXTRA_CA_CERTS. */
  readonly roots: string | undefined
  /** Takes a place among the connections, or returns why there is none. */
  readonly enter: () => Refusal | undefined
  /** Gives the place back. */
  readonly leave: () => void
  /** Whether a client without a place may still read its answer. */
  readonly mayLinger: () => boolean
  /** Counts bytes before they are passed on. False: there are too many. */
  readonly spend: (sent: number, received: number) => boolean
  /** Counts a connection that was not made. */
  readonly report: (report: Report) => void
  /** Notes a connection that was made. The result counts it at its end. */
  readonly opened: (connection: OpenConnection) => (report: Report) => void
  readonly times: SessionTimes
}

/** An answer of the proxy itself, in the protocol of the client. */
type Answer = (kind: AnswerKind, message: string) => Promise<unknown>

export class Session {
  #client: Endpoint
  readonly #owner: SessionOwner
  readonly #startedMs = performance.now()
  #server: Endpoint | undefined
  #protocol: Protocol = 'http'
  #target: Authority | undefined
  #rule: string | undefined
  #address: string | undefined
  #sent = 0
  #received = 0
  #cut: Refusal | undefined
  #isReported = false
  #report: (report: Report) => void
  #hasPlace: boolean
  #deadline: Timer | undefined
  #answer: Answer = async () => {}

  /** With a place among the connections of the task, it is given back at the end. */
  constructor(client: Endpoint, owner: SessionOwner, hasPlace: boolean) {
    this.#client = client
    this.#owner = owner
    this.#hasPlace = hasPlace
    this.#report = owner.report
  }

  /** Serves the client to the end of its connection. Never rejects, but for a defect of ours. */
  async run(): Promise<void> {
    try {
      await this.#serve()
    } catch (error) {
      if (!(error instanceof Malformed)) throw error
      await this.#refuse({ kind: 'malformed', why: error.message })
    } finally {
      clearTimeout(this.#deadline)
      this.#reportAllowed()
      this.#server?.destroy()
      if (this.#hasPlace) this.#owner.leave()
      await this.#leave()
    }
  }

  /** Ends the connection now. Without a reason it is the service that ends. */
  cut(reason?: Refusal): void {
    this.#cut ??= reason
    this.#server?.destroy()
    this.#client.destroy()
    this.#reportAllowed()
  }

  /** Cuts the connection if it carries nothing for long. */
  cutIfIdle(nowMs: number): void {
    const lastMs = Math.max(this.#client.lastActiveMs, this.#server?.lastActiveMs ?? 0)
    if (nowMs - lastMs > this.#owner.times.idleMs) this.cut()
  }

  async #serve(): Promise<void> {
    this.#within(this.#owner.times.messageMs)
    const first = await this.#client.read()
    if (first === undefined) return
    this.#client.unread(first)
    this.#answer = (kind, message) => this.#client.write(Buffer.from(ownAnswer(kind, message)))
    if (first[0] === SOCKS5) await this.#serveSocks()
    else if (isLetter(first[0]!)) await this.#serveHttp()
    else throw new Malformed('neither HTTP nor SOCKS5')
  }

  async #serveHttp(): Promise<void> {
    const text = await gatherRequestHead(this.#client)
    if (text === undefined) return
    const head = readRequestHead(text)
    if (head.method === 'CONNECT') {
      this.#protocol = 'connect'
      const target = connectTarget(head)
      const server = await this.#connect(target)
      if (server !== undefined && (await this.#client.writeText(CONNECTED))) await this.#tunnel(target, server)
      return
    }
    const target = plainTarget(head)
    const server = await this.#connect(target)
    if (server !== undefined) await this.#exchange(head, target, server)
  }

  async #serveSocks(): Promise<void> {
    this.#protocol = 'socks5'
    this.#answer = async () => {}
    const greeting = await this.#socksMessage(readGreeting)
    if (greeting === undefined) return
    await this.#client.write(methodReply(greeting.offersNoPassword))
    if (!greeting.offersNoPassword) return
    const request = await this.#socksMessage(readSocksRequest)
    if (request === undefined) return
    const reply = (kind: SocksReply) => this.#client.write(socksReply(kind))
    if (request.target === undefined) {
      await reply('unknownCommand')
      return
    }
    this.#answer = (kind) => reply(kind === 'refused' ? 'refusedByRules' : kind === 'failed' ? 'unreachable' : 'failed')
    const server = await this.#connect(request.target)
    if (server !== undefined && (await reply('connected'))) await this.#tunnel(request.target, server)
  }

  #socksMessage<T extends { readonly length: number }>(read: (bytes: Uint8Array) => T | undefined) {
    return gather(this.#client, MAX_SOCKS_BYTES, (bytes) => {
      const found = read(bytes)
      return found && { found, length: found.length }
    })
  }

  /** The connection to `target`. Undefined if there is none; then the client knows why. */
  async #connect(target: Authority): Promise<Endpoint | undefined> {
    clearTimeout(this.#deadline)
    this.#target = target
    const obstacle = this.#hasPlace ? undefined : this.#owner.enter()
    if (obstacle !== undefined) {
      await this.#refuse(obstacle)
      return undefined
    }
    this.#hasPlace = true
    const dialed = await this.#owner.dial(target)
    if (dialed.kind === 'refused') {
      await this.#refuse(dialed.refusal)
      return undefined
    }
    this.#rule = dialed.rule
    if (dialed.kind === 'failed') {
      this.#reportAllowed(dialed.why)
      await this.#answer('failed', `no connection to ${targetText(target)}: ${dialed.why}`)
      return undefined
    }
    this.#address = dialed.address
    this.#server = dialed.server
    if (this.#isReported) return undefined // it was cut meanwhile
    this.#report = this.#owner.opened({
      ...{ host: hostText(target.host), port: target.port, protocol: this.#protocol },
      ...{ address: dialed.address, rule: dialed.rule },
    })
    if (this.#client.isClosed) return undefined // it left meanwhile
    return dialed.server
  }

  async #tunnel(target: Authority, server: Endpoint): Promise<void> {
    this.#answer = async () => this.#client.destroy() // the client talks to the server by now
    const sides = this.#sides(server)
    const isOpened = this.#owner.credentials.opens(target)
    if (isOpened || !this.#owner.isOpaque(target)) {
      this.#within(this.#owner.times.messageMs, { kind: 'protocol' })
      const first = await this.#client.read()
      if (first === undefined) return
      this.#client.unread(first)
      if (first[0] !== TLS_HANDSHAKE) return await this.#httpInTunnel(first[0]!, target, server)
      if (isOpened) return await this.#openTls(target, server)
      const onHello = () => clearTimeout(this.#deadline)
      const start = await beginTls(target.host, { ...sides, onHello })
      if (typeof start === 'object') return await this.#refuse(start)
      if (start === 'gone') return
    }
    clearTimeout(this.#deadline)
    const { sent, received } = sides
    await Promise.all([relay(this.#client, server, sent), relayAnswer(server, this.#client, received)])
  }

  /** Looks at the request inside TLS. The client takes the proxy for the server. */
  async #openTls(target: Authority, server: Endpoint): Promise<void> {
    const hello = await peekHello(this.#client)
    if (hello === undefined) return
    const refusal = helloRefusal(hello, target.host)
    if (refusal !== undefined) return await this.#refuse(refusal)
    const secured = server.secured(target.host, this.#owner.roots) // while the client shakes hands
    secured.catch(() => {}) // told once there is a request
    const inner = await this.#owner.endTls(this.#client, target.host)
    if (inner === undefined) return await this.#refuse({ kind: 'handshake' })
    this.#client = inner
    this.#answer = (kind, message) => inner.write(Buffer.from(ownAnswer(kind, message)))
    const first = await inner.read()
    if (first === undefined) return
    inner.unread(first)
    await this.#httpInTunnel(first[0]!, target, server, secured)
  }

  /** `secured` is the server behind TLS. */
  async #httpInTunnel(first: number, target: Authority, server: Endpoint, secured?: Promise<Endpoint>): Promise<void> {
    if (!isLetter(first)) return await this.#refuse({ kind: 'protocol' })
    const text = await gatherRequestHead(this.#client)
    if (text === undefined) return
    this.#answer = (kind, message) => this.#client.write(Buffer.from(ownAnswer(kind, message)))
    const head = readRequestHead(text)
    await this.#exchange(head, tunnelledTarget(head, target), server, secured)
  }

  async #exchange(head: RequestHead, target: PlainTarget, given: Endpoint, secured?: Promise<Endpoint>): Promise<void> {
    const isTls = secured !== undefined
    const carried = await this.#owner.credentials.carry(head, target, isTls)
    if (carried !== undefined && 'refusal' in carried) return await this.#refuse(carried.refusal)
    const server = isTls ? await this.#verified(secured, target) : given
    if (server === undefined) return
    clearTimeout(this.#deadline)
    const request = { ...(carried ?? { head, target }), isTls }
    const { isAnswered, clientFault, serverFault } = await exchange(request, this.#sides(server))
    if (clientFault !== undefined) this.#cut ??= { kind: 'malformed', why: clientFault }
    if (!isAnswered) await this.#answer('failed', `${targetText(target)} sent ${serverFault ?? 'no answer'}`)
  }

  /** The server behind TLS. Undefined if its certificate is not valid for the host; then the client knows why. */
  async #verified(secured: Promise<Endpoint>, target: Authority): Promise<Endpoint | undefined> {
    try {
      this.#server = await secured
      return this.#server
    } catch (error) {
      const why = `TLS to it failed (${messageOf(error)})`
      this.#reportAllowed(why)
      await this.#answer('failed', `no connection to ${targetText(target)}: ${why}`)
      return undefined
    }
  }

  #sides(server: Endpoint): Sides {
    const { spend } = this.#owner
    return {
      client: this.#client,
      server,
      sent: (bytes) => {
        const mayPass = spend(bytes, 0)
        if (mayPass) this.#sent += bytes
        return mayPass
      },
      received: (bytes) => {
        const mayPass = spend(0, bytes)
        if (mayPass) this.#received += bytes
        return mayPass
      },
    }
  }

  async #refuse(refusal: Refusal): Promise<void> {
    if (this.#isReported) return
    this.#isReported = true
    this.#report({ ...this.#common(), verdict: 'refused', refusal })
    const kind = refusal.kind === 'malformed' ? 'malformed' : 'refused'
    const what = this.#target === undefined ? 'the connection' : `the connection to ${targetText(this.#target)}`
    await this.#answer(kind, `${what} is refused: ${reasonText(refusal)}`)
  }

  #reportAllowed(failure?: string): void {
    if (this.#isReported || this.#target === undefined) return
    if (this.#server === undefined && failure === undefined) return
    this.#isReported = true
    this.#report({
      ...{ ...this.#common(), verdict: 'allowed', rule: this.#rule, address: this.#address },
      ...{ bytesSent: this.#sent, bytesReceived: this.#received, durationMs: performance.now() - this.#startedMs },
      ...(failure !== undefined && { failure }),
      ...(this.#cut !== undefined && { cut: this.#cut }),
    })
  }

  #common() {
    return { protocol: this.#protocol, ...(this.#target !== undefined && { target: this.#target }) }
  }

  /** Cuts the connection unless the client makes up its mind in time. */
  #within(ms: number, refusal?: Refusal): void {
    clearTimeout(this.#deadline)
    this.#deadline = setTimeout(() => {
      if (refusal !== undefined) void this.#refuse(refusal)
      this.#client.destroy()
    }, ms)
  }

  /** Lets the client read its answer: an end with unread bytes of it would break the connection off. */
  async #leave(): Promise<void> {
    if (this.#client.isClosed) return
    if (!this.#owner.mayLinger()) return this.#client.destroy()
    this.#client.end()
    const timer = setTimeout(() => this.#client.destroy(), LINGER_MS)
    while ((await this.#client.read()) !== undefined);
    clearTimeout(timer)
    this.#client.destroy()
  }
}

/** Whether the byte may be in the name of an HTTP method. */
const isLetter = (byte: number): boolean => byte >= 0x41 && byte <= 0x5a
