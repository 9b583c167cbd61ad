/**
 * Goal: `--secret-command` gives tasks, requests and callbacks their secrets as files would, a failing command costs an attempt
 * and no more, and no value is written down.
 * Method: real services whose command is a shell script with a directory of values, which can be missing, changed or made to hang.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import { startControl } from '../support/control.ts'
import { filesWith } from '../support/files-below.ts'
import { freePort } from '../support/free-port.ts'
import { type Pair, startPair } from '../support/pair.ts'
import { startReceiver } from '../support/receiver.ts'
import { startRuntime } from '../support/runtime.ts'
import { endProcessesOf, gone } from '../support/task-processes.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const VALUE = `s3cr3t-${crypto.randomUUID()}`
const HASH = new Bun.CryptoHasher('sha256').update(VALUE).digest('hex')
const IS_VALUE = `test "$(printf %s "$TOKEN" | sha256sum)" = '${HASH}  -'`
const OPEN = { SERVICE_SHELL_POLICY: 'open' }

let temp: TempDir
let pair: Pair
let server: Bun.Server<undefined>
let receiver: ReturnType<typeof startReceiver>
let flags: string[]
const sent: (string | null)[] = []
const file = (...names: string[]) => join(temp.path, ...names)
const put = (name: string, value: string) => writeFileSync(file('vault', name), value)
const asked = (name: string) =>
  readFileSync(file('asked'), 'utf8')
    .split('\n')
    .filter((line) => line === name).length
const command = () => `'${file('vault.sh')}' {name}`

beforeAll(async () => {
  temp = tempDir()
  mkdirSync(file('vault'))
  writeFileSync(
    file('vault.sh'),
    `#!/bin/sh
cd '${temp.path}'; echo "$1" >> asked
case $1 in hang*) echo $$ > $1; sleep 600;; esac
cat "vault/$1" && exit 0
echo "no $1, but ${VALUE}" >&2
echo ${VALUE}
exit 7
`,
    { mode: 0o700 },
  )
  put('token', `${VALUE}\n`)
  server = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0 },
    fetch: ({ headers }) => {
      sent.push(headers.get('x-key'))
      return new Response(headers.get('x-key'))
    },
  })
  const rules = file('rules.toml')
  receiver = startReceiver()
  const hosts = { token: server.port, 'later-http': server.port, 'later-callback': receiver.port }
  const tables = Object.entries(hosts).map(([name, port]) => `[${name}]\nhosts = ["http://127.0.0.1:${port}"]\n`)
  writeFileSync(rules, tables.join(''), { mode: 0o644 })
  flags = ['--secret-command', command()]
  pair = await startPair({
    controlFlags: [...flags, '--secrets-rules', rules, '--callback-policy', 'any'],
    runtimeFlags: flags,
    controlEnv: OPEN,
  })
})
afterAll(async () => {
  await pair[Symbol.asyncDispose]()
  await Promise.all([server.stop(true), receiver.stop()])
  temp[Symbol.dispose]()
})

const kinds = (name: string) => {
  const secrets = { TOKEN: name }
  return {
    shell: { type: 'shell', params: { script: IS_VALUE }, secrets },
    'cli-skills': { type: 'cli-skills', params: { command: '/bin/sh', args: ['-c', IS_VALUE] }, secrets },
    runtime: { type: 'runtime.script', params: { script: IS_VALUE }, secrets },
    http: {
      type: 'http',
      params: { url: `http://127.0.0.1:${server.port}/`, headers: { 'X-Key': { $secret: name } } },
    },
  }
}

test('tasks of all kinds get what the command prints, each service asks it once, and nothing is written down', async () => {
  for (const task of [...Object.values(kinds('token')), kinds('token').shell])
    expect(await pair.control.run(task)).toMatchObject({ status: 'success' })
  expect(sent).toEqual([VALUE])
  expect(asked('token')).toBe(2)
  const inFile = { ...kinds('token').runtime, secrets: { TOKEN: { name: 'token', file: 'conf/token' } } }
  const params = {
    script: `test "$(sha256sum < "$TOKEN")" = '${new Bun.CryptoHasher('sha256').update(`${VALUE}\n`).digest('hex')}  -'`,
  }
  expect(await pair.control.run({ ...inFile, params })).toMatchObject({ status: 'success' })
  const places = [pair.control.dataDir, pair.runtime.dataDir]
  expect(places.flatMap((place) => filesWith(place, (content) => content.includes(VALUE)))).toEqual([])
  expect(JSON.stringify([pair.control.log, pair.runtime.log])).not.toContain(VALUE)
})

test.each(['shell', 'cli-skills', 'runtime', 'http'] as const)(
  'a command that fails costs a %s task its attempt: the error names the secret and the exit code',
  async (kind) => {
    const name = `later-${kind}`
    const task = kinds(name)[kind]
    const record = await pair.control.run(task)
    const message = `the secret ${name}: ${file('vault.sh')} of --secret-command ended with exit code 7`
    expect(record).toMatchObject({
      ...{ status: 'failed', error: expect.stringContaining(message) },
      runtime: { error: { code: 'external_failure', retryable: true } },
    })
    expect(JSON.stringify(record)).not.toContain(VALUE)
    const { task_ids, warnings } = await pair.control.submit([
      { ...task, id: name, retry: 1_000, backoff: { initial_ms: 20, factor: 1 } },
    ])
    expect(warnings).toBeUndefined()
    await until(
      () => pair.control.get(task_ids[0]!),
      ({ attempt = 0 }) => attempt > 1,
    )
    put(name, VALUE)
    expect(await pair.control.ended(name)).toMatchObject({ status: 'success' })
  },
)

test('a callback whose secret is not there is tried again', async () => {
  const callback = { url: receiver.url, headers: { 'X-Key': { $secret: 'later-callback' } } }
  expect((await pair.control.post({ tasks: [{ id: 'calls-back', type: 'noop' }], callback })).status).toBe(202)
  await until(() =>
    pair.control.log.some(({ msg, cause }) => msg === 'callback failed' && String(cause).includes('exit code 7')),
  )
  put('later-callback', VALUE)
  await receiver.has(1)
  expect(receiver.received[0]!.headers.get('x-key')).toBe(VALUE)
})

test('a cancelled task does not wait for a command that hangs, and a service that stops ends it', async () => {
  await using control = await startControl({ flags, env: OPEN })
  await control.submit([{ ...kinds('hang').shell, id: 'waits' }])
  const pid = Number(await until(() => textOf('hang')))
  await control.fetch('/tasks/waits/cancel', { method: 'POST' })
  expect(await control.ended('waits')).toMatchObject({ status: 'cancelled' })
  await control.stop('SIGTERM')
  await gone(pid)
})

test('a command that hangs is ended after its time', async () => {
  await using control = await startControl({ flags: [...flags, '--secret-command-timeout', '200ms'], env: OPEN })
  expect(await control.run(kinds('hang-too').shell)).toMatchObject({
    ...{ status: 'failed', error: expect.stringContaining('of --secret-command has not ended within 200ms') },
  })
  await gone(Number(textOf('hang-too')))
})

test('a runtime task that waited gets the value of its start, also after a kill; without one it fails for now', async () => {
  using place = tempDir()
  await using _ = endProcessesOf(place.path)
  put('old', 'old')
  const options = {
    dataDir: place.path,
    flags: [...flags, '--secret-command-ttl-ms', '0', '--max-running-tasks', '1'],
  }
  const task = { execution: { kind: 'script', script: IS_VALUE }, secrets: { TOKEN: 'old' } }
  const ids: string[] = []
  {
    await using first = await startRuntime(options)
    const holder = await first.script('echo; sleep 600')
    await first.printed(holder)
    ids.push(await first.submit(task), await first.submit({ ...task, secrets: { TOKEN: 'token' } }), holder)
    await first.stop('SIGKILL')
  }
  rmSync(file('vault', 'old'))
  await using second = await startRuntime(options)
  await second.kill(ids[2]!)
  expect(await second.ended(ids[0]!)).toMatchObject({
    status: 'failed',
    error: { code: 'launch_failed', details: { step: 'secret_command', secret: 'old', exit_code: 7 } },
  })
  expect((await second.ended(ids[1]!)).status).toBe('success')
})

test('--with-runtime passes the command and its times on', async () => {
  using place = tempDir()
  await using _ = endProcessesOf(place.path)
  await builtProgram('taskmill-runtime')
  await using service = await startControl({
    dataDir: join(place.path, 'data'),
    flags: [
      ...flags,
      '--secret-command-ttl',
      '7s',
      '--with-runtime',
      '--runtime-url',
      `http://127.0.0.1:${await freePort()}`,
    ],
  })
  expect(await service.run(kinds('token').runtime)).toMatchObject({ status: 'success' })
  const { runtime_pid } = service.log.find(({ msg }) => msg === 'started a runtime service')!
  const given = readFileSync(`/proc/${runtime_pid}/cmdline`, 'utf8').split('\0')
  expect(given[given.indexOf('--secret-command') + 1]).toBe(command())
  expect(given[given.indexOf('--secret-command-ttl-ms') + 1]).toBe('7000')
  await service.stop('SIGTERM')
})

test.each([
  ['pass show', '--secret-command needs a program, and {name} in an argument'],
  [
    'no-such-vault {name}',
    '--secret-command: no-such-vault is no program (give its path, or have it in PATH of the service)',
  ],
])('a service does not start with the command %s', async (given, why) => {
  await expect(startControl({ flags: ['--secret-command', given] })).rejects.toThrow(why)
})

function textOf(name: string): string {
  try {
    return readFileSync(file(name), 'utf8').trim()
  } catch {
    return ''
  }
}
