/** The command line of `taskmill-runtime serve`. Source: contract 0, Binaries and flags. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { serveSettings } from '../../runtime/config.ts'
import { allCgroups } from '../../scripts/left-cgroups.ts'
import { serviceIdOf } from '../../shared/process/service-id.ts'
import { flagName } from '../../shared/settings/flags.ts'
import { startRuntime } from '../support/runtime.ts'
import { runRuntime } from '../support/runtime-command.ts'
import { type TempDir, tempDir } from '../support/temp.ts'

const FREE_PORT = ['--listen-addr', '127.0.0.1:0']

let temp: TempDir
beforeEach(() => {
  temp = tempDir()
})
afterEach(() => temp[Symbol.dispose]())

const run = (args: readonly string[], env: Record<string, string> = {}) => runRuntime(args, { env, cwd: temp.path })

describe('usage errors are one clear line on stderr and exit code 2', () => {
  test.each([
    [['--no-such-flag', 'x'], 'no-such-flag'],
    [['--max-running-tasks', '0'], '--max-running-tasks'],
    [['--tenant-quota', 'a=memory:1'], '--tenant-quota'],
    [['--tenant-quota', '=slots:1'], '--tenant-quota'],
    [['--listen-addr', '127.0.0.1:65536'], '65536'],
    [['more'], 'more'],
  ])('%j', async (args, named) => {
    const { exitCode, stdout, stderr } = await run(['serve', ...FREE_PORT, ...args])
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toMatch(/^taskmill-runtime[^\n]*: [^\n]+\n$/)
    expect(stderr).toContain(named)
    expect(readdirSync(temp.path)).toEqual([])
  })

  test('of variables, too', async () => {
    const { exitCode, stdout, stderr } = await run(['serve', ...FREE_PORT], { SERVICE_RUNTIME_CAPACITY_PIDS: 'many' })
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toMatch(/^taskmill-runtime[^\n]*: [^\n]*many[^\n]*\n$/)
  })

  test.each([[[]], [['no-such-command']], [['--no-such-flag']]])(
    'without a subcommand, or another: %j',
    async (args) => {
      const { exitCode, stdout, stderr } = await run(args)
      expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
      expect(stderr).not.toBe('')
      expect(readdirSync(temp.path)).toEqual([])
    },
  )
})

describe('--help and --version exit 0', () => {
  test('the help of serve names every flag, its variable and its default', async () => {
    const { exitCode, stdout, stderr } = await run(['serve', '--listen-addr', 'nonsense', '--help'])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    const flags = Object.keys(serveSettings).map((key) => `--${flagName(key)}`)
    const others = ['SERVICE_RUNTIME_CAPACITY_PIDS', 'SERVICE_TOKEN', '127.0.0.1:18080', '604800', '5000', '128']
    for (const text of [...flags, ...others]) expect(stdout).toContain(text)
  })

  test('the help of the program names its subcommands', async () => {
    const { exitCode, stdout, stderr } = await run(['--help'])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    for (const name of ['serve', 'submit', 'status', 'wait', 'kill', 'run'])
      expect(stdout).toMatch(new RegExp(`\\b${name}\\b`))
  })

  test.each(['submit', 'status', 'wait', 'kill', 'run'])('%s --help', async (name) => {
    const { exitCode, stdout } = await run([name, '--help'])
    expect(exitCode).toBe(0)
    expect(stdout).toContain('--server')
  })

  test('the version is that of the service', async () => {
    const { exitCode, stdout } = await run(['--version'])
    expect(exitCode).toBe(0)
    await using runtime = await startRuntime()
    const { version } = await runtime.json<{ version: string }>('/healthz')
    expect(stdout).toStartWith(`taskmill-runtime ${version} (commit `)
    expect(stdout).toEndWith(`, ${process.platform}-${process.arch}, Bun ${Bun.version})\n`)
    expect(readdirSync(temp.path)).toEqual([])
  })
})

describe('a start that cannot work fails with one line that names the reason', () => {
  test('a port in use', async () => {
    using taken = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => {} } })
    const address = `127.0.0.1:${taken.port}`
    const dataDir = join(temp.path, 'taken')
    mkdirSync(dataDir) // its inode names the control group, so it has to stay
    const { exitCode, stdout, stderr } = await run(['serve', '--listen-addr', address, '--data-dir', dataDir])
    taken.stop(true)
    expect(exitCode).not.toBe(0)
    expect(stdout).not.toContain('"listening"')
    expect(stderr).toMatch(/^taskmill-runtime[^\n]*: [^\n]+\n$/)
    expect(stderr).toContain(address)
    const name = serviceIdOf(dataDir)
    expect(allCgroups().filter((group) => basename(group) === name)).toEqual([])
  })

  test('a data directory that cannot be made', async () => {
    writeFileSync(join(temp.path, 'file'), '')
    const dataDir = join(temp.path, 'file', 'data')
    const { exitCode, stdout, stderr } = await run(['serve', ...FREE_PORT, '--data-dir', dataDir])
    expect(exitCode).not.toBe(0)
    expect(stdout).not.toContain('"listening"')
    expect(stderr).toMatch(/^taskmill-runtime[^\n]*: [^\n]+\n$/)
    expect(stderr).toContain(dataDir)
  })

  test.each(['launchers', 'launchers.log'])('a directory that has the name of our file %s', async (name) => {
    const path = join(temp.path, name)
    mkdirSync(path)
    const { exitCode, stderr } = await run(['serve', ...FREE_PORT, '--data-dir', temp.path])
    expect([exitCode, existsSync(path)]).toEqual([2, true])
    expect(stderr).toMatch(/^taskmill-runtime[^\n]*: [^\n]+\(move it away, or choose another --data-dir\)\n$/)
    expect(stderr).toContain(path)
  })

  test('a plain file that has the name of our pipe', async () => {
    const path = join(temp.path, 'launchers')
    writeFileSync(path, 'whose?')
    const { exitCode, stderr } = await run(['serve', ...FREE_PORT, '--data-dir', temp.path])
    expect([exitCode, await Bun.file(path).text()]).toEqual([2, 'whose?'])
    expect(stderr).toContain(`${path} is there and is no FIFO`)
  })

  test('a database that is none is left as it is', async () => {
    const dataDir = temp.path
    const database = join(dataDir, 'runtime.db')
    writeFileSync(database, 'this is no database, '.repeat(1000))
    const { exitCode, stderr } = await run(['serve', ...FREE_PORT, '--data-dir', dataDir])
    expect(exitCode).not.toBe(0)
    expect(stderr).toContain('runtime.db')
    expect(await Bun.file(database).text()).toBe('this is no database, '.repeat(1000))
  })
})

test('the data directory is made where there is none, with all above it', async () => {
  const dataDir = join(temp.path, 'a', 'b=c', 'd e')
  await using _runtime = await startRuntime({ dataDir })
  expect(existsSync(join(dataDir, 'runtime.db'))).toBe(true)
})

test('configuration of Bun in the working directory changes nothing', async () => {
  const cwd = temp.path
  writeFileSync(join(cwd, 'bunfig.toml'), 'preload = ["./trap.ts"]\n')
  writeFileSync(join(cwd, 'trap.ts'), `require('node:fs').writeFileSync('${join(cwd, 'sprung')}', '')`)
  writeFileSync(join(cwd, '.env'), 'SERVICE_RUNTIME_ID=from-dotenv\n')
  await using runtime = await startRuntime({ cwd, dataDir: join(cwd, 'data') })
  const { runtime_id } = await runtime.json<{ runtime_id: string }>('/api/v1/runtime/info')
  expect(runtime_id).not.toBe('from-dotenv')
  expect(existsSync(join(cwd, 'sprung'))).toBe(false)
})
