/**
 * A proxy between two services that passes bodies on as they come, and stops in the middle of large ones on demand. It counts
 * the bytes of each exchange.
 */
interface SlowLink extends AsyncDisposable {
  readonly url: string
  /** Requests that have come so far, as `PUT /path`, with the bytes of their bodies and answers. */
  readonly exchanges: readonly Exchange[]
  /** Bodies and answers, each for itself, stop after so many bytes more, until what it returns is called. */
  stopAfter(bytes: number): () => void
  /** Breaks the connections of all exchanges. */
  cut(): void
}

export interface Exchange {
  readonly request: string
  bytes: number
}

export function slowLink(target: () => string): SlowLink {
  const exchanges: Exchange[] = []
  let limit = Number.POSITIVE_INFINITY
  let passed = new Map<Exchange, number>()
  let released = Promise.withResolvers<void>()
  let broken = new AbortController()
  const counted = (body: ReadableStream<Uint8Array> | null, exchange: Exchange) =>
    body?.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        async transform(chunk, controller) {
          exchange.bytes += chunk.byteLength
          if (exchange.bytes - (passed.get(exchange) ?? 0) > limit) await released.promise
          controller.enqueue(chunk)
        },
      }),
    )
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const exchange = { request: `${request.method} ${pathname}`, bytes: 0 }
      exchanges.push(exchange)
      const headers = new Headers(request.headers)
      headers.delete('host')
      const signal = AbortSignal.any([request.signal, broken.signal])
      const hasBody = request.method === 'PUT' || request.method === 'POST'
      const body = hasBody ? counted(request.body, exchange) : undefined
      try {
        const init = { method: request.method, headers, signal, body, duplex: 'half' }
        const answer = await fetch(target() + pathname + search, init as RequestInit)
        return new Response(counted(answer.body, exchange), { status: answer.status, headers: answer.headers })
      } catch {
        return new Response('nobody there', { status: 502 })
      }
    },
  })
  const release = () => {
    limit = Number.POSITIVE_INFINITY
    released.resolve()
  }
  return {
    url: `http://127.0.0.1:${server.port}`,
    exchanges,
    stopAfter(bytes) {
      limit = bytes
      passed = new Map(exchanges.map((exchange) => [exchange, exchange.bytes]))
      released = Promise.withResolvers()
      return release
    },
    cut() {
      broken.abort()
      broken = new AbortController()
    },
    [Symbol.asyncDispose]: async () => {
      release()
      await server.stop(true)
    },
  }
}
