/**
 * Tokens of runtime services: those of the flags get the common one, or that of their file; those that are added get only
 * the one that is given with them. Source: docs/cluster.md, docs/security.md.
 */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { RuntimesResponse } from '../../shared/contract/runtimes.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { startRuntime } from '../support/runtime.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(120_000)

const COMMON = 'common-token'
const OWN = 'token-of-one'
const env = { SERVICE_RUNTIME_TOKEN: COMMON }

/** A service that refuses every token, and what it was sent. */
function refusing() {
  const sent: (string | null)[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch({ headers }) {
      sent.push(headers.get('authorization'))
      return Response.json({ error: { code: 'unauthenticated', message: 'missing or wrong token' } }, { status: 401 })
    },
  })
  return { sent, url: `http://127.0.0.1:${server.port}`, [Symbol.asyncDispose]: () => server.stop(true) }
}

const add = async (control: Control, body: object) => {
  const response = await control.fetch('/runtimes', { method: 'POST', body: JSON.stringify(body) })
  return { status: response.status, text: await response.text() }
}

/** Has control call each of its runtime services. */
const listed = async (control: Control, headers: Record<string, string> = {}) =>
  ((await (await control.fetch('/runtimes', { headers })).json()) as RuntimesResponse).runtimes

const runOn = (control: Control, runtime: string) =>
  control.run({ type: 'runtime.script', params: { script: 'true', placement: { runtime } } })

test('one that is added never gets the token of those of the flags, at any address', async () => {
  await using flagged = refusing()
  await using added = refusing()
  await using control = await startControl({ env, flags: ['--runtime-url', `flagged=${flagged.url}`] })
  expect((await add(control, { name: 'added', url: added.url })).status).toBe(201)
  const [one, other] = await listed(control)
  expect(new Set(flagged.sent)).toEqual(new Set([`Bearer ${COMMON}`]))
  expect(one!.reason).toBe('missing or wrong token (correct SERVICE_RUNTIME_TOKEN)')
  expect(new Set(added.sent)).toEqual(new Set([null]))
  expect(other!.reason).toBe('missing or wrong token (set its token with taskmill runtimes add --token-file)')
  const { error } = await runOn(control, 'added')
  expect(error).toBe('runtime added: missing or wrong token (set its token with taskmill runtimes add --token-file)')
  expect((await runOn(control, 'flagged')).error).toContain('(correct SERVICE_RUNTIME_TOKEN)')
  // Nor does somebody who takes the name of one of the flags get it.
  expect((await control.fetch('/runtimes/flagged', { method: 'DELETE' })).status).toBe(200)
  expect((await control.fetch('/runtimes/added', { method: 'DELETE' })).status).toBe(200)
  const before = added.sent.length
  expect((await add(control, { name: 'flagged', url: added.url })).status).toBe(201)
  await until(
    async () => [await listed(control), added.sent.length],
    ([, calls]) => Number(calls) > before,
  )
  expect(new Set(added.sent)).toEqual(new Set([null]))
})

test('the token that is given counts, also after a restart and while tasks run, and nothing shows it', async () => {
  using dir = tempDir()
  await using runtime = await startRuntime({ env: { SERVICE_TOKEN: OWN } })
  const start = () => startControl({ dataDir: dir.path, env, flags: ['--runtime-url', 'flagged=http://127.0.0.1:1'] })
  const told: unknown[] = []
  const gpu = { name: 'gpu-1', url: runtime.url }
  {
    await using control = await start()
    told.push(await add(control, { ...gpu, token: OWN }))
    expect(await runOn(control, 'gpu-1')).toMatchObject({ status: 'success' })
    expect((await add(control, { ...gpu, labels: { gpu: '' } })).status).toBe(200) // keeps its token
    expect(await runOn(control, 'gpu-1')).toMatchObject({ status: 'success' })
    told.push(await add(control, { ...gpu, token: `${OWN}-two` }))
    expect((await runOn(control, 'gpu-1')).error).toContain('(correct its token with taskmill runtimes add')
    told.push(await add(control, { ...gpu, token: OWN }))
    told.push(await add(control, { ...gpu, token: `${OWN} with spaces` }))
    told.push(await add(control, { name: 'gpu-2', url: runtime.url, token: OWN }))
    expect(told.slice(-2)).toMatchObject([
      {
        status: 400,
        text: JSON.stringify({ error: 'token: expected 1 to 4096 visible ASCII characters without spaces' }),
      },
      { status: 409 },
    ])
    told.push(control.log)
    expect(await control.stop('SIGKILL')).not.toBe(0)
  }
  expect(statSync(join(dir.path, 'runtimes.json')).mode & 0o777).toBe(0o600)
  await using control = await start()
  expect(await runOn(control, 'gpu-1')).toMatchObject({ status: 'success', placed_on: 'gpu-1' })
  for (const path of ['/runtimes', '/runtime', '/tasks', '/graphs', '/metrics', '/health', '/']) {
    told.push(await (await control.fetch(path)).text())
  }
  told.push(await control.fetch('/runtimes/gpu-1/drain', { method: 'POST' }).then((answer) => answer.text()))
  told.push(await control.fetch('/runtimes/gpu-1', { method: 'DELETE' }).then((answer) => answer.text()))
  await runtime.stop()
  expect(JSON.stringify([...told, control.log, runtime.log])).not.toContain(OWN)
})

test('one that an earlier version kept gets the common token as before, until it is given its own', async () => {
  using dir = tempDir()
  await using old = refusing()
  const added = [{ name: 'old', url: old.url, labels: {} }]
  await Bun.write(join(dir.path, 'runtimes.json'), JSON.stringify({ added, draining: [], removed: [], losses: [] }))
  await using control = await startControl({ dataDir: dir.path, env, flags: ['--runtime-url', 'a=http://127.0.0.1:1'] })
  await listed(control)
  expect((await add(control, { ...added[0], labels: { gpu: '' } })).status).toBe(200)
  await runOn(control, 'old')
  expect(new Set(old.sent)).toEqual(new Set([`Bearer ${COMMON}`]))
  const before = old.sent.length
  expect((await add(control, { ...added[0], token: OWN })).status).toBe(200)
  await runOn(control, 'old')
  expect(new Set(old.sent.slice(before))).toEqual(new Set([`Bearer ${OWN}`]))
})

test('one that registers itself brings its own token', async () => {
  await using control = await startControl({ env: { ...env, SERVICE_TOKEN: 'sesame' } })
  const asCaller = { authorization: 'Bearer sesame' }
  await using runtime = await startRuntime({
    flags: ['--register', control.url, '--runtime-id', 'self'],
    env: { SERVICE_TOKEN: OWN, SERVICE_CONTROL_TOKEN: 'sesame' },
  })
  await until(
    () => listed(control, asCaller),
    (runtimes) => runtimes.some(({ name, state }) => name === 'self' && state === 'ready'),
  )
  await runtime.stop()
})

test('--runtime-token-file has the token of one of --runtime-url', async () => {
  using dir = tempDir()
  const file = join(dir.path, 'token')
  await Bun.write(file, `${OWN}\n`)
  await using one = refusing()
  await using other = refusing()
  const flags = ['--runtime-url', `one=${one.url}`, '--runtime-url', `other=${other.url}`, '--runtime-token-file']
  await using control = await startControl({ env, flags: [...flags, `one=${file}`] })
  const [first] = await listed(control)
  expect([...new Set([...one.sent, ...other.sent])]).toEqual([`Bearer ${OWN}`, `Bearer ${COMMON}`])
  expect(first!.reason).toBe('missing or wrong token (correct --runtime-token-file)')
  for (const [given, fault] of [
    [[`gone=${file}`], '--runtime-token-file: one for each name of --runtime-url, gone is none'],
    [[`one=${file}`, '--runtime-token-file', `one=${file}`], 'one has two'],
    [[`one=${file}x`], `cannot read the token file ${file}x: ENOENT (give another with --runtime-token-file)`],
    [[file], 'expected the name of a runtime service and a file, as in gpu-1=FILE'],
  ] as const) {
    const started = startControl({ env, flags: [...flags, ...given] })
    expect(await started.then(String, String)).toContain(fault)
  }
})

test('taskmill runtimes add --token-file gives it, and no argument does', async () => {
  using dir = tempDir()
  const file = join(dir.path, 'token')
  await Bun.write(file, `${OWN}\n`)
  await using runtime = refusing()
  await using control = await startControl({ env })
  const client = async (...args: string[]) => (await runClient(['runtimes', ...args], { url: control.url })).exitCode
  expect(await client('add', 'gpu-1', runtime.url, '--token-file', file)).toBe(0)
  await listed(control)
  expect(new Set(runtime.sent)).toEqual(new Set([`Bearer ${OWN}`]))
  expect(await client('drain', 'gpu-1', '--token-file', file)).toBe(2)
  expect(await client('add', 'gpu-2', runtime.url, '--token-file', `${file}x`)).toBe(2)
})
