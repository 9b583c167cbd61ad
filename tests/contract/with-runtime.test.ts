/**
 * `taskmill-control --with-runtime`: one command on a laptop, and the runtime service is there too.
 * Goal: it is started where none is, kept running, and ends with control; tasks never notice. The built executables.
 */
import { expect, test } from 'bun:test'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { startRuntime } from '../support/runtime.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { testEnvironment } from '../support/service.ts'
import { endProcessesOf, gone } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { tokensFile } from '../support/tokens.ts'
import { until } from '../support/until.ts'

const echo = { type: 'runtime', params: { program: '/bin/echo', args: ['hi'] } }

function place() {
  const temp = tempDir()
  const processes = endProcessesOf(temp.path)
  return {
    path: temp.path,
    dataDir: join(temp.path, 'data'),
    file: (name: string) => join(temp.path, name),
    [Symbol.asyncDispose]: async () => {
      await processes[Symbol.asyncDispose]()
      temp[Symbol.dispose]()
    },
  }
}

async function flagsFor(port?: number): Promise<string[]> {
  await builtProgram('taskmill-runtime') // control finds it beside itself
  return ['--with-runtime', '--runtime-url', `http://127.0.0.1:${port ?? (await freePort())}`]
}

const runtimePid = (control: Control) =>
  Number(control.log.findLast(({ msg }) => msg === 'started a runtime service')?.runtime_pid)

test('it is there when control is, and ends with it', async () => {
  await using at = place()
  await using control = await startControl({ dataDir: at.dataDir, flags: await flagsFor() })
  expect(await control.run(echo)).toMatchObject({ status: 'success', result: { stdout: 'hi\n' } })
  const pid = runtimePid(control)
  expect(await control.stop('SIGTERM')).toBe(0)
  await gone(pid)
})

test('it ignores unknown fields where control does', async () => {
  await using at = place()
  const flags = [...(await flagsFor()), '--unknown-fields', 'ignore']
  await using control = await startControl({ dataDir: at.dataDir, flags })
  const params = { ...echo.params, sandbx: {}, limits: { memory: 1 } }
  expect(await control.run({ ...echo, params })).toMatchObject({ status: 'success' })
  await control.stop()
})

test('its lines are among those of control, and its data beside those of control', async () => {
  await using at = place()
  await using control = await startControl({ dataDir: at.dataDir, flags: await flagsFor() })
  await control.run(echo)
  await until(
    () => control.log,
    (log) => log.some(({ msg }) => msg === 'task accepted'),
  )
  expect(existsSync(join(at.dataDir, 'runtime.db'))).toBe(true)
  await control.stop()
})

test('one that is there already is used, and left alone', async () => {
  await using runtime = await startRuntime()
  await using at = place()
  await using control = await startControl({
    dataDir: at.dataDir,
    flags: ['--with-runtime', '--runtime-url', runtime.url],
  })
  const { handle_id } = await control.run(echo)
  expect((await runtime.get(handle_id!)).status).toBe('success')
  await control.stop()
  expect((await runtime.fetch('/readyz')).status).toBe(200)
})

test('it is started again when it ends, and tasks do not notice', async () => {
  await using at = place()
  await using control = await startControl({ dataDir: at.dataDir, flags: await flagsFor() })
  const script = `echo ran >> ${at.file('ran')}; ${waitFor(at.file('go'))}`
  await control.submit([{ id: 'before', type: 'runtime.script', params: { script } }])
  await until(
    () => existsSync(at.file('ran')),
    (hasRun) => hasRun,
  )
  const pid = runtimePid(control)
  process.kill(pid, 'SIGKILL')
  await gone(pid)
  // It cannot be reached now, and is not refused for that.
  await control.submit([{ id: 'meanwhile', ...echo }])
  expect(await control.ended('meanwhile')).toMatchObject({ status: 'success', attempt: 1 })
  await Bun.write(at.file('go'), '')
  expect(await control.ended('before')).toMatchObject({ status: 'success', attempt: 1 })
  expect(readFileSync(at.file('ran'), 'utf8')).toBe('ran\n')
  expect(runtimePid(control)).not.toBe(pid)
  await control.stop()
})

test('after control was killed, the next start takes its place; tasks run on', async () => {
  await using at = place()
  const flags = await flagsFor()
  const script = `echo ran >> ${at.file('ran')}; ${waitFor(at.file('go'))}`
  let pid: number
  {
    await using control = await startControl({ dataDir: at.dataDir, flags })
    await control.submit([{ id: 'a', type: 'runtime.script', params: { script } }])
    await until(
      () => existsSync(at.file('ran')),
      (hasRun) => hasRun,
    )
    pid = runtimePid(control)
    control.process.kill('SIGKILL')
    await control.process.exited
    // It holds our pipe: what it writes comes to an end when it does, which is what the next one sees to.
    await using next = await startControl({ dataDir: at.dataDir, flags })
    await gone(pid)
    expect(runtimePid(next)).not.toBe(pid)
    await Bun.write(at.file('go'), '')
    expect(await next.ended('a')).toMatchObject({ status: 'success', attempt: 1 })
    await next.stop()
  }
  expect(readFileSync(at.file('ran'), 'utf8')).toBe('ran\n')
})

test('its sandboxes hide the files with secrets of control', async () => {
  await using at = place()
  using tokens = tokensFile({})
  const secret = at.file('callbacks')
  writeFileSync(secret, 'a secret', { mode: 0o600 })
  const flags = [...(await flagsFor()), '--tokens-file', tokens.path, '--callback-secret-file', secret]
  await using control = await startControl({ dataDir: at.dataDir, flags, env: { SERVICE_TOKEN: 'sesame' } })
  const given = readFileSync(`/proc/${runtimePid(control)}/cmdline`, 'utf8').split('\0')
  const masks = given.filter((_, i) => given[i - 1] === '--sandbox-mask')
  expect(masks.sort()).toEqual([secret, tokens.path].sort())
  expect(await control.stop('SIGTERM')).toBe(0)
})

test('it wants the token of control, and gets it', async () => {
  await using at = place()
  const flags = await flagsFor()
  const auth = { authorization: 'Bearer sesame' }
  await using control = await startControl({ dataDir: at.dataDir, flags, env: { SERVICE_TOKEN: 'sesame' } })
  await control.submit([{ id: 'a', ...echo }], auth)
  const ended = await until(
    async () => (await (await control.fetch('/tasks/a', { headers: auth })).json()) as { status: string },
    ({ status }) => status === 'success' || status === 'failed',
  )
  expect(ended.status).toBe('success')
  expect((await fetch(`${flags[2]}/api/v1/tasks`)).status).toBe(401)
  expect(existsSync(tokenFile(at.dataDir))).toBe(false)
  await control.stop()
})

const tokenFile = (dataDir: string) => join(dataDir, 'runtime-token')

test('without a token of control it has one of its own, made once, that control sends after every restart of either', async () => {
  await using at = place()
  const flags = await flagsFor()
  const path = tokenFile(at.dataDir)
  let token: string
  {
    await using control = await startControl({ dataDir: at.dataDir, flags })
    expect(await control.run(echo)).toMatchObject({ status: 'success', result: { stdout: 'hi\n' } })
    token = readFileSync(path, 'utf8').trim()
    expect([statSync(path).mode & 0o777, statSync(at.dataDir).mode & 0o777]).toEqual([0o600, 0o700])
    expect(token).toMatch(/^[0-9a-f]{64}$/)
    const { token_file } = control.log.find(({ msg }) => msg === 'started a runtime service')!
    expect(token_file).toBe(path)
    expect(JSON.stringify(control.log)).not.toContain(token)
    const unknown = await fetch(`${flags[2]}/api/v1/tasks`)
    expect([unknown.status, await unknown.text()]).toEqual([401, expect.stringContaining(path)])
    const known = await fetch(`${flags[2]}/api/v1/tasks`, { headers: { authorization: `Bearer ${token}` } })
    expect(known.status).toBe(200)
    const pid = runtimePid(control)
    process.kill(pid, 'SIGKILL')
    await gone(pid)
    expect((await control.run(echo)).status).toBe('success')
    await control.stop()
  }
  await using control = await startControl({ dataDir: at.dataDir, flags })
  expect((await control.run(echo)).status).toBe('success')
  expect(readFileSync(path, 'utf8').trim()).toBe(token)
  await control.stop()
})

test.each([
  ['empty', ''],
  ['damaged', 'two words\n'],
])(
  'a token of its own that is %s keeps it from starting until the file is deleted, which the error says',
  async (_, text) => {
    await using at = place()
    const flags = await flagsFor()
    const path = tokenFile(at.dataDir)
    mkdirSync(at.dataDir, { mode: 0o700 })
    writeFileSync(path, text, { mode: 0o600 })
    const refused = await startControl({ dataDir: at.dataDir, flags }).then(
      async (control) => {
        await control.stop()
        return 'started'
      },
      (error: Error) => error.message,
    )
    expect(refused).toContain(`delete ${path}, and the next start makes a new one`)
    rmSync(path)
    await using control = await startControl({ dataDir: at.dataDir, flags })
    expect((await control.run(echo)).status).toBe('success')
    await control.stop()
  },
)

test('one of an earlier run that is found by its address alone is sent its token', async () => {
  await using at = place()
  const flags = await flagsFor()
  await using first = await startControl({ dataDir: at.dataDir, flags })
  first.process.kill('SIGKILL')
  await first.process.exited
  unlinkSync(join(at.dataDir, 'runtime-child.json'))
  await using next = await startControl({ dataDir: at.dataDir, flags })
  expect(next.log.map(({ msg }) => msg)).toContain('a runtime service is there already: none is started')
  expect((await next.run(echo)).status).toBe('success')
  await next.stop()
  process.kill(runtimePid(first), 'SIGTERM') // it holds the pipe of the first
})

test('the token is sent to no service that control did not start', async () => {
  const seen: (string | null)[] = []
  using other = Bun.serve({
    port: 0,
    fetch(request) {
      seen.push(request.headers.get('authorization'))
      return request.url.endsWith('/readyz') ? Response.json({}) : Response.json({ error: 'no' }, { status: 400 })
    },
  })
  await using at = place()
  const flags = ['--with-runtime', '--runtime-url', `http://127.0.0.1:${other.port}`]
  mkdirSync(at.dataDir, { mode: 0o700 })
  writeFileSync(tokenFile(at.dataDir), 'sesame\n', { mode: 0o600 })
  await using control = await startControl({ dataDir: at.dataDir, flags })
  expect((await control.run(echo)).status).toBe('failed')
  expect(seen.length).toBeGreaterThan(1)
  expect(seen).not.toContain('Bearer sesame')
  await control.stop()
})

test.skipIf(missingSandbox !== undefined)(
  `a task in a sandbox gets neither the token nor a task without a sandbox${missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`}`,
  async () => {
    await using at = place()
    const flags = await flagsFor()
    await using control = await startControl({ dataDir: at.dataDir, flags })
    const run = (script: string, more: object) =>
      control.run({ type: 'runtime.script', params: { script, ...more } }) as Promise<{
        status: string
        error?: string
        result?: { stdout: string; execution_plan: { capability_warnings: string[] } }
      }>
    const connect = `perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(PeerAddr => "${new URL(control.url).host}") ? "reached" : $@'`
    const script = `cat ${tokenFile(at.dataDir)}; ${connect}`
    const strict = { policy: { capability_mode: 'strict' } }
    const closed = await run(script, { sandbox: { profile: 'linux_sandbox' }, ...strict })
    expect(closed).toMatchObject({ status: 'success', result: { stdout: expect.stringContaining('refused') } })
    const sandbox = { profile: 'linux_sandbox', namespaces: { net: false } }
    const refused = await run(script, { sandbox, ...strict })
    expect(refused.status).toBe('failed')
    expect(refused.error).toContain('run by the control service of this machine, which has no token')
    const warned = await run(script, { sandbox })
    expect(warned.result?.stdout).toBe('reached')
    expect(warned.result?.execution_plan.capability_warnings).toEqual([
      expect.stringContaining('start taskmill-control with --token-file'),
    ])
    await control.stop()
  },
)

test.each([
  ['an address that is not of this machine', 'http://192.0.2.1:18080', 'it is not on this machine'],
  ['https', 'https://127.0.0.1:18080', 'speaks http, not https'],
])('is refused where it cannot be: %s', async (_, url, why) => {
  await using at = place()
  const child = Bun.spawn(
    [
      await builtProgram('taskmill-control'),
      ...['--addr', '127.0.0.1:0', '--data-dir', at.dataDir, '--with-runtime', '--runtime-url', url],
    ],
    { env: testEnvironment(), stdout: 'ignore', stderr: 'pipe' },
  )
  const stderr = await new Response(child.stderr).text()
  expect(await child.exited).toBe(2)
  expect(stderr).toContain(`--with-runtime cannot start a runtime service at ${url}`)
  expect(stderr).toContain(why)
  expect(existsSync(at.dataDir)).toBe(false)
})

test('a program that is not there is said so', async () => {
  await using at = place()
  mkdirSync(at.file('bin'))
  const alone = join(at.file('bin'), 'taskmill-control')
  copyFileSync(await builtProgram('taskmill-control'), alone)
  chmodSync(alone, 0o755)
  const flags = await flagsFor()
  const child = Bun.spawn([alone, '--addr', '127.0.0.1:0', '--data-dir', at.dataDir, ...flags], {
    env: testEnvironment({ PATH: '/nonexistent' }),
    ...{ stdout: 'ignore', stderr: 'pipe' },
  })
  expect(await new Response(child.stderr).text()).toContain(
    `--with-runtime: taskmill-runtime was not found: neither in ${at.file('bin')} nor in PATH`,
  )
  expect(await child.exited).toBe(2)
  expect(existsSync(at.dataDir)).toBe(false)
})

test.each(['SIGTERM', 'SIGINT'] as const)('a start that %s stops ends it and leaves nothing behind', async (signal) => {
  await using at = place()
  mkdirSync(at.file('bin'))
  const control = join(at.file('bin'), 'taskmill-control')
  copyFileSync(await builtProgram('taskmill-control'), control)
  chmodSync(control, 0o755)
  // It is never ready.
  const script = `#!/bin/sh\necho $$ > ${at.file('pid.new')} && mv ${at.file('pid.new')} ${at.file('pid')}\nexec sleep 600\n`
  writeFileSync(join(at.file('bin'), 'taskmill-runtime'), script, { mode: 0o755 })
  const child = Bun.spawn([control, '--addr', '127.0.0.1:0', '--data-dir', at.dataDir, ...(await flagsFor())], {
    env: testEnvironment(),
    ...{ stdout: 'pipe', stderr: 'pipe' },
  })
  await until(
    () => existsSync(at.file('pid')),
    (isStarted) => isStarted,
  )
  child.kill(signal)
  expect(await child.exited).toBe(0)
  await gone(Number(readFileSync(at.file('pid'), 'utf8')))
  expect(await new Response(child.stderr).text()).toBe('')
  expect(await new Response(child.stdout).text()).toContain(`"msg":"stopped before it listened","signal":"${signal}"`)
  expect(existsSync(at.dataDir)).toBe(false)
})

test('it starts before the log is read, and ends when that refuses the start', async () => {
  await using at = place()
  mkdirSync(at.dataDir, { mode: 0o700 })
  writeFileSync(join(at.dataDir, 'format.json'), JSON.stringify({ format: 999, written_by: '9.0.0' }))
  const child = Bun.spawn(
    [
      await builtProgram('taskmill-control'),
      ...['--addr', '127.0.0.1:0', '--data-dir', at.dataDir, ...(await flagsFor())],
    ],
    { env: testEnvironment(), stdout: 'pipe', stderr: 'pipe' },
  )
  const log = await new Response(child.stdout).text()
  expect(await child.exited).toBe(2)
  expect(await new Response(child.stderr).text()).toContain('written by a newer taskmill-control')
  const lines = log
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { msg: string; runtime_pid?: number })
  await gone(lines.find(({ msg }) => msg === 'started a runtime service')!.runtime_pid!)
})

test('one that ends at once is said so, and leaves nothing behind', async () => {
  await using at = place()
  mkdirSync(at.file('bin'))
  const control = join(at.file('bin'), 'taskmill-control')
  copyFileSync(await builtProgram('taskmill-control'), control)
  chmodSync(control, 0o755)
  writeFileSync(join(at.file('bin'), 'taskmill-runtime'), '#!/bin/sh\nexit 3\n', { mode: 0o755 })
  const child = Bun.spawn([control, '--addr', '127.0.0.1:0', '--data-dir', at.dataDir, ...(await flagsFor())], {
    env: testEnvironment(),
    ...{ stdout: 'ignore', stderr: 'pipe' },
  })
  expect(await new Response(child.stderr).text()).toContain('it ended at once (exit code 3)')
  expect(await child.exited).toBe(2)
  expect(existsSync(at.dataDir)).toBe(false)
})
