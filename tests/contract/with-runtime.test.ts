/**
 * `taskmill-control --with-runtime`: one command on a laptop, and the runtime service is there too.
 * Goal: it is started where none is, kept running, and ends with control; tasks never notice. The built executables.
 */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { startRuntime } from '../support/runtime.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { testEnvironment } from '../support/service.ts'
import { endProcessesOf, gone } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

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

const segments = (dataDir: string) => readdirSync(dataDir).filter((name) => name.startsWith('journal-'))

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
  await control.stop()
})

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
  expect(segments(at.dataDir)).toEqual([])
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
  expect(segments(at.dataDir)).toEqual([])
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
  expect(segments(at.dataDir)).toEqual([])
})
