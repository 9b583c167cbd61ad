/** A start that is refused leaves nothing of what it made behind, and touches nothing that was there. Against the built services. */
import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { builtProgram, type ProgramName } from '../../scripts/build.ts'
import { freePort } from '../support/free-port.ts'
import { startService, testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { missingTrace } from '../support/trace.ts'
import { until } from '../support/until.ts'

interface Start {
  readonly program: ProgramName
  readonly argv: readonly string[]
}

/** The exit code and standard error of a start that must fail. */
async function refusedStart({ program, argv }: Start, dataDir: string): Promise<[code: number, stderr: string]> {
  const child = Bun.spawn([await builtProgram(program), ...argv, '--data-dir', dataDir], {
    ...{ env: testEnvironment(), stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' },
  })
  const stderr = await new Response(child.stderr).text()
  return [await child.exited, stderr]
}

const SERVICES = [
  { name: 'control', program: 'taskmill-control', serve: [], addressFlag: '--addr' },
  { name: 'runtime', program: 'taskmill-runtime', serve: ['serve'], addressFlag: '--listen-addr' },
] as const

describe.each(SERVICES)('a start of $name', ({ program, serve, addressFlag }) => {
  const startAt = (address: string, ...more: string[]) => ({ program, argv: [...serve, addressFlag, address, ...more] })
  const takenAddress = () => {
    const taken = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
    return { address: `127.0.0.1:${taken.port}`, [Symbol.dispose]: () => taken.stop(true) }
  }

  test('whose address is in use leaves no directory, nor any above it', async () => {
    using dir = tempDir()
    using taken = takenAddress()
    const [code, stderr] = await refusedStart(startAt(taken.address), join(dir.path, 'a', 'b', 'data'))
    expect([code, stderr]).toEqual([2, expect.stringContaining('the address is in use')])
    expect(readdirSync(dir.path)).toEqual([])
  })

  test('that is stopped by a signal exits with 0 and leaves no directory', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const command = [await builtProgram(program), ...startAt('127.0.0.1:0').argv, '--data-dir', dataDir]
    const child = Bun.spawn(command, { env: testEnvironment(), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
    // Polls without a pause, because the signal should come between the creation of the directory and the first request.
    while (!existsSync(dataDir) && child.exitCode === null) await Bun.sleep(0)
    child.kill('SIGTERM')
    expect([await child.exited, child.signalCode]).toEqual([0, null])
    const hasListened = (await new Response(child.stdout).text()).includes('"listening"')
    expect(existsSync(dataDir)).toBe(hasListened)
  })

  test('leaves a directory that was there', async () => {
    using dir = tempDir()
    using taken = takenAddress()
    const dataDir = join(dir.path, 'data')
    mkdirSync(dataDir)
    writeFileSync(join(dataDir, 'notes.txt'), 'mine')
    expect((await refusedStart(startAt(taken.address), dataDir))[0]).toBe(2)
    const lock = program === 'taskmill-control' ? 'lock' : 'runtime.lock'
    expect(readdirSync(dataDir).sort()).toEqual([lock, 'notes.txt'].sort())
    expect((await refusedStart(startAt(taken.address), join(dataDir, 'below')))[0]).toBe(2)
    expect(existsSync(join(dataDir, 'below'))).toBe(false)
  })

  test.skipIf(missingTrace !== undefined)(
    'that loses a new directory to another one deletes nothing in it',
    async () => {
      using dir = tempDir()
      const [dataDir, trace] = [join(dir.path, 'data'), join(dir.path, 'trace')]
      // The loser is stopped once it has looked for the directory, or made those above it.
      const stop = ['-P', dir.path, '-P', dataDir, '-e', 'inject=access,mkdir:signal=SIGSTOP:when=1']
      const command = [await builtProgram(program), ...startAt('127.0.0.1:0').argv, '--data-dir', dataDir]
      const loser = Bun.spawn(['strace', '-D', '-f', '-qq', '-o', trace, ...stop, ...command], {
        ...{ env: testEnvironment(), stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' },
      })
      await until(
        () => (existsSync(trace) ? readFileSync(trace, 'utf8') : ''),
        (text) => text.includes('stopped by SIGSTOP'),
      )
      const winner = await startService(program, startAt('127.0.0.1:0').argv, { dataDir })
      try {
        const made = readdirSync(dataDir)
        await until(
          () => loser.kill('SIGCONT'),
          () => loser.exitCode !== null,
        )
        expect(await new Response(loser.stderr).text()).toContain(`in use by the process ${winner.process.pid}`)
        expect(loser.exitCode).toBe(2)
        expect(readdirSync(dataDir)).toEqual(expect.arrayContaining(made))
      } finally {
        loser.kill('SIGKILL')
        await winner.dispose()
      }
    },
  )

  test.each([
    ['a token file that is not there', ['--token-file', '/no/such/token']],
    ['a log level that there is not', ['--log-level', 'loud']],
  ])('with %s makes nothing', async (_, flags) => {
    using dir = tempDir()
    expect((await refusedStart(startAt('127.0.0.1:0', ...flags), join(dir.path, 'data')))[0]).toBe(2)
    expect(readdirSync(dir.path)).toEqual([])
  })
})

describe('a start of control', () => {
  const program = 'taskmill-control'

  test('with a configuration of MCP servers that is not there makes nothing', async () => {
    using dir = tempDir()
    const argv = ['--addr', '127.0.0.1:0', '--mcp-config', '/no/such/file']
    expect((await refusedStart({ program, argv }, join(dir.path, 'data')))[0]).toBe(2)
    expect(readdirSync(dir.path)).toEqual([])
  })

  test('whose runtime service does not start leaves nothing of either', async () => {
    using dir = tempDir()
    const port = await freePort()
    // It takes connections and answers none, so it is no runtime service, and none can listen there.
    using _mute = Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response('', { status: 503 }) })
    const argv = ['--addr', '127.0.0.1:0', '--with-runtime', '--runtime-url', `http://127.0.0.1:${port}`]
    const [code, stderr] = await refusedStart({ program, argv }, join(dir.path, 'a', 'data'))
    expect([code, stderr]).toEqual([expect.any(Number), expect.stringContaining('cannot start taskmill-runtime')])
    expect(code).not.toBe(0)
    expect(readdirSync(dir.path)).toEqual([])
  })
})

test('a start of the runtime service that is refused after it listens leaves no socket', async () => {
  using dir = tempDir()
  const [dataDir, socket] = [join(dir.path, 'data'), join(dir.path, 'runtime.sock')]
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'runtime.db'), 'no database '.repeat(100))
  const argv = ['serve', '--listen-addr', `unix:${socket}`]
  const [code, stderr] = await refusedStart({ program: 'taskmill-runtime', argv }, dataDir)
  expect([code, stderr]).toEqual([2, expect.stringContaining('cannot read the database')])
  expect(readdirSync(dir.path)).toEqual(['data'])
})

test('labels of a runtime service that registers nowhere are refused with the remedy, before anything is made', async () => {
  using dir = tempDir()
  const argv = ['serve', '--listen-addr', '127.0.0.1:0', '--label', 'gpu', '--label', 'zone=a']
  const [code, stderr] = await refusedStart({ program: 'taskmill-runtime', argv }, join(dir.path, 'data'))
  expect([code, stderr]).toEqual([
    2,
    'taskmill-runtime: --label gpu (or SERVICE_RUNTIME_LABELS) has no effect without --register: give --register CONTROL_URL, or the labels to control: --runtime-url NAME=URL,gpu, or taskmill runtimes add NAME URL --label gpu\n',
  ])
  expect(readdirSync(dir.path)).toEqual([])
})
