/**
 * GET /readyz, and `ready` in GET /health: both say what a POST would be answered. Against the built service. Source:
 * contract, Health, metrics.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { HealthResponse } from '../../shared/contract/control.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { replicaMember } from '../support/on-database.ts'
import { canMount, smallDisk } from '../support/small-disk.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

const NO_SNAPSHOT = ['--persist-interval', '1h', '--kill-grace', '200ms']
const noop = (id: string) => ({ id, type: 'noop' })

const healthOf = async (control: Control) => (await (await control.fetch('/health')).json()) as HealthResponse

async function readyzOf(control: Control): Promise<[status: number, body: unknown]> {
  const response = await control.fetch('/readyz')
  return [response.status, await response.json()]
}

/** All three doors say the same: not ready, for `reason`. */
async function expectNotReady(control: Control, reason: RegExp): Promise<void> {
  const response = await control.post({ tasks: [noop(crypto.randomUUID())] })
  expect([response.status, await response.json()]).toEqual([503, { error: expect.stringMatching(reason) }])
  expect(await healthOf(control)).toEqual({
    ...{ status: 'ok', version: 'v1.0.0', uptime: expect.any(String) },
    ...{ ready: false, reason: expect.stringMatching(reason), ...replicaMember },
  })
  expect(await readyzOf(control)).toEqual([503, { error: expect.stringMatching(reason) }])
}

async function expectReady(control: Control): Promise<void> {
  expect(Object.keys(await healthOf(control))).toEqual([
    ...['status', 'version', 'uptime'],
    ...Object.keys(replicaMember),
  ])
  expect(await readyzOf(control)).toEqual([200, { status: 'ready', version: 'v1.0.0' }])
}

test('a service that takes in graphs is ready, asked without a token and under any host', async () => {
  await using control = await startControl({ env: { SERVICE_TOKEN: 'secret' } })
  await expectReady(control)
  expect((await control.fetch('/readyz', { headers: { host: 'evil.com' } })).status).toBe(200)
  expect((await control.fetch('/readyz', { method: 'POST' })).status).toBe(405)
})

test('no request that comes while a service starts is refused', async () => {
  const port = await freePort()
  const starting = startControl({ flags: ['--addr', `127.0.0.1:${port}`] })
  const url = `http://127.0.0.1:${port}`
  const body = JSON.stringify({ tasks: [noop('early')] })
  const headers = { 'content-type': 'application/json' }
  const submit = () => fetch(`${url}/tasks`, { method: 'POST', headers, body }).catch(() => undefined)
  const answer = await until(submit, (response) => response !== undefined)
  expect([answer?.status, await fetch(`${url}/nothing`).then(({ status }) => status)]).toEqual([202, 404])
  await using control = await starting
  expect(await control.ended('early')).toMatchObject({ status: 'success' })
  await control.stop()
})

test('a service that starts answers 503 until it has ended what a killed one left running', async () => {
  using dir = tempDir()
  const file = (name: string) => join(dir.path, name)
  const port = await freePort()
  const options = {
    dataDir: file('data'),
    env: { SERVICE_SHELL_POLICY: 'open' },
    flags: ['--addr', `127.0.0.1:${port}`, '--kill-grace', '5m'],
  }
  const script = `trap "" TERM; : > ran; while [ -e ran ] && [ ! -e go ]; do sleep 0.05; done`
  {
    await using killed = await startControl(options)
    await killed.submit([{ id: 'a', type: 'shell', params: { script, dir: dir.path } }])
    await until(
      () => existsSync(file('ran')),
      (isThere) => isThere,
    )
    await killed.stop('SIGKILL')
  }
  const next = startControl(options)
  const ask = (path: string) => fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined)
  await until(
    () => ask('/health'),
    (answer) => answer !== undefined,
  )
  for (const path of ['/health', '/readyz', '/tasks/a', '/nothing']) {
    const answer = await ask(path)
    const phase = 'ending what an earlier run left running'
    expect([answer?.status, await answer?.json()]).toEqual([503, { error: 'starting', phase }])
    expect(answer?.headers.get('retry-after')).toBe('1')
  }
  await Bun.write(file('go'), '')
  await using control = await next
  await expectReady(control)
  expect(await control.ended('a')).toMatchObject({ status: 'success' })
  await control.stop()
})

// Only root may mount a small disk.
test.skipIf(!canMount)('a full disk is told, also before a request has met it, and ends with its cause', async () => {
  using dir = tempDir()
  using disk = smallDisk(join(dir.path, 'data'), 512 * 1024)
  await using control = await startControl({ dataDir: disk.path, flags: NO_SNAPSHOT })
  disk.fill()
  expect((await healthOf(control)).reason).toMatch(/ENOSPC/)
  await expectNotReady(control, /ENOSPC/)
  disk.free()
  await until(
    () => readyzOf(control),
    ([status]) => status === 200,
  )
  await expectReady(control)
  await control.submit([noop('after')])
  await control.stop()
})

test('tasks that have not ended and leave no room are told, until one has ended', async () => {
  using gate = new Gate()
  await using control = await startControl({ flags: ['--max-stored-tasks', '2', '--kill-grace', '200ms'] })
  await control.submit([noop('first')])
  await control.ended('first')
  await control.submit([gate.task('second')])
  await expectReady(control) // the first makes room
  await control.submit([gate.task('third')])
  await expectNotReady(control, /^no room for 1 more task: graphs that have not ended hold 2 of at most 2/)
  expect((await control.get('third')).status).not.toBe('failed')
  gate.open()
  await control.ended('second')
  await expectReady(control)
  await control.submit([noop('fourth')])
})

test('a service that is stopping says so', async () => {
  using gate = new Gate()
  await using control = await startControl({ flags: ['--shutdown-timeout', '1m'] })
  await control.submit([gate.task('last')])
  await control.reached('last', 'running')
  control.process.kill('SIGTERM')
  await until(() => control.log.some(({ msg }) => msg === 'stopping'))
  await expectNotReady(control, /^the service is stopping/)
  gate.open()
  expect(await control.process.exited).toBe(0)
})

describe('a data directory that is gone is noticed before the next 202', () => {
  const LOSSES = {
    deleted: (dataDir: string) => rmSync(dataDir, { recursive: true }),
    moved: (dataDir: string) => renameSync(dataDir, `${dataDir}-aside`),
    replaced(dataDir: string) {
      rmSync(dataDir, { recursive: true })
      mkdirSync(dataDir)
    },
    emptied(dataDir: string) {
      for (const name of readdirSync(dataDir)) rmSync(join(dataDir, name), { recursive: true, force: true })
    },
  }

  test.each(Object.keys(LOSSES) as (keyof typeof LOSSES)[])('when it was %s', async (how) => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
    await control.submit([noop('before')])
    await control.ended('before')
    LOSSES[how](dataDir)
    const found = existsSync(dataDir) ? readdirSync(dataDir) : undefined
    const reason = /the data directory \S+ \(--data-dir\) was .* while the service ran: restart the service/
    await expectNotReady(control, reason)
    expect((await control.fetch('/tasks/before', { method: 'DELETE' })).status).toBe(503)
    expect((await control.get('before')).status).toBe('success')
    // It is not ours any more: the last state file is not written to whoever has its place.
    expect(await control.stop()).toBe(1)
    expect(existsSync(dataDir) ? readdirSync(dataDir) : undefined).toEqual(found)

    await using after = await startControl({ dataDir, flags: NO_SNAPSHOT })
    await expectReady(after)
  })

  test('by /health of a service with nothing to do, and for good', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
    await expectReady(control)
    renameSync(dataDir, join(dir.path, 'aside'))
    await until(
      () => healthOf(control),
      ({ ready }) => ready === false,
    )
    renameSync(join(dir.path, 'aside'), dataDir)
    await expectNotReady(control, /was deleted or moved/)
  })

  test('and no attempt that acts is started', async () => {
    using dir = tempDir()
    using gate = new Gate()
    const dataDir = join(dir.path, 'data')
    await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
    await control.submit([
      gate.task('gate'),
      { id: 'act', type: 'shell', params: { command: 'date' }, depends_on: ['gate'] },
    ])
    await control.reached('gate', 'running')
    rmSync(dataDir, { recursive: true })
    await expectNotReady(control, /was (deleted|emptied)/) // emptied: it looked while the directory was being removed
    gate.open()
    await control.ended('gate')
    expect((await control.get('act')).status).toBe('pending')
  })
})

describe('the client', () => {
  test('says what /health says; with --ready its exit code is 1 while the service is not', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
    const { url } = control
    const ready = await runClient(['health', '--ready'], { url })
    expect([ready.exitCode, ready.envelope.data]).toEqual([0, { status: 'ready', version: 'v1.0.0' }])

    rmSync(dataDir, { recursive: true })
    const not = await runClient(['health', '--ready'], { url })
    expect([not.exitCode, not.envelope.error?.status_code]).toEqual([1, 503])
    expect(not.envelope.error?.message).toContain('was deleted')
    const health = await runClient(['health'], { url })
    expect([health.exitCode, health.envelope.data]).toMatchObject([0, { status: 'ok', ready: false }])
  })

  test('ensure-running takes it for reachable, and says that it is not ready and why', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
    rmSync(dataDir, { recursive: true })
    await until(
      () => healthOf(control),
      ({ ready }) => ready === false,
    )
    const { exitCode, envelope } = await runClient(['ensure-running'], { url: control.url })
    expect(exitCode).toBe(0)
    expect(envelope.data).toEqual({
      control: {
        ...{ url: control.url, reachable: true, health_status_code: 200 },
        ...{ ready: false, reason: expect.stringContaining('was deleted') },
      },
      manual_hints: [],
    })
  })
})
