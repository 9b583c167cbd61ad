/**
 * Goal: a secret goes only to the tasks that --secrets-rules names, at submission and at the start, and changes of the file count
 * without a restart.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { refused, script, waitFor } from '../support/runtime-tasks.ts'
import { type TempDir, tempDir } from '../support/temp.ts'

let temp: TempDir
let rules: string
let flags: string[]
const put = (text: string) => writeFileSync(rules, text, { mode: 0o644 })
const RULES = '[token]\ntenants = ["a"]\n\n[local]\ntypes = ["shell"]\n'

beforeAll(() => {
  temp = tempDir()
  rules = join(temp.path, 'secrets.toml')
  const dir = join(temp.path, 'secrets')
  mkdirSync(dir, { mode: 0o700 })
  for (const name of ['token', 'local', 'free']) writeFileSync(join(dir, name), `value-of-${name}`, { mode: 0o600 })
  put(RULES)
  flags = ['--secrets-dir', dir, '--secrets-rules', rules]
})
afterAll(() => temp[Symbol.dispose]())

const asking = (name: string, tenant?: string) => ({
  ...script('test -n "$S"'),
  ...{ secrets: { S: name }, ...(tenant !== undefined && { control_context: { tenant } }) },
})
const notFor = (name: string, whom: string) =>
  `secrets.S: the secret ${name} is not for ${whom} (its table in --secrets-rules decides)`

const health = async (service: Runtime | Control, path: string) => (await (await service.fetch(path)).json()) as object
const FAULT = 'the file of --secrets-rules cannot be used: the rules before it stay in force (see the log)'

test('the runtime service obeys the rules, and each change of them', async () => {
  put(RULES)
  await using service = await startRuntime({ flags })
  for (const asked of [asking('token', 'a'), asking('free'), asking('free', 'b')]) {
    expect((await service.run(asked)).status).toBe('success')
  }
  for (const [asked, whom] of [
    [asking('token', 'b'), 'tasks of tenant b'],
    [asking('token'), 'tasks without a tenant'],
    [asking('local', 'a'), 'tasks of type runtime'],
  ] as const) {
    const name = asked.secrets.S
    expect(await refused(await service.post(asked))).toEqual([400, 'invalid_input', notFor(name, whom)])
  }
  put('[token]\ntenants = ["b"]\n')
  expect(await refused(await service.post(asking('token', 'a')))).toMatchObject([
    400,
    'invalid_input',
    notFor('token', 'tasks of tenant a'),
  ])
  put('[token]\ntenants = "c"\n')
  expect((await service.run(asking('token', 'b'))).status).toBe('success')
  expect(await health(service, '/healthz')).toMatchObject({ status: 'ok', secrets_fault: FAULT })
  put(RULES)
  expect(await health(service, '/healthz')).not.toHaveProperty('secrets_fault')
})

test('a task that waits when its tenant loses the secret does not get it', async () => {
  put(RULES)
  await using service = await startRuntime({ flags: [...flags, '--max-running-tasks', '1'] })
  const go = join(temp.path, 'go')
  const holder = await service.submit(script(`echo; ${waitFor(go)}`))
  await service.printed(holder)
  const id = await service.submit(asking('token', 'a'))
  put('[token]\ntenants = []\n')
  writeFileSync(go, '')
  expect(await service.ended(id)).toMatchObject({
    status: 'failed',
    error: { code: 'invalid_input', message: notFor('token', 'tasks of tenant a') },
  })
})

test('control obeys them for local tasks, warns at submission, and passes them on to its runtime service', async () => {
  put(RULES)
  await using control = await startControl({
    flags: [...flags, '--with-runtime', '--runtime-url', `http://127.0.0.1:${await freePort()}`],
    env: { SERVICE_SHELL_POLICY: 'open', SERVICE_RUNTIME_TENANT: 'a' },
  })
  const task = (type: string, name: string) => ({
    ...{ type, secrets: { S: name } },
    params: type === 'cli-skills' ? { command: '/bin/sh', args: ['-c', 'test -n "$S"'] } : { script: 'test -n "$S"' },
  })
  for (const [type, name] of [
    ['shell', 'local'],
    ['runtime.script', 'token'],
    ['cli-skills', 'free'],
  ] as const) {
    expect(await control.run(task(type, name))).toMatchObject({ status: 'success' })
  }
  for (const [type, name, whom] of [
    ['shell', 'token', 'tasks without a tenant'],
    ['cli-skills', 'local', 'tasks of type cli-skills'],
    ['runtime.script', 'local', 'tasks of type runtime'],
  ] as const) {
    expect(await control.run(task(type, name))).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: notFor(name, whom),
    })
  }
  const answer = await control.post({ tasks: [{ id: 'warned', ...task('cli-skills', 'local') }] })
  expect(JSON.stringify(await answer.json())).toContain('the secret local is not for tasks of type cli-skills')
  put('[token')
  expect(await health(control, '/health')).toMatchObject({ status: 'ok', secrets_fault: FAULT })
  await control.stop('SIGTERM')
})
