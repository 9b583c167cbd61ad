/** Both services on Unix sockets (`--addr unix:/path`), and the clients that call them. Against the built executables. */
import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Taskmill } from '../../client/client.ts'
import { builtProgram } from '../../scripts/build.ts'
import { MAX_SOCKET_PATH_BYTES } from '../../shared/files/socket-file.ts'
import { socketUrl } from '../../shared/http/socket-address.ts'
import { startBridge } from '../support/bridge.ts'
import { runClient } from '../support/client.ts'
import { type StartedService, startService, testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

/** A control service on a socket. It and the directory of the socket are gone at the end of the block. */
async function controlOnSocket(flags: readonly string[] = []) {
  const temp = tempDir()
  const dir = join(temp.path, 'Ada Lovelace')
  mkdirSync(dir)
  const path = join(dir, 'a,b.sock')
  const url = socketUrl(path)
  const start = () => startService('taskmill-control', ['--addr', url], { dataDir: join(dir, 'data'), flags })
  let service: StartedService = await start()
  return {
    ...{ dir, path, url },
    pid: () => service.process.pid,
    process: () => service.process,
    async restart() {
      await service.dispose() // by SIGKILL, which leaves the socket
      expect(existsSync(path)).toBe(true)
      service = await start()
    },
    async [Symbol.asyncDispose]() {
      await service.dispose()
      temp[Symbol.dispose]()
    },
  }
}

async function refused(address: string, dataDir: string): Promise<string> {
  const command = [await builtProgram('taskmill-control'), '--addr', address, '--data-dir', dataDir]
  const child = Bun.spawn(command, { ...{ env: testEnvironment(), stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' } })
  const stderr = await new Response(child.stderr).text()
  expect(await child.exited).toBe(2)
  return stderr
}

describe('control on a Unix socket', () => {
  test('listens there, lets only its owner connect, and removes the socket at its end', async () => {
    await using control = await controlOnSocket()
    expect(statSync(control.path).mode & 0o777).toBe(0o600)
    const answer = await fetch('http://localhost/health', { unix: control.path })
    expect(answer.status).toBe(200)
    control.process().kill('SIGTERM')
    expect(await control.process().exited).toBe(0)
    expect(existsSync(control.path)).toBe(false)
  })

  test('takes the place of one that was killed, and of nobody else', async () => {
    await using control = await controlOnSocket()
    const others = join(control.dir, 'others')
    expect(await refused(control.url, others)).toContain(`${control.path}: the address is in use`)
    await control.restart()
    expect((await fetch('http://localhost/health', { unix: control.path })).status).toBe(200)
    const file = join(control.dir, 'file')
    writeFileSync(file, 'precious')
    expect(await refused(socketUrl(file), others)).toContain('there is something else than a socket')
    expect(await Bun.file(file).text()).toBe('precious')
    expect(await refused(socketUrl(join(control.dir, 'none', 'a.sock')), others)).toContain('directory does not exist')
    const long = `/${'x'.repeat(MAX_SOCKET_PATH_BYTES)}`
    expect(await refused(socketUrl(long), others)).toContain(`at most ${MAX_SOCKET_PATH_BYTES}`)
    expect(existsSync(others)).toBe(false)
  })

  test('is called by the command line, also for ids that are dots', async () => {
    await using control = await controlOnSocket()
    const client = (args: readonly string[], stdin?: string) => runClient(args, { url: control.url, stdin })
    const graph = { tasks: [{ id: '..', type: 'shell', params: { command: 'echo', args: ['hello'] } }] }
    expect((await client(['submit', '-'], JSON.stringify(graph))).exitCode).toBe(0)
    expect((await client(['wait', '..'])).exitCode).toBe(0)
    expect((await client(['get', '..'])).envelope.data).toMatchObject({ id: '..', status: 'success' })
    expect((await client(['logs', '..'])).envelope.data).toMatchObject({ stdout: 'hello\n' })
    expect((await client(['health', '--ready'])).exitCode).toBe(0)
  })

  test('is called by taskmill/client and by taskmill mcp', async () => {
    await using control = await controlOnSocket()
    const mill = new Taskmill({ url: control.url })
    const details = await mill.run({ tasks: [{ id: 'a', type: 'noop' }] })
    expect(details.state).toBe('success')
    await using bridge = await startBridge(control.url)
    const listed = await bridge.request({ id: 1, method: 'tools/list' })
    expect(listed.result.tools.length).toBeGreaterThan(5)
  })

  test('that has ended is told as such', async () => {
    using dir = tempDir()
    const url = socketUrl(join(dir.path, 'none.sock'))
    const { exitCode, envelope } = await runClient(['list'], { url })
    expect([exitCode, envelope.error?.message]).toEqual([
      1,
      `cannot reach the control service at ${url}: there is no such socket (is it running? start it with taskmill up, or set SERVICE_URL)`,
    ])
    const started = await runClient(['ensure-running', '--start'], { url })
    const hints = JSON.stringify(started.envelope)
    expect(hints).toContain('it is a Unix socket')
    expect(hints).toContain(`curl -i --unix-socket ${join(dir.path, 'none.sock')} http://localhost/health`)
  })
})

test('install-mcp lets the host of a service on a socket start taskmill mcp', async () => {
  const url = 'unix:/run/user/1000/taskmill.sock'
  const { envelope } = await runClient(['install-mcp'], { url })
  expect(envelope.data).toMatchObject({
    transport: 'stdio',
    config: { mcpServers: { taskmill: { args: ['mcp'], env: { SERVICE_URL: url } } } },
  })
  const refused = await runClient(['install-mcp', '--transport', 'http'], { url })
  expect([refused.exitCode, refused.envelope.error?.message]).toEqual([
    2,
    'an MCP host cannot call a Unix socket: use --transport stdio',
  ])
})

test('a runtime service on a socket registers only an address that control can call', async () => {
  using dir = tempDir()
  const command = [await builtProgram('taskmill-runtime'), 'serve', '--data-dir', join(dir.path, 'data')]
  const flags = ['--listen-addr', socketUrl(join(dir.path, 'a.sock')), '--register', 'http://127.0.0.1:1']
  const child = Bun.spawn([...command, ...flags, '--runtime-id', 'one'], {
    ...{ env: testEnvironment(), stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' },
  })
  expect(await new Response(child.stderr).text()).toContain('--register needs --advertise')
  expect(await child.exited).toBe(2)
})
