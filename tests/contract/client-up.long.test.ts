/** `taskmill up`, `status` and `down`. Against the built executables; every test has a HOME and ports of its own. */
import { describe, expect, test } from 'bun:test'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ownPaths } from '../../adapter/own-services/record.ts'
import { builtProgram as binary } from '../../scripts/build.ts'
import { isDirectoryLocked } from '../../shared/files/directory-lock.ts'
import { identify } from '../../shared/process/processes.ts'
import { freePort } from '../support/free-port.ts'
import { testEnvironment } from '../support/service.ts'
import { endProcess } from '../support/stand-in-docker.ts'
import { tempDir } from '../support/temp.ts'
import { isAlive, until } from '../support/until.ts'
import { upData, upPlace } from '../support/up.ts'

const modeOf = (path: string) => statSync(path).mode & 0o777
const pidsOf = (place: { started(): number[] }) => place.started().toSorted()

/** The client in a directory with the given executables beside it. */
async function programsIn(dir: string, scripts: Readonly<Record<string, string>>): Promise<string> {
  const bin = join(dir, 'bin')
  mkdirSync(bin)
  copyFileSync(await binary('taskmill'), join(bin, 'taskmill'))
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  return bin
}

function spawned(bin: string, args: readonly string[], env: Readonly<Record<string, string>>) {
  const child = Bun.spawn([join(bin, 'taskmill'), ...args], {
    env: testEnvironment({ PATH: `${bin}:/usr/bin:/bin`, ...env }),
    ...{ stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  })
  let printed = ''
  const reading = async () => {
    const decoder = new TextDecoder()
    for await (const chunk of child.stdout) printed += decoder.decode(chunk, { stream: true })
    return printed
  }
  const stderr = new Response(child.stderr).text()
  return { child, stdout: reading(), stderr, printed: () => printed }
}

async function failure(bin: string, args: readonly string[], env: Readonly<Record<string, string>>) {
  const { child, stdout } = spawned(bin, args, env)
  const { error } = JSON.parse(await stdout) as { error: { message: string } }
  return { exitCode: await child.exited, message: error.message }
}

describe('up', () => {
  test('starts both services with a token, private files, and a log for each', async () => {
    await using place = await upPlace()
    const first = upData(await place.up())
    const { paths, ports } = place
    expect(first).toMatchObject({
      started: true,
      url: `http://127.0.0.1:${ports.control}`,
      runtime_url: `http://127.0.0.1:${ports.runtime}`,
      token_file: paths.token,
      data_dir: paths.data,
    })
    expect(place.started().length).toBe(2)
    for (const path of [place.stateDir, dirname(paths.data), paths.data]) expect(modeOf(path)).toBe(0o700)
    for (const path of [paths.token, paths.record, ...first.log_files]) expect(modeOf(path)).toBe(0o600)
    expect(first.log_files.map((path) => JSON.parse(readFileSync(path, 'utf8').split('\n')[0]!).service)).toEqual([
      'control',
      'runtime',
    ])
    for (const url of [`${first.url}/tasks`, `${first.runtime_url}/api/v1/tasks`]) {
      expect((await fetch(url)).status).toBe(401)
    }
  })

  test('a second call finds the services and says so; other subcommands find address and token', async () => {
    await using place = await upPlace()
    const first = upData(await place.up())
    const second = upData(await place.client(['up']))
    expect(second).toEqual({ ...first, started: false })
    expect((await place.client(['list'])).envelope.data).toEqual({ tasks: [] })
    const ran = await place.client(['run', '-'], {
      stdin: JSON.stringify({ tasks: [{ id: 'a', type: 'shell', params: { command: 'echo', args: ['hello'] } }] }),
    })
    expect(ran.envelope.data).toMatchObject({ state: 'success' })
    const shown = await place.client(['graph', String(ran.envelope.data?.graph_id), '-o', 'table'])
    expect(shown.stdout).not.toContain('--url')
    expect(place.started().length).toBe(2)
  })

  test('--shell open lets shell tasks run scripts, and says so; a refused one names it', async () => {
    await using place = await upPlace()
    const script = JSON.stringify({ tasks: [{ id: 'a', type: 'shell', params: { script: 'echo "$((6 * 7))"' } }] })
    expect(upData(await place.up()).shell).toBe('allowlist')
    const refused = await place.client(['run', '-'], { stdin: script })
    expect(refused.stdout).toContain('taskmill up --shell open')
    const late = await place.client(['up', '--shell', 'open'])
    expect(late.envelope.error?.message).toContain('without --shell open: end it with taskmill down first')
    await place.client(['down'])
    const open = await place.client(['up', '--shell', 'open'])
    expect(upData(open).shell).toBe('open')
    expect(open.stderr).toContain('shell and cli-skills tasks may start any program with your rights')
    const ran = await place.client(['run', '-'], { stdin: script.replace('"a"', '"b"') })
    expect([ran.exitCode, ran.stderr]).toEqual([0, expect.stringContaining('42')])
    expect(upData(await place.client(['up'])).shell).toBe('open')
    await place.client(['down'])
    expect(upData(await place.client(['up'])).shell).toBe('allowlist')
  })

  test('an address that is given wins, and gets SERVICE_TOKEN instead of the token', async () => {
    await using place = await upPlace()
    upData(await place.up())
    const seen: (string | null)[] = []
    using server = served((request) => {
      seen.push(request.headers.get('authorization'))
      return Response.json({ tasks: [] })
    })
    await place.client(['list'], { env: { SERVICE_URL: server.url } })
    await place.client(['list', '--url', server.url], { env: { SERVICE_TOKEN: 'another' } })
    expect(seen).toEqual([null, 'Bearer another'])
    const { stderr } = await place.client(['up'], { env: { SERVICE_URL: server.url } })
    expect(stderr).toContain(`SERVICE_URL is ${server.url}: unset it`)
  })

  test('SERVICE_TOKEN counts more than the token that up wrote, also without an address', async () => {
    await using place = await upPlace()
    const { url } = upData(await place.up())
    for (const address of [[], ['--url', url]]) {
      const refused = await place.client(['list', ...address], { env: { SERVICE_TOKEN: 'another' } })
      expect(refused.envelope.error?.status_code).toBe(401)
      expect((await place.client(['list', ...address], { env: { SERVICE_TOKEN: '' } })).exitCode).toBe(0)
    }
    const { stderr } = await place.client(['up'], { env: { SERVICE_TOKEN: 'another' } })
    expect(stderr).toContain('SERVICE_TOKEN is another token')
    const { stdout } = await place.client(['doctor'], { env: { SERVICE_TOKEN: 'another' } })
    expect(stdout).toContain('unset SERVICE_TOKEN')
  })

  test('several clients at the same time start the services once', async () => {
    await using place = await upPlace()
    const runs = await Promise.all([1, 2, 3].map(() => place.up()))
    const data = runs.map(upData)
    expect(data.filter(({ started }) => started).length).toBe(1)
    expect(new Set(data.map(({ pid }) => pid)).size).toBe(1)
    expect(place.started().length).toBe(2)
  })

  test('after down, the next start has the same ports and the same token', async () => {
    await using place = await upPlace()
    const first = upData(await place.up())
    const token = readFileSync(place.paths.token, 'utf8')
    await place.client(['down'])
    const second = upData(await place.client(['up']))
    expect({ ...second, pid: 0, started_at: '' }).toEqual({ ...first, pid: 0, started_at: '' })
    expect(readFileSync(place.paths.token, 'utf8')).toBe(token)
  })

  test('a port that somebody has taken meanwhile is replaced, unless it is named', async () => {
    await using place = await upPlace()
    const first = upData(await place.up())
    await place.client(['down'])
    using taken = listener(place.ports.control)
    const second = upData(await place.client(['up']))
    expect(second.url).not.toBe(first.url)
    expect(second.runtime_url).toBe(first.runtime_url)
    await place.client(['down'])
    const { exitCode, envelope } = await place.up()
    expect({ exitCode, message: envelope.error?.message }).toEqual({
      exitCode: 1,
      message: `port ${taken.port} on 127.0.0.1 is not free (give another with --port, or none to have one chosen)`,
    })
  })

  test('says that the services run elsewhere than is asked for, and in the foreground', async () => {
    await using place = await upPlace()
    const { url, pid } = upData(await place.up())
    const elsewhere = await place.client(['up', '--port', String(await freePort())])
    expect(elsewhere.envelope.error?.message).toStartWith(`taskmill runs already at ${url} (pid ${pid}), its runtime`)
    const foreground = await place.client(['up', '--foreground'])
    expect(foreground.envelope.error?.message).toContain('end it with taskmill down')
    expect([elsewhere.exitCode, foreground.exitCode]).toEqual([1, 1])
  })

  test('says which executables are missing, where it looked, and starts nothing', async () => {
    await using place = await upPlace()
    const bin = await programsIn(place.home, {})
    const { exitCode, message } = await failure(bin, ['up'], place.env)
    expect(exitCode).toBe(1)
    for (const name of ['taskmill-control', 'taskmill-runtime'])
      expect(message).toContain(`${name} was not found: neither in ${bin} nor in PATH`)
    expect(message).toContain('install the three executables into one directory')
    expect(existsSync(place.stateDir)).toBe(true) // only the lock of the start
    expect(place.started()).toEqual([])
  })

  test('repeats the last words of a service that ends at once', async () => {
    await using place = await upPlace()
    const { exitCode, envelope } = await place.client(['up', ...place.flags], { env: { SERVICE_LOG_LEVEL: 'loud' } })
    expect(exitCode).toBe(1)
    expect(envelope.error?.message).toContain('taskmill-control ended with exit code 2, its last log lines:\n')
    expect(envelope.error?.message).toContain('SERVICE_LOG_LEVEL="loud"')
    expect((await place.client(['status'])).envelope.data).toMatchObject({ running: false })
  })

  test('ends what does not become ready in time, and what is interrupted', async () => {
    await using place = await upPlace()
    const bin = await programsIn(place.home, {
      'taskmill-control': 'echo warming up; exec sleep 600',
      'taskmill-runtime': 'exit 1',
    })
    const late = await failure(bin, ['up', ...place.flags, '--timeout', '200ms'], place.env)
    expect(late.message).toContain('not ready within 200ms (GET ')
    expect(place.started()).toEqual([])

    const { child, stdout } = spawned(bin, ['up', ...place.flags], place.env)
    await until(() => existsSync(place.paths.record) && place.started().length === 2)
    child.kill('SIGTERM')
    expect(await child.exited).toBe(143)
    expect(JSON.parse(await stdout).error.message).toBe('interrupted by SIGTERM')
    expect(place.started()).toEqual([])
  })

  test('refuses a token that others can read', async () => {
    await using place = await upPlace()
    upData(await place.up())
    await place.client(['down'])
    chmodSync(place.paths.token, 0o644)
    const { exitCode, envelope } = await place.up()
    expect(exitCode).toBe(1)
    expect(envelope.error?.message).toContain(`other users can read the token file ${place.paths.token}: delete it`)
  })

  test('stays in the foreground until Ctrl-C, and shows the log', async () => {
    await using place = await upPlace()
    const bin = dirname(await binary('taskmill'))
    await Promise.all([binary('taskmill-control'), binary('taskmill-runtime')])
    const { child, stdout, stderr, printed } = spawned(bin, ['up', '--foreground', ...place.flags], place.env)
    await until(printed, (text) => text.endsWith('\n'))
    expect((await place.client(['list'])).envelope.data).toEqual({ tasks: [] })
    child.kill('SIGINT')
    expect(await child.exited).toBe(0)
    expect(JSON.parse(await stdout)).toMatchObject({ ok: true, data: { started: true } })
    expect(await stderr).toContain('"service":"runtime","msg":"stopped"')
    expect(place.started()).toEqual([])
  })

  test('in the foreground ends with the terminal', async () => {
    await using place = await upPlace()
    const bin = dirname(await binary('taskmill'))
    const { child, printed } = spawned(bin, ['up', '--foreground', ...place.flags], place.env)
    await until(printed, (text) => text.endsWith('\n'))
    child.kill('SIGHUP')
    expect(await child.exited).toBe(129)
    expect(
      await until(
        () => place.started(),
        (pids) => pids.length === 0,
      ),
    ).toEqual([])
  })

  test('says that the services run another version', async () => {
    await using place = await upPlace()
    upData(await place.up())
    const record = JSON.parse(readFileSync(place.paths.record, 'utf8'))
    writeFileSync(place.paths.record, JSON.stringify({ ...record, version: '0.0.1' }))
    const again = await place.client(['up'])
    expect([again.exitCode, again.stderr]).toEqual([0, expect.stringContaining('the services run version 0.0.1, and')])
  })

  test('in the foreground ends when down is called elsewhere', async () => {
    await using place = await upPlace()
    const bin = dirname(await binary('taskmill'))
    const { child } = spawned(bin, ['up', '--foreground', ...place.flags], place.env)
    await until(() => place.client(['status']).then(({ exitCode }) => exitCode), 0)
    expect((await place.client(['down'])).envelope.data).toMatchObject({ stopped: true })
    expect(await child.exited).toBe(0)
  })
})

describe('status', () => {
  test('says whether both services are ready', async () => {
    await using place = await upPlace()
    const before = await place.client(['status'])
    expect({ exitCode: before.exitCode, ...before.envelope }).toMatchObject({
      ...{ exitCode: 1, ok: true, data: { running: false } },
    })
    const { url } = upData(await place.up())
    const now = await place.client(['status'])
    expect({ exitCode: now.exitCode, data: now.envelope.data }).toMatchObject({
      exitCode: 0,
      data: { running: true, url, control: { ready: true }, runtime: { ready: true } },
    })
  })

  test('with an id names the subcommand for tasks', async () => {
    await using place = await upPlace()
    const { exitCode, envelope } = await place.client(['status', 'a'])
    expect(exitCode).toBe(2)
    expect(envelope.error?.message).toContain('taskmill get a')
  })
})

describe('down', () => {
  test('ends both services; a second call has nothing to do', async () => {
    await using place = await upPlace()
    const { url, pid } = upData(await place.up())
    const pids = pidsOf(place)
    const run = await place.client(['down'])
    expect(run.envelope.data).toEqual({ stopped: true, url, pid, running: { attempts: 0, runtime_tasks: 0 } })
    expect(run.exitCode).toBe(0)
    for (const one of pids) expect(await isAlive(one)).toBe(false)
    for (const lock of ['lock', 'runtime.lock'] as const) expect(isDirectoryLocked(place.paths.data, lock)).toBe(false)
    const again = await place.client(['down'])
    expect({ exitCode: again.exitCode, stopped: again.envelope.data?.stopped }).toEqual({ exitCode: 0, stopped: false })
  })

  test('tells of tasks that run on, and the next start takes up their outcome', async () => {
    await using place = await upPlace()
    upData(await place.up())
    const go = join(place.home, 'go')
    const begun = join(place.home, 'begun')
    const script = `echo > ${begun}; while [ ! -e ${go} ]; do sleep 0.05; done; echo arrived`
    const submitted = await place.client(['submit', '-'], {
      stdin: JSON.stringify({ tasks: [{ id: 'long', type: 'runtime.script', params: { script } }] }),
    })
    expect(submitted.exitCode).toBe(0)
    await until(() => existsSync(begun))
    const down = await place.client(['down', '--timeout', '0s'])
    expect(down.envelope.data).toMatchObject({ stopped: true, running: { attempts: 1, runtime_tasks: 1 } })
    expect(down.stderr).toContain('1 task of the runtime service runs on without the services')
    writeFileSync(go, '')
    upData(await place.client(['up']))
    const waited = await place.client(['wait', 'long'])
    expect(waited.envelope.data).toMatchObject({ tasks: [{ id: 'long', status: 'success' }] })
  })

  test('ends the runtime service of a control service that was killed', async () => {
    await using place = await upPlace()
    const { pid } = upData(await place.up())
    await endProcess(pid)
    expect(place.started().length).toBe(1)
    expect((await place.client(['status'])).envelope.data).toMatchObject({ running: false })
    expect((await place.client(['down'])).envelope.data).toMatchObject({ stopped: true })
    expect(place.started()).toEqual([])
  })

  test('ends the services of a client that was killed before it wrote the record; up does not touch them', async () => {
    await using place = await upPlace()
    const { pid } = upData(await place.up())
    for (const lost of [() => rmSync(place.paths.record), () => writeFileSync(place.paths.record, '{')]) {
      lost()
      const again = await place.client(['up'])
      expect([again.exitCode, again.envelope.error?.message]).toEqual([
        1,
        `a control service (pid ${pid}) runs with the data of taskmill up, but not as the last one that was started: taskmill down ends it`,
      ])
      expect(place.started().length).toBe(2)
    }
    expect((await place.client(['down'])).envelope.data).toEqual({ stopped: true, pid })
    expect(place.started()).toEqual([])
  })

  test('never signals another process that has the pid now, and never sends it the token', async () => {
    await using place = await upPlace()
    const { url } = upData(await place.up())
    await place.client(['down'])
    await using stranger = sleeper()
    const record = JSON.parse(readFileSync(place.paths.record, 'utf8'))
    const { start_time, boot_id } = identify(stranger.pid)!
    const seen: (string | null)[] = []
    using _server = served((request) => {
      seen.push(request.headers.get('authorization'))
      return Response.json({ tasks: [] })
    }, place.ports.control)
    for (const process of [
      { pid: stranger.pid, start_time: start_time + 1, boot_id },
      { pid: stranger.pid, start_time, boot_id: `${boot_id}x` },
    ]) {
      writeFileSync(place.paths.record, JSON.stringify({ ...record, pid: stranger.pid, process }))
      expect((await place.client(['down'])).envelope.data).toMatchObject({ stopped: false })
      await place.client(['list', '--url', url])
    }
    expect(seen).toEqual([null, null])
    expect(await isAlive(stranger.pid)).toBe(true)
  })

  test.each(['', '{', '[]', '{"format": 2}', '{"format": 1, "url": "http://example.com:80"}'])(
    'a record that is %j counts as none',
    async (text) => {
      using dir = tempDir()
      const paths = ownPaths({ HOME: dir.path })
      mkdirSync(dirname(paths.record), { recursive: true })
      writeFileSync(paths.record, text)
      const { child, stdout } = spawned(dirname(await binary('taskmill')), ['status'], { HOME: dir.path })
      expect(JSON.parse(await stdout)).toMatchObject({ ok: true, data: { running: false } })
      expect(await child.exited).toBe(1)
    },
  )
})

function served(answer: (request: Request) => Response, port = 0) {
  const server = Bun.serve({ hostname: '127.0.0.1', port, fetch: answer })
  return { url: `http://127.0.0.1:${server.port}`, [Symbol.dispose]: () => void server.stop(true) }
}

function listener(port: number) {
  const listening = Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } })
  return { port, [Symbol.dispose]: () => listening.stop(true) }
}

function sleeper() {
  const child = Bun.spawn(['sleep', '600'], { stdio: ['ignore', 'ignore', 'ignore'] })
  return { pid: child.pid, [Symbol.asyncDispose]: async () => void (await endProcess(child.pid)) }
}

test('a secret that is set while the services of taskmill up run is used by the next tasks of both', async () => {
  await using place = await upPlace()
  upData(await place.up('--shell', 'open'))
  const dir = join(place.stateDir, 'up', 'secrets')
  const graph = JSON.stringify({
    scope: 'graph',
    tasks: ['shell', 'runtime.script'].map((type, index) => ({
      ...{ id: `t${index}`, type, secrets: { TOKEN: { name: 'api-token', mask: false } } },
      params: { script: 'printf "got $TOKEN"' },
    })),
  })
  const run = () => place.client(['run', '--force'], { stdin: graph })
  expect((await run()).stdout).toContain('there is no secret api-token')
  const set = await place.client(['secrets', 'set', 'api-token'], { stdin: 'first\n' })
  expect(set.envelope.data).toMatchObject({ secrets_dir: dir })
  expect(set.stderr).toBe('')
  const shown = async () => (await run()).stderr.match(/got \w+/g)
  expect(await shown()).toEqual(['got first', 'got first'])
  await place.client(['secrets', 'set', 'api-token'], { stdin: 'second\n' })
  expect(await shown()).toEqual(['got second', 'got second'])
  const other = await place.up('--shell', 'open', '--secrets-dir', place.home)
  expect(other.envelope.error?.message).toContain(
    `without --secrets-dir ${place.home}: end it with taskmill down first`,
  )
  // An earlier version wrote no secrets_dir, and its services read no such directory.
  const { secrets_dir, ...earlier } = JSON.parse(readFileSync(place.paths.record, 'utf8'))
  expect(secrets_dir).toBe(dir)
  writeFileSync(place.paths.record, JSON.stringify(earlier))
  expect((await place.client(['secrets', 'list'])).stderr).toContain('taskmill down, then taskmill up')
  expect((await place.client(['down'])).exitCode).toBe(0) // a runtime service that is killed leaves its control groups
})
