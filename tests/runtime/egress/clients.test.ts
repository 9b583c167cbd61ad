/** Real clients through the proxy: HTTPS and HTTP by curl, git, Bun and Python, a WebSocket, SOCKS5. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { has, ProxiedClients } from '../../support/proxied-clients.ts'

setDefaultTimeout(60_000)

const PYTHON = '/usr/bin/python3'

let clients: ProxiedClients
beforeAll(async () => {
  clients = await ProxiedClients.start()
})
afterAll(() => clients[Symbol.asyncDispose]())

const curl = (...args: string[]) => clients.run(['curl', '--silent', '--show-error', ...args])

describe.skipIf(!has('curl', '--version'))('curl', () => {
  test('gets and posts by HTTP and HTTPS', async () => {
    for (const url of [clients.plain('a.example'), clients.secure('a.example')]) {
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
    const socks = `socks5h://${new URL(clients.env.HTTP_PROXY!).host}`
    expect(await curl('--proxy', socks, clients.secure('a.example'))).toMatchObject({
      stdout: `GET a.example:${clients.ports.https} `,
    })
    expect(await curl('--proxy', socks, clients.plain('a.example'))).toMatchObject({
      stdout: `GET a.example:${clients.ports.http} `,
    })
    expect(await curl('--proxytunnel', clients.plain('a.example'))).toMatchObject({
      stdout: `GET a.example:${clients.ports.http} `,
    })
  })

  test('gets several files one after the other', async () => {
    const urls = Array.from({ length: 5 }, (_, i) => `${clients.plain('a.example')}/${i}`)
    expect((await curl(...urls)).stdout).toBe(`GET a.example:${clients.ports.http} `.repeat(5))
  })

  test('is told why a host is refused', async () => {
    expect((await curl(clients.plain('b.example'))).stdout).toContain('no rule of sandbox.network.allow')
    expect(await curl(clients.secure('b.example'))).toMatchObject({ code: 56, stderr: expect.stringContaining('403') })
    const socks = `socks5h://${new URL(clients.env.HTTP_PROXY!).host}`
    expect(await curl('--proxy', socks, clients.secure('b.example'))).toMatchObject({ code: 97 })
  })

  test('follows a redirect only to a host that is allowed', async () => {
    expect((await curl('--location', `${clients.plain('a.example')}/moved`)).stdout).toContain('is refused')
    expect(await curl('--location', `${clients.secure('a.example')}/moved`)).toMatchObject({ code: 56 })
  })

  test('cannot ask another server than that of its tunnel', async () => {
    const to = ['--connect-to', `b.example:${clients.ports.https}:a.example:${clients.ports.https}`]
    expect(await curl(...to, clients.secure('b.example'))).toMatchObject({ stdout: '', code: 35 })
    expect(clients.proxy.events.at(-1)).toMatchObject({
      data: { host: 'a.example', reason: 'server_name', found: 'b.example' },
    })
  })
})

test.skipIf(!has('git', '--version'))('git clones by HTTP and HTTPS', async () => {
  for (const [i, url] of [clients.plain('a.example'), clients.secure('a.example')].entries()) {
    expect(await clients.run(['git', 'clone', '--quiet', `${url}/repository`, `clone-${i}`])).toMatchObject({ code: 0 })
    expect(await Bun.file(join(clients.path, `clone-${i}`, 'file')).text()).toBe('content\n')
  }
  expect(
    await clients.run(['git', 'clone', '--quiet', `${clients.secure('b.example')}/repository`, 'none']),
  ).toMatchObject({
    code: 128,
  })
})

const FETCH = `for (const url of process.argv.slice(1)) {
  try { console.log(await (await fetch(url)).text()) } catch (error) { console.log('none', !!error) }
}`

test('Bun fetches', async () => {
  const urls = [clients.plain('a.example'), clients.secure('a.example'), clients.secure('b.example')]
  const { stdout } = await clients.run([process.execPath, '-e', FETCH, ...urls])
  expect(stdout).toBe(`GET a.example:${clients.ports.http} \nGET a.example:${clients.ports.https} \nnone true\n`)
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
  const urls = [clients.plain('a.example'), clients.secure('a.example'), clients.secure('b.example')]
  const { stdout } = await clients.run([PYTHON, '-c', URLLIB, ...urls])
  expect(stdout).toMatch(
    `GET a.example:${clients.ports.http} \nGET a.example:${clients.ports.https} \nnone <urlopen error Tunnel connection failed: 403 Forbidden>`,
  )
})

test.skipIf(!has(PYTHON, '-c', 'import requests'))('Python gets by requests, several times in a session', async () => {
  const urls = [
    clients.plain('a.example'),
    clients.plain('a.example'),
    clients.secure('a.example'),
    clients.secure('a.example'),
    clients.secure('b.example'),
  ]
  const { stdout } = await clients.run([PYTHON, '-c', REQUESTS, ...urls])
  const [one, two] = [`GET a.example:${clients.ports.http} \n`, `GET a.example:${clients.ports.https} \n`]
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
  for (const url of [`ws://a.example:${clients.ports.http}/`, `wss://a.example:${clients.ports.https}/`]) {
    expect(await clients.run([PYTHON, '-c', WEBSOCKET, url])).toEqual({ stdout: 'got ping\n', stderr: '', code: 0 })
  }
})
