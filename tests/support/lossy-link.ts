/**
 * A proxy between two services that drops answers and delays exchanges on demand. It drops an answer after the request
 * has arrived, so the caller cannot know whether the request was executed.
 */
interface LossyLink extends AsyncDisposable {
  readonly url: string
  /** Requests that have come so far, as `POST /path`. */
  readonly requests: readonly string[]
  /** Loses the answers of requests that `isLost` says, until it is told otherwise. */
  loseAnswers(isLost: (request: string) => boolean): void
  /** Holds requests that `isHeld` says, before they arrive, until what it returns is called. */
  hold(isHeld: (request: string) => boolean): () => void
}

export function lossyLink(target: () => string): LossyLink {
  const requests: string[] = []
  let isLost: (request: string) => boolean = () => false
  let isHeld: (request: string) => boolean = () => false
  let released = Promise.resolve()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const name = `${request.method} ${pathname}`
      requests.push(name)
      const body = request.method === 'POST' ? await request.text() : undefined
      const headers = new Headers(request.headers)
      headers.delete('host')
      if (isHeld(name)) await released
      try {
        const response = await fetch(target() + pathname + search, {
          ...{ method: request.method, headers, signal: request.signal },
          ...(body && { body }),
        })
        const answer = await response.text()
        if (!isLost(name)) {
          return new Response(answer, { status: response.status, headers: { 'content-type': 'application/json' } })
        }
      } catch {
        // nobody there: that is lost as well
      }
      return new Response('lost', { status: 502 })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    loseAnswers: (which) => {
      isLost = which
    },
    hold: (which) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      isHeld = which
      released = promise
      return () => {
        isHeld = () => false
        resolve()
      }
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}
