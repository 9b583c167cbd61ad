/**
 * An HTTP store for the files of a build: GET, PUT, and a list at `/`.
 *
 * Sandboxed steps see no files of each other, so they exchange files over HTTP. A real build uses an object store.
 * This store keeps files in memory, listens on loopback and has no access control. From the start it serves the
 * sources as `sources.tar.gz`.
 *
 * `bun examples/demo/artifact-store.ts [port]` runs it alone, for a graph that is submitted by hand.
 */
import { inPieces } from './in-pieces.ts'

/** Bytes of one file. */
const MAX_FILE_BYTES = 16 * 1024 * 1024

const MAX_FILES = 100

const NAME = /^[a-z0-9][a-z0-9.-]*$/

/** Where it listens when it runs alone and nothing else is said. */
const DEFAULT_PORT = 18_090

export interface ArtifactStoreOptions {
  /** 0 takes a free one. */
  readonly port: number
  /** Absent: as fast as it can. */
  readonly bytesPerSecond?: number
}

export interface ArtifactStore extends AsyncDisposable {
  readonly url: string
}

export async function serveArtifacts({ port, bytesPerSecond }: ArtifactStoreOptions): Promise<ArtifactStore> {
  const files = new Map([['sources.tar.gz', await packSources()]])
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port,
    reusePort: false,
    maxRequestBodySize: MAX_FILE_BYTES,
    async fetch(request) {
      const name = new URL(request.url, 'http://store').pathname.slice(1)
      if (request.method === 'GET' && name === '') return Response.json([...files.keys()])
      if (!NAME.test(name)) return new Response(`no name for a file: ${name}\n`, { status: 400 })
      if (request.method === 'PUT') {
        if (!files.has(name) && files.size >= MAX_FILES) return new Response('the store is full\n', { status: 507 })
        files.set(name, await request.arrayBuffer())
        return new Response(null, { status: 204 })
      }
      const file = files.get(name)
      if (request.method !== 'GET') return new Response(null, { status: 405, headers: { allow: 'GET, PUT' } })
      if (file === undefined) return new Response(`no such file: ${name}\n`, { status: 404 })
      return new Response(bytesPerSecond === undefined ? file : inPieces(new Uint8Array(file), bytesPerSecond))
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

/** The notes and what makes a guide of them, as people pack sources. */
async function packSources(): Promise<ArrayBuffer> {
  const tar = Bun.spawn(['tar', '-czf', '-', '-C', import.meta.dir, 'documents', 'guide'], {
    env: { ...process.env, COPYFILE_DISABLE: '1' }, // else the tar of macOS adds files of its own
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [bytes, complaint] = await Promise.all([
    new Response(tar.stdout).arrayBuffer(),
    new Response(tar.stderr).text(),
  ])
  if ((await tar.exited) !== 0) throw new Error(`cannot pack the sources in ${import.meta.dir} with tar: ${complaint}`)
  return bytes
}

if (import.meta.main) {
  const port = Number(process.argv[2] ?? DEFAULT_PORT)
  try {
    const { url } = await serveArtifacts({ port })
    console.log(`the store is at ${url}`)
  } catch (error) {
    console.error(`cannot serve on port ${process.argv[2] ?? port}: ${error instanceof Error ? error.message : error}`)
    process.exitCode = 1
  }
}
