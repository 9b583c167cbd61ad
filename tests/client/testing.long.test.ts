/** Goal: a mill of a test is there at once, and gone with its test, however that ends. Method: real mills. */
import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { findExecutable } from '../../client/testing/executables.ts'
import { processesOf, sweep } from '../../client/testing/sweep.ts'
import { type MillOptions, startTaskmill } from '../../client/testing/testing.ts'
import { executables, startMill } from '../support/mill.ts'
import { testEnvironment } from '../support/service.ts'
import { noProcessesOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const TESTING = join(import.meta.dir, '../../client/testing/testing.ts')

/** Tasks that go on for ever: in both services, in a group of their own. */
const ENDLESS = {
  scope: 'graph',
  tasks: [
    { id: 'here', type: 'shell', params: { script: 'touch here; setsid sleep 6000 & sleep 6000' } },
    { id: 'there', type: 'runtime.script', params: { script: 'setsid sleep 6000 & touch there; echo on; sleep 6000' } },
  ],
} as const

test('a mill works, and nothing of it is left', async () => {
  let home = ''
  {
    await using mill = await startMill({ runtime: true, env: { SERVICE_SHELL_POLICY: 'open' } })
    home = dirname(mill.directory)
    const graph = await mill.client.submit(ENDLESS)
    await until(() => existsSync(join(mill.directory, 'here')), Boolean)
    await mill.client.followLog({ ...graph, id: 'there' }).next()
    expect(mill.runtimeUrl).toStartWith('http://127.0.0.1:')
    expect(mill.log.some(({ msg, service }) => msg === 'listening' && service === 'runtime')).toBe(true)
    const unauthorized = await fetch(`${mill.url}/tasks`)
    expect(unauthorized.status).toBe(401)
    await mill[Symbol.asyncDispose]() // safe to call again
  }
  expect(existsSync(home)).toBe(false)
  expect(processesOf(home)).toEqual([])
})

test('of a killed test process nothing is left either', async () => {
  const script = `
    import { startTaskmill } from ${JSON.stringify(TESTING)}
    const mill = await startTaskmill({ runtime: true, env: { ...${JSON.stringify(testEnvironment())}, SERVICE_SHELL_POLICY: 'open' } })
    const graph = await mill.client.submit(${JSON.stringify(ENDLESS)})
    await mill.client.followLog({ ...graph, id: 'there' }).next()
    console.log(mill.directory)
    await new Promise(() => setInterval(() => {}, 1_000))`
  const env = {
    ...testEnvironment(),
    TASKMILL_BIN: await executables(),
    ...(process.env.TMPDIR && { TMPDIR: process.env.TMPDIR }),
  }
  const child = Bun.spawn([process.execPath, '-e', script], { env, stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' })
  const { value } = await child.stdout.getReader().read()
  const home = dirname(new TextDecoder().decode(value).trim())
  expect(existsSync(home)).toBe(true)
  expect(processesOf(home).length).toBeGreaterThan(3)
  child.kill('SIGKILL')
  await noProcessesOf(home)
  await until(() => existsSync(home), false)
})

test('a kill at any moment of the start leaves nothing', async () => {
  using temp = tempDir()
  const script = `
    import { startTaskmill } from ${JSON.stringify(TESTING)}
    console.log('begin')
    await startTaskmill({ runtime: true, env: ${JSON.stringify(testEnvironment())} })
    await new Promise(() => setInterval(() => {}, 1_000))`
  const env = { ...testEnvironment(), TASKMILL_BIN: await executables(), TMPDIR: temp.path }
  for (let afterMs = 0; afterMs <= 160; afterMs += 20) {
    const child = Bun.spawn([process.execPath, '-e', script], {
      env,
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    await child.stdout.getReader().read()
    await Bun.sleep(afterMs) // no condition: the moment is what varies
    child.kill('SIGKILL')
    await child.exited
    await until(
      () => [...readdirSync(temp.path), ...processesOf(temp.path)],
      (left) => left.length === 0,
    )
  }
})

test('of a test that took too long nothing is left', async () => {
  using temp = tempDir()
  const text = `
    import { test } from 'bun:test'
    import { startTaskmill } from ${JSON.stringify(TESTING)}
    test('late', async () => {
      await using mill = await startTaskmill({ runtime: true, env: { ...${JSON.stringify(testEnvironment())}, SERVICE_SHELL_POLICY: 'open' } })
      await mill.client.run(${JSON.stringify(ENDLESS)})
    }, 5_000)`
  writeFileSync(join(temp.path, 'late.test.ts'), text)
  const mills = join(temp.path, 'mills')
  mkdirSync(mills)
  const env = { ...testEnvironment(), TASKMILL_BIN: await executables(), TMPDIR: mills }
  const command = [process.execPath, 'test', './late.test.ts']
  const child = Bun.spawn(command, { cwd: temp.path, env, stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
  const home = await until(() => readdirSync(mills).find((name) => name.startsWith('taskmill-'))!)
  expect(await new Response(child.stderr).text()).toContain('timed out')
  await noProcessesOf(join(mills, home))
  await until(() => existsSync(join(mills, home)), false)
})

test('mills do not know each other', async () => {
  await using one = await startMill()
  await using two = await startMill()
  await one.client.submit({ tasks: [{ id: 'a', type: 'noop' }] })
  await two.client.submit({ tasks: [{ id: 'a', type: 'noop' }] })
  expect(one.directory).not.toBe(two.directory)
  expect((await Array.fromAsync(two.client.graphs())).length).toBe(1)
})

test('a restarted mill has the same address and data', async () => {
  await using mill = await startMill({ flags: ['--max-concurrency', '1'] })
  await mill.client.submit({ tasks: [{ id: 'a', type: 'noop' }] }, { waitMs: 30_000 })
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    await mill.restart(signal)
    expect((await mill.client.getTask('a')).status).toBe('success')
  }
  expect(mill.log.filter(({ msg }) => msg === 'listening').length).toBe(3)
})

test.each<[MillOptions, string]>([
  [{ flags: ['--no-such-flag'] }, 'no-such-flag'],
  [{ runtime: true, runtimeFlags: ['--max-running-tasks', 'many'] }, '--max-running-tasks'],
  [{ flags: ['--addr=:1'] }, '--addr cannot be set for a mill of a test'],
  [{ flags: ['-log-level', 'error'] }, '--log-level cannot be set'],
  [{ env: { SERVICE_TOKEN: 'x' } }, 'SERVICE_TOKEN cannot be set'],
])('%j: the error says why, and nothing is left', async (options, message) => {
  using temp = tempDir()
  const script = `
    import { startTaskmill } from ${JSON.stringify(TESTING)}
    const env = { ...${JSON.stringify(testEnvironment())}, ...${JSON.stringify(options.env ?? {})} }
    await startTaskmill({ ...${JSON.stringify(options)}, env }).then(() => console.log('started'), ({ message }) => console.log(message))`
  const env = { ...testEnvironment(), TASKMILL_BIN: await executables(), TMPDIR: temp.path }
  const child = Bun.spawn([process.execPath, '-e', script], { env, stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' })
  expect(await new Response(child.stdout).text()).toContain(message)
  await child.exited
  await until(() => readdirSync(temp.path).length, 0)
  await noProcessesOf(temp.path)
})

describe('executables', () => {
  const put = (...path: string[]) => {
    const directory = join(...path)
    mkdirSync(directory, { recursive: true })
    writeFileSync(join(directory, 'taskmill-control'), '')
    chmodSync(join(directory, 'taskmill-control'), 0o755)
    return directory
  }
  const platform = `${process.platform}-${process.arch}`

  test.each([
    ['the package itself', ['node_modules/taskmill/bin']],
    ['the package of the platform', [`node_modules/taskmill-${platform}/bin`]],
    ['a variant of the platform', [`node_modules/taskmill-${platform}-musl/bin`]],
    ['a package with a scope', [`node_modules/@taskmill/${platform}/bin`]],
    ['PATH', ['elsewhere/bin']],
  ])('are found in %s', (_, [place]) => {
    using temp = tempDir()
    const directory = put(temp.path, place!)
    const places = {
      directory: undefined,
      env: { PATH: `/no/such:${join(temp.path, 'elsewhere/bin')}` },
      own: join(temp.path, 'node_modules/taskmill'),
    }
    expect(findExecutable('taskmill-control', places)).toBe(join(directory, 'taskmill-control'))
    expect(() => findExecutable('taskmill-runtime', places)).toThrow(
      'taskmill-runtime was not found: it is not in the package of this platform, nor in PATH. Install taskmill, or',
    )
  })

  test('are taken from a directory that is named, and from no other one', () => {
    using temp = tempDir()
    const [named, other] = [put(temp.path, 'named'), put(temp.path, 'other')]
    const own = join(temp.path, 'node_modules/taskmill')
    const places = { directory: undefined, env: { PATH: other, TASKMILL_BIN: named }, own }
    expect(findExecutable('taskmill-control', places)).toBe(join(named, 'taskmill-control'))
    expect(findExecutable('taskmill-control', { ...places, directory: other })).toBe(join(other, 'taskmill-control'))
    const nowhere = { ...places, directory: join(temp.path, 'nowhere') }
    expect(() => findExecutable('taskmill-control', nowhere)).toThrow(`it is not in ${nowhere.directory}`)
    chmodSync(join(named, 'taskmill-control'), 0o644)
    expect(() => findExecutable('taskmill-control', places)).toThrow('was not found')
  })

  test('that are missing are told by startTaskmill', async () => {
    await expect(startTaskmill({ executables: '/no/such' })).rejects.toThrow(
      'taskmill-control was not found: it is not in /no/such',
    )
  })
})

test('a directory is removed whatever its rights', async () => {
  const { path } = tempDir()
  mkdirSync(join(path, 'a/b'), { recursive: true })
  writeFileSync(join(path, 'a/b/c'), '')
  chmodSync(join(path, 'a/b'), 0o500)
  chmodSync(join(path, 'a'), 0)
  await sweep(path)
  expect(existsSync(path)).toBe(false)
})
