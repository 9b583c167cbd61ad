/** `taskmill up --socket`. Against the built executables; every test has a HOME of its own. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Finding } from '../../adapter/doctor/finding.ts'
import { startBridge } from '../support/bridge.ts'
import { endProcess } from '../support/stand-in-docker.ts'
import { upData, upPlace } from '../support/up.ts'

const modeOf = (path: string) => statSync(path).mode & 0o777

/** The state of a TCP socket that listens, in /proc/net/tcp. */
const LISTENS = '0A'

/** Inodes of the TCP sockets of this machine that listen. */
const listeningInodes = (): Set<string> =>
  new Set(
    ['/proc/net/tcp', '/proc/net/tcp6']
      .flatMap((file) => (existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []))
      .map((line) => line.trim().split(/\s+/))
      .flatMap(({ 3: state, 9: inode = '' }) => (state === LISTENS ? [inode] : [])),
  )

/** Inodes of the sockets of a process. */
const socketsOf = (pid: number): string[] =>
  descriptorsOf(pid).flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? []
    } catch {
      return [] // closed meanwhile
    }
  })

const descriptorsOf = (pid: number): string[] => {
  try {
    return readdirSync(`/proc/${pid}/fd`)
  } catch {
    return [] // it has ended
  }
}

describe('up --socket', () => {
  const upOnSocket = async (place: Awaited<ReturnType<typeof upPlace>>) =>
    upData(await place.client(['up', '--socket']))

  test('starts both services on sockets that only the user can reach, and on no port', async () => {
    await using place = await upPlace()
    const data = await upOnSocket(place)
    const { sockets } = place.paths
    expect(data).toMatchObject({ url: `unix:${sockets.control}`, runtime_url: `unix:${sockets.runtime}` })
    expect(data).not.toHaveProperty('dashboard')
    for (const path of [sockets.control, sockets.runtime]) {
      expect([statSync(path).isSocket(), modeOf(path)]).toEqual([true, 0o600])
      expect((await fetch('http://localhost/metrics', { unix: path })).status).toBe(401)
    }
    for (const pid of place.started())
      expect(socketsOf(pid).filter((inode) => listeningInodes().has(inode))).toEqual([])
  })

  test('other subcommands, status, doctor and the agent host find them', async () => {
    await using place = await upPlace()
    const first = await upOnSocket(place)
    expect(await upOnSocket(place)).toEqual({ ...first, started: false })
    const graph = { tasks: [{ id: 'a', type: 'runtime.script', params: { script: 'echo hello' } }] }
    expect((await place.client(['submit', '-'], { stdin: JSON.stringify(graph) })).exitCode).toBe(0)
    expect((await place.client(['wait', 'a'])).exitCode).toBe(0)
    expect((await place.client(['logs', 'a'])).envelope.data).toMatchObject({ stdout: 'hello\n' })
    const status = await place.client(['status'])
    expect(status.envelope.data).toMatchObject({ control: { ready: true }, runtime: { ready: true }, url: first.url })
    const { findings } = (await place.client(['doctor'])).envelope.data as { findings: Finding[] }
    const found = findings.filter(({ detail }) => detail.startsWith('ready at'))
    expect(found.map(({ ok, detail }) => [ok, detail])).toEqual([
      [true, `ready at ${first.url}`],
      [true, `ready at ${first.runtime_url}`],
    ])
    const host = await place.client(['install-mcp', '--client', 'claude', '--write'])
    expect(host.envelope.data).toMatchObject({
      transport: 'stdio',
      config: { mcpServers: { taskmill: { args: ['mcp'] } } },
    })
    await using bridge = await startBridge('', place.env)
    expect((await bridge.request({ id: 1, method: 'tools/list' })).result.tools.length).toBeGreaterThan(5)
  })

  test('down ends them and removes the sockets; what was killed is in nobody’s way', async () => {
    await using place = await upPlace()
    const { pid } = await upOnSocket(place)
    await endProcess(pid)
    const again = await upOnSocket(place)
    expect(again).toMatchObject({ started: true })
    expect(await place.client(['down'])).toMatchObject({ envelope: { data: { stopped: true, url: again.url } } })
    expect(place.started()).toEqual([])
    for (const path of Object.values(place.paths.sockets)) expect(existsSync(path)).toBe(false)
    const refused = await place.client(['install-mcp', '--transport', 'http'])
    expect(refused.envelope.error?.message).toContain('an MCP host cannot call a Unix socket')
  })

  test('services on ports are not moved, and the next up without --socket has ports', async () => {
    await using place = await upPlace()
    const { url } = upData(await place.up())
    const refused = await place.client(['up', '--socket'])
    expect(refused.envelope.error?.message).toContain(`taskmill runs already at ${url}`)
    await place.client(['down'])
    await upOnSocket(place)
    await place.client(['down'])
    expect(upData(await place.up()).url).toBe(url)
    const both = await place.client(['up', '--socket', '--port', '8080'])
    expect([both.exitCode, both.envelope.error?.message]).toEqual([2, 'with --socket there are no ports'])
  })

  test('refuses a state directory whose path is too long for sockets', async () => {
    await using place = await upPlace()
    const long = join(place.home, 'x'.repeat(120))
    const { exitCode, envelope } = await place.client(['up', '--socket'], { env: { XDG_STATE_HOME: long } })
    expect([exitCode, envelope.error?.message]).toEqual([1, expect.stringContaining('set XDG_STATE_HOME to a shorter')])
  })
})
