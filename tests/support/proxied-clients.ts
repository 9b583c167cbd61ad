/**
 * Real programs behind a proxy, with the environment that a task gets. The servers are of this machine, and have names that
 * only the proxy knows: `a.example` is allowed, `b.example` is not.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { proxyEnvironment } from '../../runtime/tasks/launch-plan.ts'
import { testCertificate } from './certificate.ts'
import { TestProxy } from './egress.ts'
import { type TempDir, tempDir } from './temp.ts'

type Server = Bun.Server<undefined>

/** Whether the command can be run here. */
export const has = (...command: string[]): boolean => {
  try {
    return Bun.spawnSync(command).exitCode === 0
  } catch {
    return false
  }
}

interface Parts {
  readonly dir: TempDir
  readonly authority: string
  readonly proxy: TestProxy
  readonly http: Server
  readonly https: Server
  readonly files: Map<string, string | Uint8Array>
  readonly env: Readonly<Record<string, string>>
}

export class ProxiedClients implements AsyncDisposable {
  readonly #parts: Parts
  private constructor(parts: Parts) {
    this.#parts = parts
  }

  static async start(): Promise<ProxiedClients> {
    const dir = tempDir()
    const { tls, authorityPath: authority } = testCertificate(dir.path, 'DNS:a.example,DNS:b.example')
    const repository = join(dir.path, 'repository')
    makeRepository(repository)
    const files = new Map<string, string | Uint8Array>()
    const serving = { hostname: '127.0.0.1', port: 0, fetch: answersWith(files, repository), websocket }
    const http = Bun.serve(serving)
    const https = Bun.serve({ ...serving, tls })
    const proxy = new TestProxy({
      rules: { allow: ['a.example', '127.0.0.1'] },
      names: { 'a.example': ['127.0.0.1'], 'b.example': ['127.0.0.1'] },
    })
    const port = await proxy.port()
    const ours = Object.entries(proxyEnvironment({})).map(([name, value]) => [name, value.replace(':3128', `:${port}`)])
    const env = {
      ...{ PATH: process.env.PATH!, HOME: dir.path, ...Object.fromEntries(ours) },
      ...{ CURL_CA_BUNDLE: authority, SSL_CERT_FILE: authority, REQUESTS_CA_BUNDLE: authority },
      ...{ GIT_SSL_CAINFO: authority, NODE_EXTRA_CA_CERTS: authority },
    }
    return new ProxiedClients({ dir, authority, proxy, http, https, files, env })
  }

  /** The directory in which programs run, their home. */
  get path(): string {
    return this.#parts.dir.path
  }

  /** Of the programs. */
  get env(): Readonly<Record<string, string>> {
    return this.#parts.env
  }

  /** The certificate that vouches for the servers. */
  get authority(): string {
    return this.#parts.authority
  }

  get proxy(): TestProxy {
    return this.#parts.proxy
  }

  get ports(): { readonly http: number; readonly https: number } {
    return { http: this.#parts.http.port!, https: this.#parts.https.port! }
  }

  /** Further files of the servers, by path. */
  get files(): Map<string, string | Uint8Array> {
    return this.#parts.files
  }

  plain(host: string): string {
    return `http://${host}:${this.ports.http}`
  }

  secure(host: string): string {
    return `https://${host}:${this.ports.https}`
  }

  async run(command: string[], more: Record<string, string> = {}) {
    const env = { ...this.env, ...more }
    const child = Bun.spawn(command, { env, cwd: this.path, stdout: 'pipe', stderr: 'pipe' })
    const [stdout, stderr, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ])
    return { stdout, stderr, code }
  }

  /** Throws what went wrong in the proxy. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { proxy, http, https, dir } = this.#parts
    await proxy[Symbol.asyncDispose]()
    await Promise.all([http.stop(true), https.stop(true)])
    dir[Symbol.dispose]()
    if (proxy.faults.length > 0) throw new AggregateError(proxy.faults)
  }
}

const websocket = {
  message: (socket: Bun.ServerWebSocket<undefined>, text: string | Buffer) => void socket.send(`got ${text}`),
}

const typeOf = (path: string) => (path.endsWith('/') ? 'text/html' : 'application/octet-stream')

const answersWith =
  (files: ReadonlyMap<string, string | Uint8Array>, repository: string) =>
  async (request: Request, server: Server): Promise<Response | undefined> => {
    if (server.upgrade(request)) return
    const { pathname, protocol } = new URL(request.url)
    const served = files.get(pathname)
    if (served !== undefined) return new Response(served, { headers: { 'content-type': typeOf(pathname) } })
    if (pathname === '/moved') return Response.redirect(`${protocol}//b.example:${server.port}/`, 302)
    if (pathname.startsWith('/repository/')) {
      const file = Bun.file(join(repository, '.git', pathname.replace('/repository/', '')))
      return (await file.exists()) ? new Response(file) : new Response('', { status: 404 })
    }
    if (pathname.lastIndexOf('/') > 0) return new Response('', { status: 404 })
    return new Response(`${request.method} ${request.headers.get('host')} ${await request.text()}`)
  }

function makeRepository(path: string): void {
  mkdirSync(path)
  writeFileSync(join(path, 'file'), 'content\n')
  const git = (...args: string[]) => {
    const user = ['-c', 'user.name=t', '-c', 'user.email=t@t.example']
    const { exitCode, stderr } = Bun.spawnSync(['git', ...user, ...args], { cwd: path })
    if (exitCode !== 0) throw new Error(`git ${args[0]}: ${stderr}`)
  }
  git('init', '--quiet')
  git('add', '.')
  git('commit', '--quiet', '-m', 'First')
  git('update-server-info')
}
