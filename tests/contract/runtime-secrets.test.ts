/**
 * Goal: a task gets the value of a secret, and the value is nowhere else: in no file of the services, no answer, no log
 * line. Method: tasks that compare the value with its hash; then every answer and every file is searched.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'
import { filesWith } from '../support/files-below.ts'
import { startPair } from '../support/pair.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { runRuntime } from '../support/runtime-command.ts'
import { command, refused, script, waitFor } from '../support/runtime-tasks.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { endProcessesOf } from '../support/task-processes.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const VALUE = `s3cr3t-${crypto.randomUUID()}`
const HASH = new Bun.CryptoHasher('sha256').update(VALUE).digest('hex')
/** Succeeds if $TOKEN is the secret, and prints nothing of it. */
const COMPARISON = `test "$(printf %s "$TOKEN" | sha256sum)" = '${HASH}  -'`
const COMPARE = script(COMPARISON)
const TOKEN = { secrets: { TOKEN: 'token' } }

let secrets: TempDir
let runtime: Runtime
const put = (name: string, value: string | Buffer, mode = 0o600) => {
  writeFileSync(join(secrets.path, name), value)
  chmodSync(join(secrets.path, name), mode)
}

beforeAll(async () => {
  secrets = tempDir()
  put('token', `${VALUE}\n`)
  put('group', VALUE, 0o640)
  put('others', VALUE, 0o604)
  put('written', VALUE, 0o620)
  put('binary', 'a\0b')
  put('odd', Buffer.from([0x61, 0xff, 0x62]))
  put('huge', 'x'.repeat(1_048_577))
  put('long', 'x'.repeat(200_000))
  put('nearly-long', 'x'.repeat(131_069))
  mkdirSync(join(secrets.path, 'directory'))
  symlinkSync('token', join(secrets.path, 'link'))
  symlinkSync('/etc/hostname', join(secrets.path, 'outside'))
  runtime = await startRuntime({ flags: ['--secrets-dir', secrets.path] })
})
afterAll(async () => {
  await runtime.dispose()
  secrets[Symbol.dispose]()
})

/** Regular files with the value below a directory. */
const filesWithValue = (top: string): string[] => filesWith(top, (content) => content.includes(VALUE))

describe('a task', () => {
  test.each(['token', 'group', 'link'])('gets the value of the secret %s', async (name) => {
    const task = await runtime.run({ ...COMPARE, secrets: { TOKEN: name } })
    expect(task).toMatchObject({ status: 'success', stdout: '', stderr: '' })
  })

  test('has the value in its environment only: no file, answer or log line of the service has it', async () => {
    const id = await runtime.submit({ ...script(`${COMPARISON} && sleep 600`), ...TOKEN })
    await runtime.submit({ ...command('/no/such/program'), ...TOKEN, task_id: 'never-ran' })
    expect((await runtime.ended('never-ran')).error?.code).toBe('launch_failed')
    const answers = async () => {
      const paths = ['', `/${id}`, `/${id}/events`, `/${id}/logs`, '/never-ran', '/never-ran/events']
      const texts = paths.map(async (path) => (await runtime.fetch(`/api/v1/tasks${path}`)).text())
      return (await Promise.all(texts)).join()
    }
    expect(await answers()).not.toContain(VALUE)
    expect(filesWithValue(runtime.dataDir)).toEqual([])
    await runtime.kill(id)
    await runtime.ended(id)
    expect(await answers()).not.toContain(VALUE)
    expect(filesWithValue(runtime.dataDir)).toEqual([])
    expect(JSON.stringify(runtime.log)).not.toContain(VALUE)
    const { artifacts } = await runtime.get(id)
    expect(JSON.parse(readFileSync(artifacts.request_path, 'utf8')).secrets).toEqual(TOKEN.secrets)
  })

  test('that waits gets the value that the secret has when it starts, also after a restart', async () => {
    using temp = tempDir()
    await using _ = endProcessesOf(temp.path)
    put('changing', 'old')
    const options = { dataDir: temp.path, flags: ['--secrets-dir', secrets.path, '--max-running-tasks', '1'] }
    let id = ''
    {
      await using first = await startRuntime(options)
      const holder = await first.script(`echo; ${waitFor(join(temp.path, 'go'))}`)
      await first.printed(holder)
      id = await first.submit({ ...COMPARE, secrets: { TOKEN: 'changing' } })
      await first.stop('SIGKILL')
    }
    put('changing', VALUE)
    await using second = await startRuntime(options)
    writeFileSync(join(temp.path, 'go'), '')
    expect((await second.ended(id)).status).toBe('success')
    expect(filesWithValue(temp.path)).toEqual([])
  })

  test('fails if the secret is gone when it starts', async () => {
    put('leaving', VALUE)
    await using busy = await startRuntime({ flags: ['--secrets-dir', secrets.path, '--max-running-tasks', '1'] })
    const holder = await busy.submit(script('sleep 600'))
    const id = await busy.submit({ ...COMPARE, secrets: { TOKEN: 'leaving' } })
    rmSync(join(secrets.path, 'leaving'))
    await busy.kill(holder)
    expect(await busy.ended(id)).toMatchObject({
      status: 'failed',
      error: {
        code: 'invalid_input',
        message: 'secrets.TOKEN: there is no secret leaving (no such file in --secrets-dir)',
      },
    })
  })

  test.skipIf(missingSandbox !== undefined)(
    `in a sandbox gets it, and does not see the directory${missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`}`,
    async () => {
      // Below /tmp everything is hidden anyway, so a part of it is shown.
      using shown = tempDir()
      chmodSync(shown.path, 0o755)
      const directory = join(shown.path, 'secrets')
      mkdirSync(directory, { mode: 0o700 })
      writeFileSync(join(directory, 'token'), VALUE, { mode: 0o600 })
      await using fenced = await startRuntime({ flags: ['--secrets-dir', directory, '--sandbox-expose', shown.path] })
      const { execution } = script(`${COMPARISON} && ls -A ${directory}`)
      const task = await fenced.run({ execution, ...TOKEN, sandbox: { profile: 'linux_sandbox' } })
      expect(task).toMatchObject({ status: 'success', stdout: '' })
    },
  )
})

describe('a task that asks for a secret that it cannot have is refused, in words that have names only', () => {
  const NAME_RULE = 'the name of a secret has 1 to 128 letters, digits, "-", "_" and ".", got'
  test.each<[object, string]>([
    [{ TOKEN: 'none' }, 'secrets.TOKEN: there is no secret none (no such file in --secrets-dir)'],
    [{ TOKEN: 'others' }, 'secrets.TOKEN: the secret others is open to other users (chmod 600 its file)'],
    [{ TOKEN: 'written' }, 'secrets.TOKEN: the secret written is open to other users (chmod 600 its file)'],
    [{ TOKEN: 'directory' }, 'secrets.TOKEN: the secret directory is not a file'],
    [{ TOKEN: 'binary' }, 'secrets.TOKEN: the secret binary has a NUL character, which no variable can hold'],
    [{ TOKEN: 'odd' }, 'secrets.TOKEN: the secret odd is no UTF-8 text, and a variable holds nothing else'],
    [
      { TOKEN: 'outside' },
      'secrets.TOKEN: the secret outside is a link that leads out of the directory of the secrets',
    ],
    [
      { TOKEN: 'long' },
      'secrets.TOKEN: has 200006 bytes with its name and a program takes at most 131071 in one string',
    ],
    [{ TOKEN: 'huge' }, 'secrets.TOKEN: the secret huge has 1048577 bytes (at most 1048576)'],
    [{ TOKEN: '__proto__' }, 'secrets.TOKEN: there is no secret __proto__ (no such file in --secrets-dir)'],
    [
      { LONGERNAME: 'nearly-long' },
      'secrets.LONGERNAME: has 131080 bytes with its name and a program takes at most 131071 in one string',
    ],
    [
      Object.fromEntries(Array.from({ length: 16 }, (_, i) => [String.fromCharCode(65 + i), 'nearly-long'])),
      'execution and secrets have 2097313 bytes of arguments and environment and a program takes at most 1966080',
    ],
    [{ TASKMILL_TASK: 'token' }, 'secrets.TASKMILL_TASK marks the processes of a task and cannot be replaced'],
    [{ TOKEN: '../token' }, `secrets.TOKEN: ${NAME_RULE} "../token"`],
    [{ TOKEN: '..' }, `secrets.TOKEN: ${NAME_RULE} ..`],
    [{ TOKEN: '' }, `secrets.TOKEN: ${NAME_RULE} ""`],
    [{ 'A=B': 'token' }, 'secrets keys must be non-empty and cannot contain "="'],
    [{ '': 'token' }, 'secrets keys must be non-empty and cannot contain "="'],
    [{ HERE: 'token' }, 'secrets.HERE is a variable of execution.env, too'],
    [
      { TOKEN: 1 },
      'invalid JSON: secrets.TOKEN: expected name of a secret (a string, no placeholder), or object with name, and file or mask, got number',
    ],
    [{ TOKEN: { $param: 'name' } }, 'unknown field "secrets.TOKEN.$param"'],
    [{ TOKEN: { file: 'token' } }, 'invalid JSON: secrets.TOKEN.name: expected string, got null'],
    [{ TOKEN: { name: 'token', mask: 'no' } }, 'invalid JSON: secrets.TOKEN.mask: expected boolean, got string'],
    [
      Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`V${i}`, 'token'])),
      'secrets has 65 entries (a task has at most 64)',
    ],
  ])('%j', async (asked, message) => {
    const body = { execution: { kind: 'command', program: '/bin/true', env: { HERE: 'x' } }, secrets: asked }
    expect(await refused(await runtime.post(body))).toEqual([400, 'invalid_input', message])
  })

  test('without --secrets-dir', async () => {
    await using service = await startRuntime()
    expect(await refused(await service.post({ ...COMPARE, ...TOKEN }))).toEqual([
      400,
      'invalid_input',
      'secrets.TOKEN: this service has no secrets (start it with --secrets-dir)',
    ])
  })
})

test('a service does not start with its token among the secrets', async () => {
  put('service-token', 'sesame-42')
  using temp = tempDir()
  const flags = ['--secrets-dir', secrets.path, '--token-file', join(secrets.path, 'service-token')]
  const { exitCode, stderr } = await runRuntime([
    'serve',
    '--listen-addr',
    '127.0.0.1:0',
    '--data-dir',
    temp.path,
    ...flags,
  ])
  expect(exitCode).toBe(2)
  expect(stderr).toContain('lies in --secrets-dir, where every task could ask for it')
})

test('a runtime task of a graph gets it, and the files of control have only its name', async () => {
  await using pair = await startPair({ runtimeFlags: ['--secrets-dir', secrets.path] })
  await pair.control.submit([
    { id: 'has', type: 'runtime.script', params: { script: COMPARISON, ...TOKEN } },
    { id: 'lacks', type: 'runtime.script', params: { script: 'true', secrets: { TOKEN: 'none' } } },
  ])
  await pair.control.allEnded()
  expect(await pair.control.get('has')).toMatchObject({ status: 'success', params: TOKEN })
  const lacking = await pair.control.get('lacks')
  expect(lacking).toMatchObject({ status: 'failed', runtime: { error: { code: 'invalid_input' } } })
  expect(filesWithValue(pair.file(''))).toEqual([])
  const found = (await (await pair.runtime.fetch('/api/v1/tasks')).json()) as { tasks: TaskStatusResponse[] }
  expect(JSON.stringify(found)).not.toContain(VALUE)
})

const cannotLeaveOut =
  missingSandbox ?? (process.getuid?.() === 0 ? undefined : 'only a service of root may leave out a user namespace')
const why = cannotLeaveOut === undefined ? '' : ` (skipped: ${cannotLeaveOut})`

test.skipIf(cannotLeaveOut !== undefined)(
  `a sandbox that sees the processes of the host cannot read the secrets of another, nor end its processes${why}`,
  async () => {
    const mark = `600.${process.pid}${Date.now()}`
    const holder = await runtime.submit({
      ...script(`echo ready; exec sleep ${mark}`),
      secrets: { TOKEN: 'token', FILE: { name: 'token', file: 'kept/secret' } },
      sandbox: { profile: 'linux_sandbox' },
    })
    await runtime.printed(holder)
    await until(() => Bun.spawnSync(['pgrep', '-f', `^sleep ${mark}`]).exitCode, 0)
    const look = `for p in $(pgrep -f '^sleep ${mark}'); do
      echo found; cat /proc/$p/environ /proc/$p/cwd/kept/secret; kill -9 $p
    done`
    const all = { pid: false, user: false, ipc: false, net: false, uts: false }
    for (const namespaces of [{ pid: false, user: false }, { ...all, mount: false }, { pid: false }, { user: false }]) {
      const spy = await runtime.run({ ...script(look), sandbox: { profile: 'linux_sandbox', namespaces } })
      expect(spy.stdout).toBe('pid' in namespaces ? 'found\n' : '')
    }
    expect((await runtime.get(holder)).status).toBe('running')
    await runtime.kill(holder)
  },
)
