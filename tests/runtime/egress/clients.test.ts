/**
 * Real clients through the proxy, with the environment that a task gets: HTTPS and HTTP by curl, git, Bun and Python, a
 * WebSocket, SOCKS5, and packages by pip and npm. The servers are of this machine, and have names that only the proxy knows.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { proxyEnvironment } from '../../../runtime/dispatch/proxy-environment.ts'
import { testCertificate } from '../../support/certificate.ts'
import { TestProxy } from '../../support/egress.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'

setDefaultTimeout(60_000)

const PYTHON = '/usr/bin/python3'
const has = (...command: string[]) => {
  try {
    return Bun.spawnSync(command).exitCode === 0
  } catch {
    return false
  }
}

let dir: TempDir
let authority: string
let http: Bun.Server<undefined>
let https: Bun.Server<undefined>
let proxy: TestProxy
let env: Record<string, string>
let repository: string
/** Further files of the servers, by path. */
const files = new Map<string, string | Uint8Array>()

const typeOf = (path: string) => (path.endsWith('/') ? 'text/html' : 'application/octet-stream')

beforeAll(async () => {
  dir = tempDir()
  const { tls, authorityPath } = testCertificate(dir.path, 'DNS:a.example,DNS:b.example')
  authority = authorityPath
  repository = join(dir.path, 'repository')
  makeRepository(repository)
  const fetch = async (request: Request, server: Bun.Server<undefined>) => {
    if (server.upgrade(request)) return
    const { pathname } = new URL(request.url)
    const served = files.get(pathname)
    if (served !== undefined) return new Response(served, { headers: { 'content-type': typeOf(pathname) } })
    if (pathname === '/moved')
      return Response.redirect(`${new URL(request.url).protocol}//b.example:${server.port}/`, 302)
    const file = Bun.file(join(repository, '.git', pathname.replace('/repository/', '')))
    if (pathname.startsWith('/repository/'))
      return (await file.exists()) ? new Response(file) : new Response('', { status: 404 })
    return new Response(`${request.method} ${request.headers.get('host')} ${await request.text()}`)
  }
  const websocket = {
    message: (socket: Bun.ServerWebSocket<undefined>, text: string | Buffer) => void socket.send(`got ${text}`),
  }
  http = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch, websocket })
  https = Bun.serve({ hostname: '127.0.0.1', port: 0, tls, fetch, websocket })
  proxy = new TestProxy({
    rules: { allow: ['a.example', '127.0.0.1'] },
    names: { 'a.example': ['127.0.0.1'], 'b.example': ['127.0.0.1'] },
  })
  const port = await proxy.port()
  const ours = Object.entries(proxyEnvironment({})).map(([name, value]) => [name, value.replace(':3128', `:${port}`)])
  env = {
    ...{ PATH: process.env.PATH!, HOME: dir.path, ...Object.fromEntries(ours) },
    ...{
      CURL_CA_BUNDLE: authority,
      SSL_CERT_FILE: authority,
      REQUESTS_CA_BUNDLE: authority,
      GIT_SSL_CAINFO: authority,
    },
    NODE_EXTRA_CA_CERTS: authority,
  }
})

afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  expect(proxy.faults).toEqual([])
  await http.stop(true)
  await https.stop(true)
  dir[Symbol.dispose]()
})

function makeRepository(path: string): void {
  mkdirSync(path)
  writeFileSync(join(path, 'file'), 'content\n')
  const git = (...args: string[]) =>
    expect(
      Bun.spawnSync(['git', '-c', 'user.name=t', '-c', 'user.email=t@t.example', ...args], { cwd: path }).exitCode,
    ).toBe(0)
  git('init', '--quiet')
  git('add', '.')
  git('commit', '--quiet', '-m', 'First')
  git('update-server-info')
}

async function run(command: string[], more: Record<string, string> = {}) {
  const child = Bun.spawn(command, { env: { ...env, ...more }, cwd: dir.path, stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { stdout, stderr, code }
}

const plain = (host: string) => `http://${host}:${http.port}`
const secure = (host: string) => `https://${host}:${https.port}`
const curl = (...args: string[]) => run(['curl', '--silent', '--show-error', ...args])

describe.skipIf(!has('curl', '--version'))('curl', () => {
  test('gets and posts by HTTP and HTTPS', async () => {
    for (const url of [plain('a.example'), secure('a.example')]) {
      const host = new URL(url).host
      expect(await curl(url)).toMatchObject({ stdout: `GET ${host} `, code: 0 })
      expect(await curl('--data', 'x'.repeat(10_000), url)).toMatchObject({
        stdout: `POST ${host} ${'x'.repeat(10_000)}`,
      })
      expect(await curl('-H', 'Transfer-Encoding: chunked', '--data', 'chunks', url)).toMatchObject({
        stdout: `POST ${host} chunks`,
      })
    }
  })

  test('speaks SOCKS5, and CONNECT for HTTP', async () => {
    const socks = `socks5h://${new URL(env.HTTP_PROXY!).host}`
    expect(await curl('--proxy', socks, secure('a.example'))).toMatchObject({ stdout: `GET a.example:${https.port} ` })
    expect(await curl('--proxy', socks, plain('a.example'))).toMatchObject({ stdout: `GET a.example:${http.port} ` })
    expect(await curl('--proxytunnel', plain('a.example'))).toMatchObject({ stdout: `GET a.example:${http.port} ` })
  })

  test('gets several files one after the other', async () => {
    const urls = Array.from({ length: 5 }, (_, i) => `${plain('a.example')}/${i}`)
    expect((await curl(...urls)).stdout).toBe(`GET a.example:${http.port} `.repeat(5))
  })

  test('is told why a host is refused', async () => {
    expect((await curl(plain('b.example'))).stdout).toContain('no rule of sandbox.network.allow')
    expect(await curl(secure('b.example'))).toMatchObject({ code: 56, stderr: expect.stringContaining('403') })
    const socks = `socks5h://${new URL(env.HTTP_PROXY!).host}`
    expect(await curl('--proxy', socks, secure('b.example'))).toMatchObject({ code: 97 })
  })

  test('follows a redirect only to a host that is allowed', async () => {
    expect((await curl('--location', `${plain('a.example')}/moved`)).stdout).toContain('is refused')
    expect(await curl('--location', `${secure('a.example')}/moved`)).toMatchObject({ code: 56 })
  })

  test('cannot ask another server than that of its tunnel', async () => {
    const to = ['--connect-to', `b.example:${https.port}:a.example:${https.port}`]
    expect(await curl(...to, secure('b.example'))).toMatchObject({ stdout: '', code: 35 })
    expect(proxy.events.at(-1)).toMatchObject({
      data: { host: 'a.example', reason: 'server_name', found: 'b.example' },
    })
  })
})

test.skipIf(!has('git', '--version'))('git clones by HTTP and HTTPS', async () => {
  for (const [i, url] of [plain('a.example'), secure('a.example')].entries()) {
    expect(await run(['git', 'clone', '--quiet', `${url}/repository`, `clone-${i}`])).toMatchObject({ code: 0 })
    expect(await Bun.file(join(dir.path, `clone-${i}`, 'file')).text()).toBe('content\n')
  }
  expect(await run(['git', 'clone', '--quiet', `${secure('b.example')}/repository`, 'none'])).toMatchObject({
    code: 128,
  })
})

const FETCH = `for (const url of process.argv.slice(1)) {
  try { console.log(await (await fetch(url)).text()) } catch (error) { console.log('none', !!error) }
}`

test('Bun fetches', async () => {
  const urls = [plain('a.example'), secure('a.example'), secure('b.example')]
  const { stdout } = await run([process.execPath, '-e', FETCH, ...urls])
  expect(stdout).toBe(`GET a.example:${http.port} \nGET a.example:${https.port} \nnone true\n`)
})

const URLLIB = `
import sys, urllib.request
for url in sys.argv[1:]:
  try: print(urllib.request.urlopen(url).read().decode())
  except Exception as error: print('none', error)
`
const REQUESTS = `
import sys, requests
session = requests.Session()
for url in sys.argv[1:]:
  try: print(session.get(url).text)
  except requests.exceptions.ProxyError as error: print('none')
`

test.skipIf(!has(PYTHON, '--version'))('Python gets by urllib', async () => {
  const urls = [plain('a.example'), secure('a.example'), secure('b.example')]
  const { stdout } = await run([PYTHON, '-c', URLLIB, ...urls])
  expect(stdout).toMatch(
    `GET a.example:${http.port} \nGET a.example:${https.port} \nnone <urlopen error Tunnel connection failed: 403 Forbidden>`,
  )
})

test.skipIf(!has(PYTHON, '-c', 'import requests'))('Python gets by requests, several times in a session', async () => {
  const urls = [plain('a.example'), plain('a.example'), secure('a.example'), secure('a.example'), secure('b.example')]
  const { stdout } = await run([PYTHON, '-c', REQUESTS, ...urls])
  const [one, two] = [`GET a.example:${http.port} \n`, `GET a.example:${https.port} \n`]
  expect(stdout).toBe(`${one}${one}${two}${two}none\n`)
})

const WEBSOCKET = `
import base64, os, socket, ssl, sys, urllib.parse
url = urllib.parse.urlparse(sys.argv[1]); proxy = urllib.parse.urlparse(os.environ['HTTPS_PROXY'])
s = socket.create_connection((proxy.hostname, proxy.port))
s.sendall(f'CONNECT {url.netloc} HTTP/1.1\\r\\nHost: {url.netloc}\\r\\n\\r\\n'.encode())
assert b' 200 ' in s.recv(4096)
if url.scheme == 'wss': s = ssl.create_default_context().wrap_socket(s, server_hostname=url.hostname)
s.sendall((f'GET / HTTP/1.1\\r\\nHost: {url.netloc}\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n'
  f'Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\\r\\n\\r\\n').encode())
head = b''
while b'\\r\\n\\r\\n' not in head: head += s.recv(1)
assert head.startswith(b'HTTP/1.1 101'), head
s.sendall(bytes([0x81, 0x84, 0, 0, 0, 0]) + b'ping')
print(s.recv(100)[2:].decode())
`

test.skipIf(!has(PYTHON, '--version'))('a WebSocket talks, plain and by TLS', async () => {
  for (const url of [`ws://a.example:${http.port}/`, `wss://a.example:${https.port}/`]) {
    expect(await run([PYTHON, '-c', WEBSOCKET, url])).toEqual({ stdout: 'got ping\n', stderr: '', code: 0 })
  }
})

const WHEEL = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
  wheel.writestr('mill_package.py', 'word = "milled"\\n')
  info = 'mill_package-1.0.dist-info/'
  wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: mill-package\\nVersion: 1.0\\n')
  wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
  wheel.writestr(info + 'RECORD', '')
`

test.skipIf(!has(PYTHON, '-m', 'pip', '--version'))('pip installs from an index', async () => {
  const name = 'mill_package-1.0-py3-none-any.whl'
  const path = join(dir.path, name)
  expect(await run([PYTHON, '-c', WHEEL, path])).toMatchObject({ code: 0 })
  files.set(`/simple/${name}`, await Bun.file(path).bytes())
  files.set('/simple/mill-package/', `<a href="../${name}">${name}</a>`)
  const install = (host: string) => [
    ...[PYTHON, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--target', 'lib', '--retries', '0'],
    ...['--no-cache-dir', '--index-url', `${secure(host)}/simple/`, '--cert', authority, 'mill-package'],
  ]
  expect(await run(install('a.example'))).toMatchObject({ code: 0 })
  expect(await Bun.file(join(dir.path, 'lib/mill_package.py')).text()).toContain('milled')
  expect(await run(install('b.example'))).toMatchObject({ code: 1 })
  expect(proxy.events.at(-1)).toMatchObject({ data: { host: 'b.example', reason: 'unlisted' } })
})

test.skipIf(!has('npm', '--version'))('npm installs from a registry', async () => {
  mkdirSync(join(dir.path, 'package'))
  await Bun.write(join(dir.path, 'package/package.json'), '{"name": "mill-package", "version": "1.0.0"}')
  expect(await run(['tar', '-czf', 'package.tgz', 'package'])).toMatchObject({ code: 0 })
  const tarball = await Bun.file(join(dir.path, 'package.tgz')).bytes()
  files.set('/package.tgz', tarball)
  const dist = {
    tarball: `${secure('a.example')}/package.tgz`,
    integrity: `sha512-${new Bun.CryptoHasher('sha512').update(tarball).digest('base64')}`,
  }
  const version = { name: 'mill-package', version: '1.0.0', dist }
  files.set(
    '/mill-package',
    JSON.stringify({ ...version, 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } }),
  )
  mkdirSync(join(dir.path, 'project'))
  await Bun.write(join(dir.path, 'project/package.json'), '{}')
  const install = (host: string) => [
    ...['npm', 'install', '--prefix', join(dir.path, 'project'), '--no-audit', '--no-fund', '--fetch-retries', '0'],
    ...['--cache', join(dir.path, 'cache'), '--registry', secure(host), 'mill-package'],
  ]
  const refused = await run(install('b.example'))
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('403')])
  expect(await run(install('a.example'))).toMatchObject({ code: 0 })
  const installed = Bun.file(join(dir.path, 'project/node_modules/mill-package/package.json'))
  expect(await installed.json()).toMatchObject({ version: '1.0.0' })
})
