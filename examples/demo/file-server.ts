/**
 * The file server that the demo downloads from, on loopback, in the process of the demo.
 *
 * It sends slowly, like a distant server, so that progress is visible. It first answers 503 for one document, so that
 * a retry is visible.
 */
import { join } from 'node:path'
import { inPieces } from './in-pieces.ts'

const DOCUMENTS = join(import.meta.dir, 'documents')

export interface FileServerOptions {
  /** Slower makes the demo longer, faster leaves nothing to watch. */
  readonly bytesPerSecond: number
  /** The document whose first request is answered 503. */
  readonly busyFor: string
  /** Milliseconds that it takes to say so. */
  readonly busyMs: number
}

export interface FileServer extends AsyncDisposable {
  readonly url: string
}

export function serveDocuments({ bytesPerSecond, busyFor, busyMs }: FileServerOptions): FileServer {
  let isBusy = true
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const name = new URL(request.url).pathname.slice(1)
      const file = Bun.file(join(DOCUMENTS, name))
      if (!/^[a-z]+\.txt$/.test(name) || !(await file.exists()))
        return new Response('no such document', { status: 404 })
      if (name === busyFor && isBusy) {
        isBusy = false
        await Bun.sleep(busyMs)
        return new Response('too busy, come back', { status: 503 })
      }
      return new Response(inPieces(await file.bytes(), bytesPerSecond))
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}
