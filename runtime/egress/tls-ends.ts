/**
 * Ends TLS of clients, where rules are about the requests inside. Bun ends TLS of sockets that it accepts, so the bytes go
 * through a socket of our own. There is one for each host: to make one for each connection costs as much as a handshake.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { UnixSocketListener } from 'bun'
import { type Host, hostText } from '../../shared/egress/host.ts'
import { type Certificate, type CertificateAuthority, MAX_KEPT_CERTIFICATES } from './authority.ts'
import { Endpoint, HTTP_1 } from './endpoint.ts'
import { relay } from './relay.ts'

export class TlsEnds {
  readonly #directory: string
  readonly #authority: CertificateAuthority
  readonly #ends = new Map<string, TlsEnd>()
  #count = 0

  /** Only the user of the service may enter `directory`. */
  constructor(directory: string, authority: CertificateAuthority) {
    this.#directory = directory
    this.#authority = authority
  }

  /** What is inside the TLS of a client, whose ClientHello is still to be read; undefined if the handshake fails. */
  async end(client: Endpoint, host: Host): Promise<Endpoint | undefined> {
    const name = hostText(host)
    const end = this.#endFor(name, await this.#authority.certificateFor(host))
    try {
      return await end.end(client)
    } catch (error) {
      if (this.#ends.get(name) === end) this.#remove(name) // its socket may be gone
      throw error
    }
  }

  /** Where the sockets are. */
  get paths(): string[] {
    return [...this.#ends.values()].map(({ path }) => path)
  }

  /** Connections that are there go on. */
  stop(): void {
    for (const name of this.#ends.keys()) this.#remove(name)
  }

  #endFor(name: string, certificate: Certificate): TlsEnd {
    const known = this.#ends.get(name)
    if (known?.certificate === certificate) return known
    this.#remove(name)
    if (this.#ends.size >= MAX_KEPT_CERTIFICATES) this.#remove(this.#ends.keys().next().value!)
    const end = new TlsEnd(join(this.#directory, `.${(this.#count++).toString(36)}`), certificate)
    this.#ends.set(name, end)
    return end
  }

  #remove(name: string): void {
    this.#ends.get(name)?.stop()
    this.#ends.delete(name)
  }
}

/** Ends TLS with one certificate. */
class TlsEnd {
  readonly path: string
  readonly certificate: Certificate
  readonly #listener: UnixSocketListener<Endpoint | undefined>
  readonly #shaking = new Map<Endpoint, (isDone: boolean) => void>()
  #accept: (inner: Endpoint) => void = () => {}
  #last: Promise<unknown> = Promise.resolve()

  constructor(path: string, certificate: Certificate) {
    this.path = path
    this.certificate = certificate
    rmSync(path, { force: true })
    this.#listener = Bun.listen<Endpoint | undefined>({
      ...{ unix: path, allowHalfOpen: true, data: undefined },
      tls: { ...certificate, ALPNProtocols: HTTP_1 },
      socket: {
        ...Endpoint.handlers((inner) => this.#accept(inner)),
        handshake: ({ data }, isDone) => {
          if (data !== undefined) this.#shaking.get(data)?.(isDone)
        },
      },
    })
  }

  async end(client: Endpoint): Promise<Endpoint | undefined> {
    // One after the other: two that connect at a time might get the end of each other.
    const connecting = this.#last.then(() => this.#connect())
    this.#last = connecting.catch(() => {})
    const [outer, inner] = await connecting
    const done = Promise.withResolvers<boolean>()
    this.#shaking.set(inner, done.resolve)
    const pass = () => true
    void Promise.all([relay(client, outer, pass), relay(outer, client, pass)])
    const isDone = await Promise.race([done.promise, outer.closed.then(() => false)])
    this.#shaking.delete(inner)
    return isDone ? inner : undefined
  }

  stop(): void {
    void this.#last.finally(() => this.#listener.stop())
  }

  /** Both ends of a new connection. */
  async #connect() {
    const outer = Promise.withResolvers<Endpoint>()
    const inner = Promise.withResolvers<Endpoint>()
    this.#accept = inner.resolve
    const socket = Endpoint.handlers(outer.resolve)
    await Bun.connect({ unix: this.path, allowHalfOpen: true, data: undefined, socket })
    return [await outer.promise, await inner.promise] as const
  }
}
