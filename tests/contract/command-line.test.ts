/** The command line and the environment of taskmill-control. Source: contract, Binaries and flags. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { builtProgram as binary } from '../../scripts/build.ts'
import { testEnvironment } from '../support/service.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

let temp: TempDir
beforeEach(() => {
  temp = tempDir()
})
afterEach(() => temp[Symbol.dispose]())

type Env = Readonly<Record<string, string>>

async function spawn(args: readonly string[], env: Env = {}) {
  const program = await binary('taskmill-control')
  return Bun.spawn([program, ...args], { cwd: temp.path, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
}

/** Runs the executable to its end. */
async function run(args: readonly string[], env: Env = {}) {
  const child = await spawn(args, env)
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { exitCode: await child.exited, stdout, stderr }
}

/** Runs `use` with the address of a service that was started with exactly these arguments and this environment. */
async function serving(args: readonly string[], env: Env, use: (url: string) => Promise<void>): Promise<void> {
  const child = await spawn(args, env)
  const stderr = new Response(child.stderr).text()
  let log = ''
  const reading = (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of child.stdout) log += decoder.decode(chunk, { stream: true })
  })()
  try {
    const url = await until(() => (child.exitCode === null ? /"url":"([^"]+)"/.exec(log)?.[1] : 'ended'))
    if (url === 'ended') throw new Error(`control did not start: ${await stderr}`)
    await use(url!)
    child.kill('SIGTERM')
    expect(await child.exited).toBe(0)
    expect(await stderr).toBe('')
  } finally {
    child.kill('SIGKILL')
    await Promise.all([child.exited, reading])
  }
}

const FREE_PORT = ['--addr', '127.0.0.1:0'] as const

describe('flags', () => {
  test.each([
    [['--no-such-flag', 'x'], '--no-such-flag'],
    [['--max-concurrency', '0'], '--max-concurrency'],
    [['--allowed-host', 'http://build.example.com'], 'names of hosts, without a scheme or a path'],
    [['--file-root', '/no/such/directory'], '--file-root'],
    [['--file-root', '/dev/null'], 'it is not a directory'],
    [['serve'], 'serve'],
  ])('usage errors are one clear line on stderr and exit code 2: %j', async (args, named) => {
    const { exitCode, stdout, stderr } = await run([...FREE_PORT, ...args])
    expect(exitCode).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/^taskmill-control: [^\n]+\n$/)
    expect(stderr).toContain(named)
    expect(readdirSync(temp.path)).toEqual([])
  })

  test('a bad --addr is one, too', async () => {
    const { exitCode, stdout, stderr } = await run(['--addr', '::1:0'])
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toMatch(/^taskmill-control: [^\n]+"::1:0" for --addr \(SERVICE_ADDR\)[^\n]*\n$/)
  })
})

describe('--help and --version', () => {
  test('help exits 0, whatever else is asked for', async () => {
    const { exitCode, stdout, stderr } = await run(['--addr', 'nonsense', '--help'])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    const names = ['--addr', '--data-dir', '--max-concurrency', '--persist-interval', '--shutdown-timeout']
    for (const name of [...names, '--file-root', '--max-body-bytes', '--kill-grace', '--help', '--version']) {
      expect(stdout).toContain(name)
    }
    for (const name of ['SERVICE_ADDR', 'SERVICE_DATA_DIR', 'SERVICE_MAX_CONCURRENCY', 'SERVICE_SHELL_POLICY']) {
      expect(stdout).toContain(name)
    }
    expect(stdout).toContain('127.0.0.1:8080')
  })

  test('version exits 0', async () => {
    const { exitCode, stdout, stderr } = await run(['--version'])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toMatch(/^taskmill-control \d+\.\d+\.\d+ \(commit \S+, \S+, Bun \d+\.\d+\.\d+\)\n$/)
  })
})

describe('variables', () => {
  test('set what the flags set', async () => {
    const env = {
      SERVICE_ADDR: '127.0.0.1:0',
      SERVICE_DATA_DIR: join(temp.path, 'from-variable'),
      SERVICE_PERSIST_INTERVAL: '20ms',
      SERVICE_MAX_CONCURRENCY: '1',
      SERVICE_SHUTDOWN_TIMEOUT: '0s',
    }
    await serving([], env, async (url) => {
      const tasks = ['first', 'second'].map((id) => ({ id, type: 'sleep', params: { duration_ms: 600_000 } }))
      const accepted = await fetch(`${url}/tasks`, { method: 'POST', body: JSON.stringify({ tasks }) })
      expect(accepted.status).toBe(202)
      await until(() => existsSync(join(env.SERVICE_DATA_DIR, 'state.json')))
      const listed = (await (await fetch(`${url}/tasks`)).json()) as { status: string }[]
      expect(listed.map((task) => task.status)).toEqual(['running', 'pending'])
    })
  })

  test.each([
    ['SERVICE_MAX_CONCURRENCY', 'ten'],
    ['SERVICE_MCP_CONFIG', '/no/such/file'],
  ])('with a malformed value are usage errors: %s=%s', async (name, value) => {
    const { exitCode, stdout, stderr } = await run(FREE_PORT, { [name]: value })
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toMatch(/^taskmill-control: [^\n]+\n$/)
    expect(stderr).toContain(value)
  })
})

describe('the start', () => {
  test('works from an empty directory with an empty environment', async () => {
    await serving(FREE_PORT, {}, async (url) => {
      expect((await fetch(`${url}/health`)).status).toBe(200)
      const body = JSON.stringify({ tasks: [{ id: 'a', type: 'shell', params: { command: 'echo', args: ['hi'] } }] })
      expect((await fetch(`${url}/tasks`, { method: 'POST', body })).status).toBe(202)
      await until(
        async () => (await (await fetch(`${url}/tasks/a`)).json()) as { status: string; result?: unknown },
        (task) => task.status === 'success',
      )
    })
    expect(readdirSync(temp.path)).toEqual(['data'])
    expect(existsSync(join(temp.path, 'data', 'state.json'))).toBe(true)
  })

  test('.env and bunfig.toml of the working directory are not read', async () => {
    const trap = join(temp.path, 'trap.ts')
    writeFileSync(trap, `require('node:fs').writeFileSync(${JSON.stringify(join(temp.path, 'sprung'))}, '')\n`)
    writeFileSync(join(temp.path, 'bunfig.toml'), `preload = ["./trap.ts"]\n[run]\npreload = ["./trap.ts"]\n`)
    for (const name of ['.env', '.env.local', '.env.production', '.env.development']) {
      writeFileSync(join(temp.path, name), 'SERVICE_MAX_CONCURRENCY=nonsense\nSERVICE_DATA_DIR=from-dotenv\n')
    }
    writeFileSync(join(temp.path, 'package.json'), '{"name": "trap", "type": "nonsense"')
    writeFileSync(join(temp.path, 'tsconfig.json'), '{"extends": "./trap.ts"')
    await serving(FREE_PORT, {}, async (url) => {
      expect((await fetch(`${url}/health`)).status).toBe(200)
    })
    expect(existsSync(join(temp.path, 'sprung'))).toBe(false)
    expect(existsSync(join(temp.path, 'from-dotenv'))).toBe(false)
    expect(existsSync(join(temp.path, 'data'))).toBe(true)
  })

  test('on a port in use fails with one line that names the address', async () => {
    using taken = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => {} } })
    const address = `127.0.0.1:${taken.port}`
    const { exitCode, stdout, stderr } = await run(['--addr', address])
    taken.stop(true)
    expect(exitCode).not.toBe(0)
    expect(stdout).not.toContain('"listening"')
    expect(stderr).toMatch(/^taskmill-control: [^\n]+\n$/)
    expect(stderr).toContain(address)
  })

  test('with a data directory that cannot be made fails with one line that names it', async () => {
    writeFileSync(join(temp.path, 'file'), '')
    const { exitCode, stdout, stderr } = await run([...FREE_PORT, '--data-dir', join(temp.path, 'file', 'data')])
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toMatch(/^taskmill-control: [^\n]+\n$/)
    expect(stderr).toContain(join(temp.path, 'file', 'data'))
  })
})

test('a data directory that may not be written stops the start in one line, exit code 2', async () => {
  using dir = tempDir()
  // Root may write anywhere, so the service runs as somebody else; for others the directory is made read-only.
  const isRoot = process.getuid?.() === 0
  chmodSync(dir.path, 0o555)
  const child = Bun.spawn([await binary('taskmill-control'), '--addr', '127.0.0.1:0', '--data-dir', dir.path], {
    cwd: '/',
    env: testEnvironment(),
    ...(isRoot && { uid: 65534, gid: 65534 }),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  expect({ exitCode: await child.exited, stdout, stderr }).toEqual({
    exitCode: 2,
    stdout: '',
    stderr: `taskmill-control: cannot write in the data directory ${dir.path}: permission denied (let the user of the service write there, or choose another with --data-dir)\n`,
  })
  chmodSync(dir.path, 0o755)
})
