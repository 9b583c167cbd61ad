/**
 * Names that change, and HTTP/2 that asks for another server than its connection: the built executable and a real sandbox,
 * on a network with public addresses and a name server of the test.
 */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'
import type { NetworkConnection } from '../../shared/contract/task-network.ts'
import { mustSandbox } from '../support/must-sandbox.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

setDefaultTimeout(120_000)

const missing = (() => {
  if (missingSandbox !== undefined) return missingSandbox
  for (const program of ['unshare', 'ip', 'mount', 'openssl', 'curl'])
    if (Bun.which(program) === null) return `needs ${program}`
  const attempt = Bun.spawnSync(['unshare', '--net', '--mount', 'true'])
  return attempt.exitCode === 0 ? undefined : 'needs the right to make network and mount namespaces'
})()
const reason = mustSandbox(missing)
const why = reason === undefined ? '' : ` (skipped: ${reason})`

interface Found {
  readonly task: TaskStatusResponse
  readonly connections: readonly NetworkConnection[]
  readonly requests: readonly string[]
  readonly asked: readonly string[]
}

async function found(script: string): Promise<Found> {
  using dir = tempDir()
  writeFileSync(join(dir.path, 'script'), script)
  await builtProgram('taskmill-runtime')
  const fixture = join(import.meta.dir, '../fixtures/ruled-tasks.ts')
  const child = Bun.spawn(['unshare', '--net', '--mount', process.execPath, fixture, dir.path], {
    ...{ env: testEnvironment(), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  })
  const [text, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  expect([await child.exited, errors]).toEqual([0, ''])
  return JSON.parse(text) as Found
}

const CURL = 'curl --silent --show-error --max-time 20'
const told = ({ connections }: Found) =>
  connections.map(({ verdict, host, port, address, reason: kind }) => [verdict, `${host}:${port}`, address ?? kind])

test.skipIf(reason !== undefined)(`a name that changes reaches no address that its rule does not${why}`, async () => {
  const to = encodeURIComponent('http://redirected.example/secret')
  const outcome = await found(`
    for i in 1 2 3; do ${CURL} http://rebind.example/$i; done
    for i in 1 2; do ${CURL} http://metadata.example/latest/$i; done
    ${CURL} http://mixed.example/; ${CURL} --proxytunnel http://rebind.example/tunnel || true
    ${CURL} --location "http://redirected.example/?to=${to}"
    ${CURL} --proxy socks5h://127.0.0.1:3128 http://rebind.example/socks || true
    for i in 1 2; do ${CURL} http://elsewhere.example/; done`)
  const refused = (name: string, what: string) =>
    expect.stringContaining(`the connection to ${name}:80 is refused: its address is ${what}`)
  expect(outcome.task.stdout!.trim().split('\n')).toEqual([
    'public',
    ...[refused('rebind.example', 'loopback'), refused('rebind.example', 'loopback'), 'public'],
    refused('metadata.example', 'that of a metadata service'),
    ...['public', refused('redirected.example', 'loopback'), 'public', 'other'],
  ])
  expect(outcome.requests.filter((request) => request.startsWith('inner'))).toEqual([])
  expect(told(outcome).filter(([verdict]) => verdict === 'refused')).toEqual([
    ...Array(2).fill(['refused', 'rebind.example:80', 'class']),
    ['refused', 'metadata.example:80', 'class'],
    ['refused', 'rebind.example:80', 'class'],
    ['refused', 'redirected.example:80', 'class'],
    ['refused', 'rebind.example:80', 'class'],
  ])
  expect(told(outcome).filter(([, , address]) => address === '127.0.0.1')).toEqual([])
})

test.skipIf(reason !== undefined)(
  `HTTP/2 works, and stays on the connection to the server that the rule names${why}`,
  async () => {
    const outcome = await found(`
      ${CURL} --insecure --http2 https://a.example/
      ${CURL} --insecure --http2 -H 'Host: b.example' https://a.example/coalesced
      ${CURL} --insecure --http2 https://b.example/ || echo "b: $?"
      ${CURL} --insecure --http2 --connect-to b.example:443:a.example:443 https://b.example/ || echo "b in a: $?"
      ${CURL} --http2-prior-knowledge --proxytunnel http://a.example/ || echo "h2c: $?"`)
    const lines = outcome.task.stdout!.trim().split('\n')
    expect(lines.slice(0, 2)).toEqual(['2.0 a.example', '2.0 b.example'])
    expect(lines.slice(2)).toEqual([
      expect.stringMatching(/^b: (56|7)$/),
      expect.stringMatching(/^b in a: (35|56)$/),
      expect.stringMatching(/^h2c: \d+$/),
    ])
    // Inside TLS only the server sees which name is asked for: no other server is reached, and none under another name.
    // Allowed connections are told when they end, which is up to their server, too.
    const ofVerdict = (verdict: string) => told(outcome).filter(([found]) => found === verdict)
    expect(told(outcome)).toHaveLength(5)
    expect(ofVerdict('allowed')).toEqual(Array(2).fill(['allowed', 'a.example:443', '93.184.216.34']))
    expect(ofVerdict('refused')).toEqual([
      ['refused', 'b.example:443', 'unlisted'],
      ['refused', 'a.example:443', 'server_name'],
      ['refused', 'a.example:80', 'malformed'],
    ])
    expect(outcome.requests).toEqual(['h2: a.example /', 'h2: b.example /coalesced'])
    expect(outcome.asked).not.toContain('b.example')
  },
)
