/**
 * A server that answers when the test says so. A task that asks it runs exactly as long as the test wants, without any
 * process that could stay behind.
 */
export class Gate implements Disposable {
  /** Requests that have come so far. */
  arrivals = 0
  #status: number | undefined
  readonly #waiting = new Set<(answer: Response) => void>()
  readonly #server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    fetch: () => {
      this.arrivals++
      if (this.#status !== undefined) return new Response('open', { status: this.#status })
      return new Promise<Response>((answer) => this.#waiting.add(answer))
    },
  })

  get url(): string {
    return this.#server.url.href
  }

  /** A task that runs until the gate is opened. */
  task(id: string, more: object = {}): object {
    return { id, type: 'http', params: { url: this.url }, ...more }
  }

  /** Answers all that wait and all that will come. A status of 400 or more fails their tasks. */
  open(status = 200): void {
    this.#status = status
    for (const answer of this.#waiting) answer(new Response('open', { status }))
    this.#waiting.clear()
  }

  /** Holds back what comes from now on. */
  close(): void {
    this.#status = undefined
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true)
  }
}
