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

  [Symbol.dispose](): void {
    this.#socket.terminate()
  }
}
