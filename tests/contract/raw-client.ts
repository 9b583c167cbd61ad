import { readFileSync } from 'node:fs'

/** A state of a connection in /proc/net/tcp. */
const ESTABLISHED = '01'

/** A TCP client that sends exactly what it is told, for what `fetch` is too well-behaved to send. */
export class RawClient implements Disposable {
  /** What the service has sent so far. */
  received = ''
  /** Resolves when the connection is gone, with its age in milliseconds. */
  readonly closed: Promise<number>
  readonly #socket: Bun.Socket

  private constructor(socket: Bun.Socket, closed: Promise<number>) {
    this.#socket = socket
    this.closed = closed
  }

  static async connect(service: { readonly url: string }): Promise<RawClient> {
    const { hostname, port } = new URL(service.url)
    const opened = performance.now()
    const { promise: closed, resolve } = Promise.withResolvers<number>()
    const decoder = new TextDecoder()
    let client: RawClient | undefined
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data: (_socket, bytes) => {
          client!.received += decoder.decode(bytes, { stream: true })
        },
        close: () => resolve(performance.now() - opened),
        error: () => {},
      },
    })
    client = new RawClient(socket, closed)
    return client
  }

  send(text: string): void {
    this.#socket.write(text)
    this.#socket.flush()
  }

  /** Stops to read: what the service sends stays with it. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** The body of a chunked answer, as far as it has come. */
  get body(): string {
    let body = ''
    for (let at = this.received.indexOf('\r\n\r\n') + 4; at < this.received.length; ) {
      const end = this.received.indexOf('\r\n', at)
      const size = Number.parseInt(this.received.slice(at, end), 16)
      if (end < 0 || !(size > 0)) break
      body += this.received.slice(end + 2, end + 2 + size)
      at = end + 2 + size + 2
    }
    return body
  }

  /** Whether the service has closed the connection, as the kernel knows on its side. For 127.0.0.1, on Linux. */
  get isCut(): boolean {
    const port = this.#socket.localPort.toString(16).toUpperCase().padStart(4, '0')
    const connections = readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
    const [, , , state] = connections.find(([, , remote]) => remote === `0100007F:${port}`) ?? []
    return state !== ESTABLISHED
  }

  [Symbol.dispose](): void {
    this.#socket.terminate()
  }
}
