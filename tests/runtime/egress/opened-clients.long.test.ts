/**
 * Real programs whose TLS the proxy ends, with the environment that a task gets: they trust the authority of the sandbox, and
 * their requests get the secret. Programs that are not installed are skipped.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { proxyEnvironment, trustEnvironment } from '../../../runtime/tasks/launch-plan.ts'
import { testCertificate } from '../../support/certificate.ts'
import { TestProxy } from '../../support/egress.ts'
import { has } from '../../support/proxied-clients.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'

setDefaultTimeout(180_000) // Go compiles its library

const SECRET = 'tok-4f9a/Zq+c8'

let temp: TempDir
let server: Bun.Server<undefined>
let proxy: TestProxy
let env: Record<string, string>
const got: (string | null)[] = []

beforeAll(async () => {
  temp = tempDir()
  const { tls, authorityPath } = testCertificate(temp.path, 'DNS:api.example')
  server = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0, tls },
    fetch: ({ url, headers }) => {
      got.push(headers.get('authorization'))
      const { pathname, origin } = new URL(url)
      if (pathname.endsWith('/info/refs')) return new Response(`${'1'.repeat(40)}\trefs/heads/main\n`)
      if (pathname.startsWith('/simple/'))
        return new Response('<a href="/p-1.0.tar.gz">p-1.0.tar.gz</a>', { headers: { 'content-type': 'text/html' } })
      if (pathname === '/crates/config.json') return Response.json({ dl: `${origin}/crates` })
      if (pathname === '/crates/1/p')
        return Response.json({ name: 'p', vers: '1.0.0', deps: [], cksum: '0'.repeat(64), features: {}, yanked: false })
      return Response.json({
        name: 'p',
        'dist-tags': { latest: '1.0.0' },
        versions: { '1.0.0': { name: 'p', version: '1.0.0', dist: { tarball: `${origin}/p.tgz` } } },
      })
    },
  })
  proxy = new TestProxy({
    rules: {
      allow: [{ host: 'api.example', headers: { Authorization: { secret: 'token', prefix: 'Bearer ' } } }, '127.0.0.1'],
    },
    ...{ names: { 'api.example': ['127.0.0.1'] }, roots: readFileSync(authorityPath, 'utf8') },
    readSecret: () => Buffer.from(SECRET),
  })
  await proxy.authority.prepare()
  const bundle = join(temp.path, 'bundle.pem')
  writeFileSync(bundle, proxy.authority.bundle())
  writeFileSync(join(temp.path, 'main.go'), GO)
  writeFileSync(join(temp.path, 'package.json'), JSON.stringify({ dependencies: { p: '1.0.0' } }))
  mkdirSync(join(temp.path, 'src'))
  writeFileSync(join(temp.path, 'src/lib.rs'), '')
  writeFileSync(join(temp.path, 'Cargo.toml'), CRATE)
  const port = await proxy.port()
  const ours = Object.entries(proxyEnvironment({})).map(([name, value]) => [name, value.replace(':3128', `:${port}`)])
  env = {
    PATH: process.env.PATH!,
    HOME: temp.path,
    TMPDIR: temp.path,
    ...Object.fromEntries(ours),
    ...trustEnvironment(bundle),
  }
})
afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  await server.stop(true)
  temp[Symbol.dispose]()
})

const URLLIB = 'import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())'
const REQUESTS = 'import sys, requests; print(requests.get(sys.argv[1]).text)'
const HTTPX = 'import sys, httpx; print(httpx.get(sys.argv[1]).text)'
const GO = `package main
import ("io"; "net/http"; "os")
func main() {
  answer, fault := http.Get(os.Args[1])
  if fault != nil { panic(fault) }
  io.Copy(os.Stdout, answer.Body)
}`
const CRATE = `[package]
name = "c"
version = "1.0.0"
[dependencies]
p = { version = "1", registry = "r" }
`
const FETCH = 'console.log(await (await fetch(process.argv.at(-1))).text())'

type Client = readonly [name: string, isThere: boolean, command: (url: string) => string[], expected: string]

/** What Debian's packages are for, also where the path has another one. */
const PYTHON = ['/usr/bin/python3', 'python3'].find((python) => has(python, '--version')) ?? 'python3'
const hasModule = (name: string) => has(PYTHON, '-c', `import ${name}`)
const CLIENTS: readonly Client[] = [
  ['curl', has('curl', '--version'), (url) => ['curl', '-sS', url], '"name":"p"'],
  ['git', has('git', '--version'), (url) => ['git', 'ls-remote', `${url}r.git`], 'refs/heads/main'],
  ['Python urllib', hasModule('urllib'), (url) => [PYTHON, '-c', URLLIB, url], '"name":"p"'],
  ['Python requests', hasModule('requests'), (url) => [PYTHON, '-c', REQUESTS, url], '"name":"p"'],
  ['Python httpx', hasModule('httpx'), (url) => [PYTHON, '-c', HTTPX, url], '"name":"p"'],
  ['pip', has('pip', '--version'), (url) => ['pip', 'index', 'versions', 'p', '-i', `${url}simple/`], 'p (1.0)'],
  [
    'Node from 24 on (earlier ones take no proxy from the environment)',
    has('node', '-e', 'process.exit(process.versions.node.startsWith("2") && process.versions.node < "24" ? 1 : 0)'),
    (url) => ['node', '--input-type=module', '-e', FETCH, url],
    '"name":"p"',
  ],
  ['npm', Bun.which('npm') !== null, (url) => ['npm', 'view', 'p', 'version', '--registry', url], '1.0.0'],
  ['Go', has('go', 'version'), (url) => ['env', 'CGO_ENABLED=0', 'go', 'run', 'main.go', url], '"name":"p"'],
  [
    'cargo',
    has('cargo', '--version'),
    // The cargo of Debian 12 has this protocol as one that is not stable yet.
    (url) => [
      ...['env', 'RUSTC_BOOTSTRAP=1', `CARGO_REGISTRIES_R_INDEX=sparse+${url}crates/`],
      `RUSTUP_HOME=${join(homedir(), '.rustup')}`, // where cargo is the one of rustup
      ...['sh', '-c', 'cargo -Z sparse-registry generate-lockfile && cat Cargo.lock'],
    ],
    'name = "p"\nversion = "1.0.0"',
  ],
  [
    'bun install',
    true,
    (url) => ['env', `BUN_CONFIG_REGISTRY=${url}`, process.execPath, 'install', '--lockfile-only'],
    'Saved lockfile',
  ],
  ['Bun', true, (url) => [process.execPath, '-e', FETCH, url], '"name":"p"'],
]

describe('the secret gets to the server from', () => {
  for (const [name, isThere, command, expected] of CLIENTS) {
    test.skipIf(!isThere)(isThere ? name : `${name}: not installed`, async () => {
      got.length = 0
      const options = { env, cwd: temp.path, stdout: 'pipe', stderr: 'pipe' } as const
      const child = Bun.spawn(command(`https://api.example:${server.port}/`), options)
      const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
      expect(stdout + stderr).toContain(expected)
      expect(new Set(got)).toEqual(new Set([`Bearer ${SECRET}`]))
    })
  }
})
