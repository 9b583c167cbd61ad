/** --http-policy: which addresses http tasks may connect to. Against the built service. */
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { type Control, startControl } from '../support/control.ts'
import { mustSandbox } from '../support/must-sandbox.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

/** A server on this machine, which counts its requests. */
function startInner() {
  let requests = 0
  const server = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0 },
    fetch() {
      requests++
      return new Response('inner')
    },
  })
  return {
    port: server.port!,
    get requests() {
      return requests
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

const PUBLIC = { flags: ['--http-policy', 'public'] }
const run = (control: Control, url: string): Promise<TaskRecord> => control.run({ type: 'http', params: { url } })

test('by default, all addresses are allowed', async () => {
  await using inner = startInner()
  await using control = await startControl()
  expect(await run(control, `http://127.0.0.1:${inner.port}/`)).toMatchObject({ status: 'success' })
  expect(await run(control, `http://localhost:${inner.port}/`)).toMatchObject({ status: 'success' })
})

describe('public', () => {
  test('refuses addresses of this machine and its networks, in every spelling', async () => {
    await using inner = startInner()
    await using control = await startControl(PUBLIC)
    const { port } = inner
    const spellings: [host: string, normal: string, addressClass: string][] = [
      ...['127.0.0.1', '127.1', '2130706433', '0x7f.1', '017700000001', '[::ffff:127.0.0.1]', '１２７。０。０。１'].map(
        (host): [string, string, string] => [host, '127.0.0.1', 'loopback'],
      ),
      ['[::1]', '::1', 'loopback'],
      ['0', '0.0.0.0', 'unspecified'],
      ['[::]', '::', 'unspecified'],
      ['10.0.0.1', '10.0.0.1', 'private'],
      ['169.254.169.254', '169.254.169.254', 'metadata'],
      ['[64:ff9b::a9fe:a9fe]', '64:ff9b::a9fe:a9fe', 'metadata'],
      ['[fd00:ec2::254]', 'fd00:ec2::254', 'metadata'],
      ['100.64.0.1', '100.64.0.1', 'cgnat'],
    ]
    for (const [host, address, its] of spellings) {
      const task = await run(control, `http://${host}:${port}/`)
      expect(task).toMatchObject({
        status: 'failed',
        error: expect.stringContaining(`${address} (${its}) is no public address (allow it with --http-policy any)`),
        runtime: { error: { code: 'denied', details: { host: address, addresses: [{ address, class: its }] } } },
      })
      expect(task).not.toHaveProperty('result')
    }
    expect(await run(control, `http://localhost:${port}/`)).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/localhost \((127\.0\.0\.1|::1), loopback.*\) is no public address/),
    })
    expect(inner.requests).toBe(0)
    const metrics = await (await control.fetch('/metrics', { headers: { accept: 'text/plain' } })).text()
    expect(metrics).toContain('service_control_addresses_refused_total{for="http",class="loopback"} 9')
    expect(metrics).toContain('service_control_addresses_refused_total{for="http",class="metadata"} 3')
    expect(metrics).toContain('service_control_addresses_refused_total{for="callback",class="loopback"} 0')
  })

  test('says so at submission, where the address is certain', async () => {
    await using control = await startControl({ ...PUBLIC, env: { HTTP_PROXY: 'http://127.0.0.1:9' } })
    const { warnings } = await control.submit([{ id: 'a', type: 'http', params: { url: 'http://10.0.0.1/x' } }])
    const message = 'GET http://10.0.0.1/x: 10.0.0.1 (private) is no public address (allow it with --http-policy any)'
    expect(warnings).toEqual([{ task_id: 'a', message }])
    expect((await control.ended('a')).error).toBe(message)
  })

  test('holds for actions of agents, and is set by its variable, too', async () => {
    await using inner = startInner()
    await using control = await startControl({ env: { SERVICE_HTTP_POLICY: 'public' } })
    const action = { kind: 'os.http', input: { url: `http://127.0.0.1:${inner.port}/` } }
    const body = JSON.stringify({ action_id: 'b', action })
    expect((await control.fetch('/adapters/actions', { method: 'POST', body })).status).toBe(202)
    expect(await control.ended('b')).toMatchObject({ status: 'failed', runtime: { error: { code: 'denied' } } })
    expect(inner.requests).toBe(0)
  })
})

/** Why the network of the test cannot be made here. */
const missing = (() => {
  for (const program of ['unshare', 'ip', 'mount', 'openssl'])
    if (Bun.which(program) === null) return `needs ${program}`
  const attempt = Bun.spawnSync(['unshare', '--user', '--map-root-user', '--net', '--mount', 'true'])
  return attempt.exitCode === 0 ? undefined : 'needs user and network namespaces'
})()
const reason = mustSandbox(missing)

test.skipIf(reason !== undefined)(
  `public checks each address that it connects to${reason === undefined ? '' : ` (skipped: ${reason})`}`,
  async () => {
    using temp = tempDir()
    await builtProgram('taskmill-control')
    const fixture = join(import.meta.dir, '../fixtures/public-network.ts')
    const through = ['unshare', '--user', '--map-root-user', '--net', '--mount']
    const child = Bun.spawn([...through, process.execPath, fixture, temp.path], {
      ...{ env: testEnvironment(), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
    })
    const [text, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    expect([await child.exited, errors]).toEqual([0, ''])
    const { tasks, requests, metrics } = JSON.parse(text) as {
      tasks: Record<string, TaskRecord>
      requests: string[]
      metrics: string
    }
    const outcomes = Object.entries(tasks).map(([name, task]) => [
      name,
      task.status === 'success' ? (task.result as { body: string }).body : [task.runtime?.error?.code, task.error],
    ])
    const remedy = 'is no public address (allow it with --http-policy any)'
    const redirected = (to: string) => {
      const first = `http://mill.example/?to=${encodeURIComponent(to)}`
      return `GET ${first}: redirected to ${new URL(to).href}:`
    }
    expect(Object.fromEntries(outcomes)).toEqual({
      address: 'public',
      name: 'public',
      mixed: 'public',
      'next address': 'public',
      private: ['denied', `GET http://db.example/: db.example (10.0.0.5, private) ${remedy}`],
      metadata: [
        'denied',
        `GET http://metadata.example/latest/meta-data/: metadata.example (169.254.169.254, metadata) ${remedy}`,
      ],
      'rebinding, first': 'public',
      'rebinding, second': [
        'denied',
        `GET http://rebind.example/second: rebind.example (127.0.0.1, loopback) ${remedy}`,
      ],
      'relative redirect': 'public',
      'redirect to a public name': 'public',
      'redirect to loopback': ['denied', `${redirected('http://127.0.0.1/secret')} 127.0.0.1 (loopback) ${remedy}`],
      'redirect to a spelling of loopback': [
        'denied',
        `${redirected('http://[::ffff:7f00:1]/secret')} 127.0.0.1 (loopback) ${remedy}`,
      ],
      'redirect to the metadata service': [
        'denied',
        `${redirected('http://2852039166/latest')} 169.254.169.254 (metadata) ${remedy}`,
      ],
      'redirect to a private name': [
        'denied',
        `${redirected('http://db.example/secret')} db.example (10.0.0.5, private) ${remedy}`,
      ],
      'redirect to a name that changes': [
        'denied',
        expect.stringContaining(`rebind-at-redirect.example (127.0.0.1, loopback) ${remedy}`),
      ],
      'TLS for the name': 'secure',
      'TLS for another name': ['external_failure', expect.stringContaining('ERR_TLS_CERT_ALTNAME_INVALID')],
    })
    expect(requests.filter((request) => !/^(public|secure): /.test(request))).toEqual([])
    expect(requests).toContain('public: GET mill.example /name')
    expect(requests).toContain('public: GET rebind.example /first')
    expect(requests).toContain('secure: GET mill.example /secure')
    expect(requests).not.toContain('secure: GET wrong.example /secure')
    expect(metrics).toContain('service_control_addresses_refused_total{for="http",class="loopback"} 4')
    expect(metrics).toContain('service_control_addresses_refused_total{for="http",class="private"} 2')
    expect(metrics).toContain('service_control_addresses_refused_total{for="http",class="metadata"} 2')
  },
)
