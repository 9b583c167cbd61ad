/** A receiver of callbacks: an HTTP server that keeps what it gets, and answers as it is told. */
import type { TestCertificate } from './certificate.ts'
import { until } from './until.ts'

export interface Received {
  readonly headers: Headers
  readonly body: string
  readonly data: Record<string, unknown>
}

export function startReceiver(
  answer: (received: Received, count: number) => Response | Promise<Response> = accepted,
  tls?: TestCertificate['tls'],
) {
  const received: Received[] = []
  const server = Bun.serve({
    ...(tls !== undefined && { tls }),
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const body = await request.text()
      const one = { headers: request.headers, body, data: JSON.parse(body) }
      received.push(one)
      return answer(one, received.length)
    },
  })
  return {
    received,
    port: server.port!,
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${server.port}/hook?key=1`,
    /** Resolves once so many have come. */
    has: (count: number) =>
      until(
        () => received,
        ({ length }) => length >= count,
      ),
    stop: () => server.stop(true),
    async [Symbol.asyncDispose]() {
      await server.stop(true)
    },
  }
}

export const accepted = () => new Response(null, { status: 204 })
