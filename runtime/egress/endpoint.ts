/**
 * One end of a connection: reads in order, and writes as fast as the other side takes it.
 *
 * What arrives while nobody reads is kept, up to `MAX_WAITING_BYTES`; then the socket is paused, and the kernel makes the
 * sender wait. A write resolves when the kernel has the bytes. So a connection holds little memory however slow one of
 * its sides is.
 */
import type { Socket, SocketHandler } from 'bun'
import { type Host, hostText } from '../../shared/egress/host.ts'
import { Pace, type Paced } from './pace.ts'

/** Maximum bytes and pieces that wait for a reader, besides one more read of the kernel. A piece of one byte has its costs, too. */
export const MAX_WAITING_BYTES = 64 * 1024
export const MAX_WAITING_PIECES = 64

/** The protocol in TLS, which is all that is read there: `http/1.1` behind its length. */
export const HTTP_1 = Buffer.from('\x08http/1.1')

const NOT_VERIFIED = new Error('its certificate is not verified')

/** One for the event loop. */
const PACE = new Pace()

export class Endpoint implements Paced {
  #socket: Socket<Endpoint | undefined>
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #isPaused = false
  #hasEnded = false
  #isShut = false
  #isClosed = false
  #hasTls = false
  #wakeReader: (() => void) | undefined
  #wakeWriter: (() => void) | undefined
  readonly #closed = Promise.withResolvers<void>()
  /** When bytes last came or went, as `performance.now()`. */
  lastActiveMs = performance.now()

  constructor(socket: Socket<Endpoint | undefined>) {
    this.#socket = socket
    socket.data = this
    PACE.opened(this)
  }

  get localAddress(): string {
    return this.#socket.localAddress
  }

  get remoteAddress(): string {
    return this.#socket.remoteAddress
  }

  /** Resolves once the connection is gone in both directions. */
  get closed(): Promise<void> {
    return this.#closed.promise
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Whether the other side has broken the connection off, instead of ending what it sends. */
  get isBroken(): boolean {
    return this.#isClosed && !this.#hasEnded
  }

  /** The next bytes; undefined once there are no more. One reader at a time. */
  async read(): Promise<Uint8Array | undefined> {
    for (;;) {
      const bytes = this.#waiting.shift()
      if (bytes !== undefined) {
        this.#waitingBytes -= bytes.length
        return bytes
      }
      if (this.#hasEnded || this.#isClosed) return undefined
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wakeReader = resolve
      if (this.#isPaused) PACE.resume(this)
      await promise
      this.#wakeReader = undefined
    }
  }

  /** Puts bytes back, to be read next. */
  unread(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    this.#waiting.unshift(bytes)
    this.#waitingBytes += bytes.length
  }

  /** Has the sender wait until `read` has nothing to return. Until then it is not noticed that the other side leaves. */
  pause(): void {
    PACE.remove(this)
    this.hold()
  }

  hold(): void {
    if (this.#isPaused || this.#isClosed) return
    this.#isPaused = true
    this.#socket.pause()
  }

  release(): void {
    this.#isPaused = false
    if (!this.#isClosed) this.#socket.resume()
  }

  /** Whether a write waits for the other side. */
  get isBlocked(): boolean {
    return this.#wakeWriter !== undefined
  }

  /** False if the connection is gone, or was ended by us. One writer at a time. */
  async write(bytes: Uint8Array): Promise<boolean> {
    let rest = bytes
    while (!this.#isClosed && !this.#isShut) {
      const written = this.#socket.write(rest)
      if (written < 0) return false
      if (written > 0) this.lastActiveMs = performance.now()
      if (written === rest.length) return true
      rest = rest.subarray(written)
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wakeWriter = resolve
      await promise
      this.#wakeWriter = undefined
    }
    return false
  }

  writeText(text: string): Promise<boolean> {
    return this.write(Buffer.from(text, 'latin1'))
  }

  /** Nothing more is written. The other side may go on. */
  end(): void {
    if (this.#isClosed || this.#isShut) return
    this.#isShut = true
    this.#socket.shutdown()
    this.#wakeWriter?.()
  }

  /** Ends both directions. Breaks off what is still under way. */
  destroy(): void {
    if (this.#isClosed) return
    if (this.#isShut && this.#hasEnded) this.#socket.end()
    else this.#socket.terminate()
    this.#gone()
  }

  #received(bytes: Uint8Array): void {
    if (this.#hasTls) return // Bun also hands over what is encrypted: kept, it would pause the socket
    this.lastActiveMs = performance.now()
    this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
    if (this.#wakeReader !== undefined) this.#wakeReader()
    else if (this.#waitingBytes >= MAX_WAITING_BYTES || this.#waiting.length >= MAX_WAITING_PIECES) this.pause()
    PACE.count(this, bytes.length)
  }

  #ended(): void {
    this.#hasEnded = true
    this.#wakeReader?.()
  }

  #gone(): void {
    this.#isClosed = true
    PACE.remove(this)
    this.#wakeReader?.()
    this.#wakeWriter?.()
    this.#closed.resolve()
  }

  /**
   * TLS to the server `host` over this connection, which is for nothing else from now on. Resolves once its certificate is
   * verified, by `ca` in place of what Bun trusts. Rejects with the reason.
   */
  async secured(host: Host, ca: string | undefined): Promise<Endpoint> {
    const { checkServerIdentity } = await import('node:tls') // loading it takes milliseconds
    const done = Promise.withResolvers<Endpoint>()
    const name = hostText(host)
    const handlers = Endpoint.handlers(() => {})
    const [, socket] = this.#socket.upgradeTLS<Endpoint | undefined>({
      data: undefined,
      tls: {
        ...('name' in host && { serverName: name }),
        ...(ca !== undefined && { ca }),
        rejectUnauthorized: true,
        ALPNProtocols: HTTP_1,
      },
      socket: {
        ...handlers,
        open: () => {}, // there is an endpoint once the certificate is verified
        handshake: (tls, isVerified, error) => {
          const fault = error ?? (isVerified ? checkServerIdentity(name, tls.getPeerCertificate()) : NOT_VERIFIED)
          if (fault === undefined) return done.resolve(new Endpoint(tls))
          tls.terminate()
          done.reject(fault)
        },
        close: (tls) => {
          handlers.close!(tls)
          done.reject(new Error('the server broke it off'))
        },
      },
    })
    this.#hasTls = true
    PACE.remove(this)
    this.#socket = socket // what is destroyed if the handshake takes too long
    return await done.promise
  }

  /** Handlers for sockets that get an endpoint in `onOpen`. */
  static handlers(onOpen: (endpoint: Endpoint) => void): SocketHandler<Endpoint | undefined, 'buffer'> {
    // A socket whose handshake fails has none.
    const toEndpoint =
      (act: (endpoint: Endpoint) => void) =>
      ({ data }: Socket<Endpoint | undefined>) => {
        if (data !== undefined) act(data)
      }
    const gone = toEndpoint((endpoint) => endpoint.#gone())
    return {
      open: (socket) => onOpen(new Endpoint(socket)),
      data: ({ data }, bytes) => {
        if (data !== undefined) data.#received(bytes)
      },
      drain: toEndpoint((endpoint) => endpoint.#wakeWriter?.()),
      end: toEndpoint((endpoint) => endpoint.#ended()),
      close: gone,
      error: gone,
    }
  }
}
