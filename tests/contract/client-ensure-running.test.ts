/**
 * `taskmill ensure-running` where nothing is to be started, and with `--start`, which starts real executables. Every
 * test has a HOME and ports of its own and ends what was started.
 */
import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { builtProgram as binary } from '../../scripts/build.ts'
import { processStat } from '../../shared/process/processes.ts'
import { type ClientRun, runClient } from '../support/client.ts'
import { startControl } from '../support/control.ts'
import { dataOf, workplace } from '../support/ensure-running.ts'
import { freePort } from '../support/free-port.ts'
import { testEnvironment } from '../support/service.ts'
import { endProcess } from '../support/stand-in-docker.ts'
import { isAlive } from '../support/until.ts'

const serve = (fetch: (request: Request) => Response) => {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch })
  return { url: `http://127.0.0.1:${server.port}`, [Symbol.dispose]: () => void server.stop(true) }
}

const readyRuntime = () =>
  serve((request) =>
    new URL(request.url).pathname === '/readyz'
      ? Response.json({ status: 'ready', version: '1.2.3' })
      : new Response('', { status: 404 }),
  )

/** The client alone in a directory, without its siblings. */
async function loneClient(dir: string) {
  const bin = join(dir, 'alone')
  mkdirSync(bin)
  copyFileSync(await binary('taskmill'), join(bin, 'taskmill'))
  return {
    bin,
    sibling(script: string, name = 'taskmill-control') {
      writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`)
      chmodSync(join(bin, name), 0o755)
    },
    async ensure(args: readonly string[], env: Readonly<Record<string, string>>) {
      const child = Bun.spawn([join(bin, 'taskmill'), 'ensure-running', ...args], {
        env: testEnvironment({ PATH: bin, ...env }),
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'pipe',
      })
      const stdout = await new Response(child.stdout).text()
      return { exitCode: await child.exited, stdout, stderr: '', envelope: JSON.parse(stdout) } as ClientRun
    },
  }
}

describe('what is there already', () => {
  test('is reported at once, and nothing is started', async () => {
    await using control = await startControl()
    await using place = await workplace()
    const run = await place.ensure(['--start', '--compose-dir', '/no/such/directory'], { url: `${control.url}/` })
    expect(run.exitCode).toBe(0)
    const data = { control: { url: control.url, reachable: true, health_status_code: 200 }, manual_hints: [] }
    expect(run.envelope as object).toEqual({ ok: true, data })
    expect(() => statSync(place.stateDir)).toThrow('ENOENT')
  })

  test('includes the runtime with --with-runtime, by GET {SERVICE_RUNTIME_URL}/readyz', async () => {
    await using control = await startControl()
    using runtime = readyRuntime()
    const env = { SERVICE_RUNTIME_URL: runtime.url }
    const { exitCode, envelope } = await runClient(['ensure-running', '--with-runtime'], { url: control.url, env })
    expect(exitCode).toBe(0)
    expect(envelope.data).toEqual({
      control: { url: control.url, reachable: true, health_status_code: 200 },
      runtime: { url: runtime.url, reachable: true, ready_status_code: 200 },
      manual_hints: [],
    })
  })

  test('SERVICE_TOKEN goes to control alone', async () => {
    const seen: (string | null)[] = []
    using both = serve((request) => {
      seen.push(`${new URL(request.url).pathname} ${request.headers.get('authorization')}`)
      return Response.json({ status: 'ok' })
    })
    const env = { SERVICE_RUNTIME_URL: both.url, SERVICE_TOKEN: 's3cret' }
    await runClient(['ensure-running', '--with-runtime'], { url: both.url, env })
    expect(seen.sort()).toEqual(['/health Bearer s3cret', '/readyz null'])
  })
})

describe('what is not there', () => {
  test('control: exit code 4, the failure envelope with the same data, and a command to paste', async () => {
    await using place = await workplace()
    const { exitCode, envelope } = await place.ensure()
    const note = `GET ${place.url}/health: connection refused; nothing was started: that takes --start or --compose-dir`
    expect(exitCode).toBe(4)
    expect(envelope as object).toEqual({
      ok: false,
      error: { message: `the control service at ${place.url} is not reachable: ${note}`, status_code: 0, body: '' },
      data: {
        control: { url: place.url, reachable: false, attempt_note: note },
        manual_hints: [`${await binary('taskmill')} ensure-running --start --url ${place.url}`],
      },
    })
    expect(() => statSync(place.stateDir)).toThrow('ENOENT')
  })

  test('the command to paste works', async () => {
    await using place = await workplace()
    const [hint] = dataOf(await place.ensure()).manual_hints
    const child = Bun.spawn(['sh', '-c', hint!], {
      env: testEnvironment({ HOME: place.home }),
      stdout: 'pipe',
      stderr: 'ignore',
    })
    expect(JSON.parse(await new Response(child.stdout).text())).toMatchObject({ ok: true })
  })

  test('the runtime: exit code 5', async () => {
    await using control = await startControl()
    await using place = await workplace()
    const args = ['--with-runtime', '--runtime-url', place.url]
    const run = await place.ensure(args, { url: control.url })
    expect(run.exitCode).toBe(5)
    expect(run.envelope.error?.message).toStartWith(`the runtime service at ${place.url} is not reachable: `)
    expect(dataOf(run)).toMatchObject({
      control: { url: control.url, reachable: true, health_status_code: 200 },
      runtime: { url: place.url, reachable: false, attempt_note: expect.stringContaining('connection refused') },
    })
  })

  test('SERVICE_RUNTIME_SOURCE shows in the hints', async () => {
    await using control = await startControl()
    await using place = await workplace()
    const env = { SERVICE_RUNTIME_SOURCE: '/src/task mill' }
    const run = await place.ensure(['--with-runtime', '--runtime-url', place.url], { url: control.url, env })
    const serveLine = `'/src/task mill/dist/taskmill-runtime' serve --listen-addr 127.0.0.1:${place.port}`
    expect(dataOf(run).manual_hints).toContain(`make -C '/src/task mill' build && ${serveLine}`)
  })

  test('both: exit code 4', async () => {
    await using place = await workplace()
    const run = await place.ensure(['--with-runtime', '--runtime-url', 'http://127.0.0.1:1'])
    expect(run.exitCode).toBe(4)
    expect(dataOf(run)).toMatchObject({ control: { reachable: false }, runtime: { reachable: false } })
  })

  test('a runtime that is not ready is told with its status code, and left alone', async () => {
    await using control = await startControl()
    await using place = await workplace()
    const body = '{"status":"unavailable"}'
    using runtime = serve(() => new Response(body, { status: 503 }))
    const args = ['--with-runtime', '--runtime-url', runtime.url, '--start']
    const run = await place.ensure(args, { url: control.url })
    expect(run.exitCode).toBe(5)
    expect(run.envelope.error).toMatchObject({ status_code: 503, body })
    expect(dataOf(run).runtime).toEqual({
      url: runtime.url,
      reachable: false,
      ready_status_code: 503,
      attempt_note: `GET ${runtime.url}/readyz answered 503; nothing was started: something has this address already`,
    })
  })

  test.each([
    ['a page', () => new Response('<html>', { headers: { 'content-type': 'text/html' } }), 200, 'text/html instead of'],
    ['an error', () => new Response('', { status: 404 }), 404, 'answered 404'],
    ['a redirect', () => Response.redirect('http://127.0.0.1:1/', 302), 302, 'answered 302'],
  ])(
    '%s of something else is not the control service, and nothing is started beside it',
    async (_, page, code, why) => {
      await using place = await workplace()
      using server = serve(page)
      const run = await place.ensure(['--start'], { url: server.url })
      expect({ exitCode: run.exitCode, status: run.envelope.error?.status_code }).toEqual({ exitCode: 4, status: code })
      expect(dataOf(run).control).toMatchObject({ reachable: false, health_status_code: code })
      expect(dataOf(run).control.attempt_note).toContain(why)
      expect(dataOf(run).control.attempt_note).toContain('something has this address already')
    },
  )

  test('what takes connections and closes them keeps its address', async () => {
    await using place = await workplace()
    const server = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: { open: (socket) => void socket.end(), data() {} },
    })
    const run = await place.ensure(['--start'], { url: `http://127.0.0.1:${server.port}` })
    server.stop(true)
    expect(run.exitCode).toBe(4)
    expect(dataOf(run).control.attempt_note).toContain(
      'the connection was closed before the answer was complete; nothing was started',
    )
  })

  test.each([
    ['http://taskmill.invalid:8080', 'it is not on this machine', 'start the service there'],
    ['http://127.0.0.1:1/under', 'has no path before its routes', 'has no path'],
    ['https://127.0.0.1:1', 'speaks http, not https', 'not https'],
  ])('nothing is started for %s', async (url, reason, hint) => {
    await using place = await workplace()
    const run = await place.ensure(['--start'], { url })
    expect(run.exitCode).toBe(4)
    expect(dataOf(run).control.attempt_note).toContain(`nothing was started: `)
    expect(dataOf(run).control.attempt_note).toContain(reason)
    expect(dataOf(run).manual_hints[0]).toContain(hint)
    expect(place.started()).toEqual([])
  })
})

describe('--start', () => {
  test('starts taskmill-control, which outlives the client: own session, private log and data', async () => {
    await using place = await workplace()
    const run = await place.ensure(['--start'], { cwd: place.home, env: { MARK: 'of the caller' } })
    expect(run.exitCode).toBe(0)
    const log = join(place.stateDir, `control-127.0.0.1-${place.port}`, 'control.log')
    const data = join(place.stateDir, `control-127.0.0.1-${place.port}`, 'data')
    const [pid] = place.started()
    expect(run.envelope.data).toEqual({
      control: {
        url: place.url,
        reachable: true,
        started_by: 'start',
        health_status_code: 200,
        attempt_note: `${await binary('taskmill-control')}, pid ${pid}, log ${log}, data ${data}`,
      },
      manual_hints: [],
    })
    const listening = JSON.parse(readFileSync(log, 'utf8').split('\n')[0]!)
    expect(listening).toMatchObject({ msg: 'listening', pid, url: place.url })
    for (const path of [place.stateDir, dirname(log), data]) expect(statSync(path).mode & 0o777).toBe(0o700)
    expect(statSync(log).mode & 0o777).toBe(0o600)
    expect(processStat(pid!)?.group).toBe(pid!)
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).toContain('MARK=of the caller')

    const again = await place.ensure(['--start'])
    expect(dataOf(again).control).toEqual({ url: place.url, reachable: true, health_status_code: 200 })
    expect(place.started()).toEqual([pid!])
  })

  test('keeps log and data in XDG_STATE_HOME where that is an absolute path', async () => {
    await using place = await workplace()
    const state = join(place.home, 'state')
    const run = await place.ensure(['--start'], { env: { XDG_STATE_HOME: state } })
    expect(dataOf(run).control.attempt_note).toContain(
      `log ${state}/taskmill/control-127.0.0.1-${place.port}/control.log`,
    )
    await endProcess(place.started()[0]!)
    const relative = await place.ensure(['--start'], { env: { XDG_STATE_HOME: 'state' }, cwd: place.home })
    expect(dataOf(relative).control.attempt_note).toContain(`log ${place.stateDir}/`)
  })

  test('leaves the data where SERVICE_DATA_DIR says', async () => {
    await using place = await workplace()
    const dataDir = join(place.home, 'elsewhere')
    const run = await place.ensure(['--start'], { env: { SERVICE_DATA_DIR: dataDir } })
    expect({ exitCode: run.exitCode, lock: statSync(join(dataDir, 'lock')).isFile() }).toEqual({
      exitCode: 0,
      lock: true,
    })
  })

  test('starts for localhost', async () => {
    await using place = await workplace()
    const url = `http://localhost:${place.port}`
    const run = await place.ensure(['--start'], { url })
    expect({ url: dataOf(run).control.url, exitCode: run.exitCode }).toEqual({ url, exitCode: 0 })
  })

  test('several clients at the same time start one service', async () => {
    await using place = await workplace()
    const runs = await Promise.all(Array.from({ length: 4 }, () => place.ensure(['--start'])))
    expect(runs.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0, 0])
    expect(runs.map((run) => dataOf(run).control.started_by).filter(Boolean)).toEqual(['start'])
    expect(place.started().length).toBe(1)
  })

  test('a service that ends before it answers is noticed, with its exit code and last words', async () => {
    await using place = await workplace()
    const run = await place.ensure(['--start', '--timeout', '1h'], { env: { SERVICE_LOG_LEVEL: 'loud' } })
    expect(run.exitCode).toBe(4)
    const { attempt_note: note, started_by } = dataOf(run).control
    expect(note).toContain('taskmill-control ended with exit code 2, its last log lines:\n')
    expect(note).toContain('SERVICE_LOG_LEVEL="loud"')
    expect(started_by).toBeUndefined()
    const log = join(place.stateDir, `control-127.0.0.1-${place.port}`, 'control.log')
    expect(dataOf(run).manual_hints[0]).toBe(`tail -n 50 ${log}`)
  })

  test('last words are those of this start', async () => {
    await using place = await workplace()
    await place.ensure(['--start'], { env: { SERVICE_LOG_LEVEL: 'loud' } })
    const run = await place.ensure(['--start'], { env: { SERVICE_LOG_LEVEL: 'quiet' } })
    expect(dataOf(run).control.attempt_note).toContain('SERVICE_LOG_LEVEL="quiet"')
    expect(dataOf(run).control.attempt_note).not.toContain('loud')
  })

  test('a data directory that is in use is told in the words of the service', async () => {
    await using other = await startControl()
    await using place = await workplace()
    const run = await place.ensure(['--start'], { env: { SERVICE_DATA_DIR: other.dataDir } })
    expect(run.exitCode).toBe(4)
    expect(dataOf(run).control.attempt_note).toContain(`is in use by the process ${other.process.pid}`)
  })

  test('a service that does not become ready in time is left running, and told', async () => {
    await using place = await workplace()
    const client = await loneClient(place.home)
    client.sibling('echo warming up; exec /bin/sleep 600')
    const env = { HOME: place.home, SERVICE_URL: place.url }
    const run = await client.ensure(['--start', '--timeout', '150ms'], env)
    expect(run.exitCode).toBe(4)
    expect(dataOf(run).control).toMatchObject({
      reachable: false,
      started_by: 'start',
      attempt_note: expect.stringContaining('not ready within 150ms (GET '),
    })
    expect(await isAlive(place.started()[0]!)).toBe(true)
  })

  test('finds the executable in PATH where none is beside the client', async () => {
    await using place = await workplace()
    const client = await loneClient(place.home)
    const env = { HOME: place.home, SERVICE_URL: place.url, PATH: dirname(await binary('taskmill-control')) }
    const run = await client.ensure(['--start'], env)
    expect({ exitCode: run.exitCode, by: dataOf(run).control.started_by }).toEqual({ exitCode: 0, by: 'start' })
  })

  test('says where it looked when there is no executable', async () => {
    await using place = await workplace()
    const client = await loneClient(place.home)
    const run = await client.ensure(['--start'], { HOME: place.home, SERVICE_URL: place.url })
    expect(run.exitCode).toBe(4)
    const note = `taskmill-control was not found: neither in ${client.bin} nor in PATH`
    expect(dataOf(run)).toMatchObject({ control: { attempt_note: note }, manual_hints: [`# ${note}`] })
  })

  test('an executable that cannot run is told', async () => {
    await using place = await workplace()
    const client = await loneClient(place.home)
    client.sibling('')
    writeFileSync(join(client.bin, 'taskmill-control'), '#!/no/such/interpreter\n')
    const run = await client.ensure(['--start'], { HOME: place.home, SERVICE_URL: place.url })
    expect(run.exitCode).toBe(4)
    expect(dataOf(run).control.attempt_note).toContain(`cannot start ${client.bin}/taskmill-control: `)
  })

  test('no place for the log is told', async () => {
    await using place = await workplace()
    const run = await place.ensure(['--start'], { env: { HOME: '/dev/null' } })
    expect(run.exitCode).toBe(4)
    expect(dataOf(run).control.attempt_note).toContain('cannot make a place for the log and data of taskmill-control')
  })

  test('puts a large log aside', async () => {
    await using place = await workplace()
    const dir = join(place.stateDir, `control-127.0.0.1-${place.port}`)
    mkdirSync(dir, { recursive: true })
    writeFileSync(join(dir, 'control.log'), '')
    truncateSync(join(dir, 'control.log'), 16 * 1024 * 1024 + 1)
    expect((await place.ensure(['--start'])).exitCode).toBe(0)
    expect(statSync(join(dir, 'control.log.1')).size).toBe(16 * 1024 * 1024 + 1)
    expect(statSync(join(dir, 'control.log')).size).toBeLessThan(1024)
  })

  test('--with-runtime says that taskmill-runtime was not found, after it has started control', async () => {
    await using place = await workplace()
    const client = await loneClient(place.home)
    symlinkSync(await binary('taskmill-control'), join(client.bin, 'taskmill-control'))
    const runtimeUrl = `http://127.0.0.1:${await freePort()}`
    const env = { HOME: place.home, SERVICE_URL: place.url, SERVICE_RUNTIME_URL: runtimeUrl }
    const run = await client.ensure(['--start', '--with-runtime'], env)
    expect(run.exitCode).toBe(5)
    const note = `taskmill-runtime was not found: neither in ${client.bin} nor in PATH`
    expect(dataOf(run)).toMatchObject({
      control: { reachable: true, started_by: 'start' },
      runtime: { url: runtimeUrl, reachable: false, attempt_note: note },
      manual_hints: [`# ${note}`],
    })
  })

  test('--with-runtime starts taskmill-runtime with its own flags, and tells control where it is', async () => {
    await using place = await workplace()
    const client = await loneClient(place.home)
    symlinkSync(await binary('taskmill-control'), join(client.bin, 'taskmill-control'))
    const fixture = join(import.meta.dir, '..', 'fixtures', 'ready-server.ts')
    client.sibling(`echo "$@"; SERVICE_RUNTIME_LISTEN_ADDR=$3 exec ${process.execPath} ${fixture}`, 'taskmill-runtime')
    const port = await freePort()
    const runtimeUrl = `http://127.0.0.1:${port}`
    const args = ['--start', '--with-runtime', '--runtime-url', runtimeUrl]
    const run = await client.ensure(args, { HOME: place.home, SERVICE_URL: place.url })
    expect(run.exitCode).toBe(0)
    expect(dataOf(run).runtime).toMatchObject({ reachable: true, started_by: 'start', ready_status_code: 200 })
    const dir = join(place.stateDir, `runtime-127.0.0.1-${port}`)
    const flags = `serve --listen-addr 127.0.0.1:${port} --data-dir ${dir}/data`
    expect(readFileSync(join(dir, 'runtime.log'), 'utf8')).toStartWith(`${flags}\n`)
    const controlPid = Number(/pid (\d+)/.exec(dataOf(run).control.attempt_note!)![1])
    expect(readFileSync(`/proc/${controlPid}/environ`, 'utf8')).toContain(`SERVICE_RUNTIME_URL=${runtimeUrl}`)
  })
})

describe('the command line', () => {
  test.each([
    [['--timeout', 'soon'], {}, '--timeout'],
    [['--docker-timeout', '0s'], {}, '--docker-timeout'],
    [['--runtime-url', '127.0.0.1:18080'], {}, '--runtime-url'],
    [[], { SERVICE_RUNTIME_URL: 'nonsense' }, 'SERVICE_RUNTIME_URL'],
    [['now'], {}, 'unexpected argument "now"'],
    [['--compose-dir'], {}, 'flag --compose-dir needs a value'],
  ])('%j with %j is a usage error', async (args, env, what) => {
    const { exitCode, envelope } = await runClient(['ensure-running', ...args], { env })
    expect({ exitCode, ok: envelope.ok, data: envelope.data }).toEqual({ exitCode: 2, ok: false, data: undefined })
    expect(envelope.error?.message).toContain(what)
  })
})
