/**
 * Goal: a task finds a secret in a file of its workspace, and the file is gone when the task has ended, however it ended and
 * whatever became of the service.
 * Method: a real service with tasks of every end, hostile ones too; the data directory is searched for the value.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { taskDir } from '../../runtime/files/task-dir.ts'
import type { SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'
import { filesWith } from '../support/files-below.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { runRuntime } from '../support/runtime-command.ts'
import { command, refused, script, waitFor } from '../support/runtime-tasks.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { endProcessesOf } from '../support/task-processes.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const VALUE = `s3cr3t\n-${crypto.randomUUID()}\n`
const hashOf = (value: string | Buffer) => new Bun.CryptoHasher('sha256').update(value).digest('hex')
const FILE = 'conf/deep/token'
const TOKEN = { secrets: { TOKEN: { name: 'token', file: FILE } } } satisfies SubmitTaskRequest
/** Succeeds if the variable names the file, whose bytes are those of the secret, and prints nothing of it. */
const isThere = (path = '"$TOKEN"') => `test "$(sha256sum < ${path})" = '${hashOf(VALUE)}  -'`
const IS_THERE = `${isThere()} && ${isThere(FILE)} && test "$(stat -c %a ${FILE})" = 400`

let secrets: TempDir
let runtime: Runtime
const BINARY = Buffer.from([0, 1, 255, 10, 0])
const LARGE = Buffer.alloc(1_048_576, 'x')
const put = (name: string, value: string | Buffer) => writeFileSync(join(secrets.path, name), value, { mode: 0o600 })

beforeAll(async () => {
  secrets = tempDir()
  put('token', VALUE)
  put('binary', BINARY)
  put('large', LARGE)
  runtime = await startRuntime({ flags: ['--secrets-dir', secrets.path, '--max-running-tasks', '8'] })
})
afterAll(async () => {
  await runtime.dispose()
  secrets[Symbol.dispose]()
})

const fileOf = (id: string, { dataDir } = runtime) => join(taskDir(dataDir, id).workspace, FILE)

/** Regular files with the value below a directory. Links are not followed. */
const filesWithValue = (top: string): string[] => filesWith(top, (content) => content.includes(VALUE.trim()))

describe('the file', () => {
  test('is there before the program starts, with all bytes, and gone at the end', async () => {
    const task = await runtime.run({ ...script(IS_THERE), ...TOKEN })
    expect(task).toMatchObject({ status: 'success', stdout: '', stderr: '' })
    expect(existsSync(fileOf(task.task_id))).toBe(false)
    expect(filesWithValue(runtime.dataDir)).toEqual([])
  })

  test.each([
    ['binary', BINARY],
    ['large', LARGE],
  ])('may have the bytes of %s', async (name, bytes) => {
    const asked = { execution: script(`sha256sum < "$S"`).execution, secrets: { S: { name, file: name } } }
    expect((await runtime.run(asked)).stdout).toBe(`${hashOf(bytes)}  -\n`)
  })

  const ends: readonly (readonly [string, SubmitTaskRequest, object])[] = [
    ['fails', script('exit 3'), { error: { code: 'exit_nonzero' } }],
    ['is no program', command('/no/such/program'), { error: { code: 'launch_failed' } }],
    ['takes too long', { ...script('sleep 600'), limits: { wall_time_ms: 50 } }, { error: { code: 'timeout' } }],
    ['makes its file a link', script(`ln -sf /etc/hostname ${FILE}`), { status: 'success' }],
    ['makes its file a directory', script(`rm -f ${FILE}; mkdir ${FILE}`), { status: 'success' }],
    ['closes its directories', script('chmod 0 conf/deep conf .'), { status: 'success' }],
    ['writes into its file', script(`chmod 600 ${FILE}; cp ${FILE} x; cat x >> ${FILE}; rm x`), { status: 'success' }],
  ]
  test.each(ends)('goes when the task %s', async (_, asked, expected) => {
    const task = await runtime.run({ ...asked, ...TOKEN })
    expect(task).toMatchObject(expected)
    expect(filesWithValue(runtime.dataDir)).toEqual([])
    const left = lstatSync(fileOf(task.task_id), { throwIfNoEntry: false })
    expect(left === undefined || left.isDirectory()).toBe(true)
    expect(existsSync('/etc/hostname')).toBe(true)
  })

  test('goes when the task is killed, and is shown to nobody before', async () => {
    const id = await runtime.submit({ ...script('echo; sleep 600'), ...TOKEN })
    await runtime.printed(id)
    expect(filesWithValue(runtime.dataDir)).toEqual([fileOf(id)])
    const shown = async (path: string) => {
      const response = await runtime.fetch(`/api/v1/tasks/${id}${path}`)
      return { status: response.status, text: await response.text() }
    }
    for (const path of [FILE, `${FILE}/`, 'conf%2Fdeep%2Ftoken', './conf/./deep/token', 'conf/../conf/deep/token']) {
      const { status, text } = await shown(`/files/${path}`)
      expect([path, status, text.includes(VALUE.trim())]).toEqual([path, status === 400 ? 400 : 403, false])
    }
    expect((await shown(`/files/${FILE}`)).text).toContain('this file of the task holds a secret: conf/deep/token')
    for (const path of ['', '/events', '/logs', '/files', '/files/conf/deep']) {
      const { status, text } = await shown(path)
      expect([path, status, text.includes(VALUE.trim())]).toEqual([path, 200, false])
    }
    await runtime.kill(id)
    await runtime.ended(id)
    expect(filesWithValue(runtime.dataDir)).toEqual([])
    expect(JSON.stringify(runtime.log)).not.toContain(VALUE.trim())
  })

  test('and a variable of the same secret are both there', async () => {
    const asked = { FILE: { name: 'token', file: 'token' }, TEXT: 'token' }
    const compare = `test "$(cat "$FILE")" = "$TEXT" && test "$FILE" = "$HOME/token"`
    expect((await runtime.run({ ...script(compare), secrets: asked })).status).toBe('success')
  })

  test('of a task that waits is made when it starts, anew in each service', async () => {
    using temp = tempDir()
    await using _ = endProcessesOf(temp.path)
    const options = { dataDir: temp.path, flags: ['--secrets-dir', secrets.path, '--max-running-tasks', '1'] }
    let id = ''
    {
      await using first = await startRuntime(options)
      const holder = await first.script(`echo; ${waitFor(join(temp.path, 'go'))}`)
      await first.printed(holder)
      id = await first.submit({ ...script(IS_THERE), ...TOKEN })
      expect(filesWithValue(temp.path)).toEqual([])
      await first.stop('SIGKILL')
    }
    await using second = await startRuntime(options)
    writeFileSync(join(temp.path, 'go'), '')
    expect((await second.ended(id)).status).toBe('success')
    expect(filesWithValue(temp.path)).toEqual([])
  })
})

describe('after a kill of the service', () => {
  test.each(['ended meanwhile', 'runs on'])(
    'the file of a task that %s is gone when the task has ended',
    async (fate) => {
      using temp = tempDir()
      await using _ = endProcessesOf(temp.path)
      const options = { dataDir: temp.path, flags: ['--secrets-dir', secrets.path] }
      const go = join(temp.path, 'go')
      let id = ''
      {
        await using first = await startRuntime(options)
        id = await first.submit({ ...script(`echo; ${waitFor(go)}; ${IS_THERE}`), ...TOKEN })
        await first.printed(id)
        await first.stop('SIGKILL')
      }
      const { task_dir } = taskDir(temp.path, id)
      if (fate === 'ended meanwhile') {
        writeFileSync(go, '')
        await until(
          () => existsSync(join(task_dir, 'outcome')) && readFileSync(join(task_dir, 'outcome'), 'utf8'),
          (outcome) => outcome !== false && outcome.includes('end=1'),
        )
        expect(filesWithValue(temp.path).length).toBe(1)
      }
      await using second = await startRuntime(options)
      if (fate === 'runs on') {
        const answer = await second.fetch(`/api/v1/tasks/${id}/files/${FILE}`)
        expect(await refused(answer)).toEqual([
          403,
          'permission_denied',
          'this file of the task holds a secret: conf/deep/token',
        ])
        writeFileSync(go, '')
      }
      expect((await second.ended(id)).status).toBe('success')
      expect(filesWithValue(temp.path)).toEqual([])
    },
  )
})

describe('beside inputs', () => {
  const inputs = { given: { task_id: 'source', file: 'dir' } }
  beforeAll(async () => {
    const source = await runtime.run({ task_id: 'source', ...script('mkdir -p dir/sub && echo mine > dir/taken') })
    expect(source.status).toBe('success')
  })

  test('a file may go into a directory of them, and they stay', async () => {
    const asked = { TOKEN: { name: 'token', file: 'given/sub/token' } }
    const check = `${isThere()} && test "$(cat given/taken)" = mine`
    const task = await runtime.run({ ...script(check), inputs, secrets: asked })
    expect(task).toMatchObject({ status: 'success', stderr: '' })
    const given = join(taskDir(runtime.dataDir, task.task_id).workspace, 'given')
    expect(readdirSync(given, { recursive: true }).toSorted()).toEqual(['sub', 'taken'])
  })

  test('a file does not take the place of one of theirs', async () => {
    const asked = { FIRST: { name: 'token', file: 'first' }, TOKEN: { name: 'token', file: 'given/taken' } }
    const task = await runtime.run({ ...script('true'), inputs, secrets: asked })
    expect(task).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_input', message: 'secrets.TOKEN.file: "given/taken" is there already' },
    })
    expect(readFileSync(join(taskDir(runtime.dataDir, task.task_id).workspace, 'given/taken'), 'utf8')).toBe('mine\n')
    expect(filesWithValue(runtime.dataDir)).toEqual([])
  })

  test('a later task gets no secret of an earlier one', async () => {
    const earlier = await runtime.run({ ...script(IS_THERE), ...TOKEN })
    const files = { all: { task_id: earlier.task_id, file: '.' } }
    expect(await runtime.run({ ...script('find all -type f'), inputs: files })).toMatchObject({
      status: 'success',
      stdout: '',
    })
  })
})

describe('in a sandbox', () => {
  const why = missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`
  test.skipIf(missingSandbox !== undefined).each([
    ['with a file view of its own', {}],
    ['with the files of the host', { namespaces: { mount: false } }],
    ['below another root', { chroot: true, rootfs: '/' }],
  ])(`%s, the file belongs to the user of the task${why}`, async (_, more) => {
    const sandbox = { profile: 'linux_sandbox' as const, ...more }
    const task = await runtime.run({ ...script(`${IS_THERE} && test -O ${FILE}`), ...TOKEN, sandbox })
    expect(task).toMatchObject({ status: 'success', stdout: '', stderr: '' })
    expect(filesWithValue(runtime.dataDir)).toEqual([])
  })
})

describe('a file that no task can have is refused', () => {
  const one = (file: string) => ({ A: { name: 'token', file } })
  const twoAt = (a: string, b: string) => ({ A: { name: 'token', file: a }, B: { name: 'token', file: b } })
  test.each<[object, string]>([
    [one('/etc/token'), 'secrets.A.file must be relative to the workspace'],
    [one('../token'), 'secrets.A.file cannot contain parent traversal'],
    [one('a/../../token'), 'secrets.A.file cannot contain parent traversal'],
    [one(''), 'secrets.A.file must name a file'],
    [one('.'), 'secrets.A.file must name a file'],
    [one('a/'), 'secrets.A.file must name a file'],
    [one('a\0b'), 'secrets.A.file cannot contain NUL characters'],
    [one('\ud800'), 'secrets.A.file is not valid Unicode: it contains half of a surrogate pair'],
    [one('x'.repeat(1025)), 'secrets.A.file has 1025 bytes (at most 1024)'],
    [one('x/'.repeat(32) + 'x'), 'secrets.A.file has 33 names (at most 32)'],
    [one('x'.repeat(256)), `secrets.A.file: ${'x'.repeat(64)}... is longer than the 255 bytes of a file name`],
    [one('work'), 'secrets.A.file is in the place of sandbox.workspace_subdir: work'],
    [one('work/sub'), 'secrets.A.file is in the place of sandbox.workspace_subdir: "work/sub"'],
    [one('in/put'), 'secrets.A.file is in the place of inputs."in/put": "in/put"'],
    [one('in'), 'secrets.A.file is in the place of inputs."in/put": in'],
    [twoAt('x', './x'), 'secrets.B.file is in the place of secrets.A.file: x'],
    [twoAt('x', 'x/y'), 'secrets.B.file needs a directory in the place of secrets.A.file: x'],
    [twoAt('x/y', 'x'), 'secrets.B.file is in the place of secrets.A.file: x'],
    [
      { A: { name: '../token', file: 'x' } },
      'secrets.A: the name of a secret has 1 to 128 letters, digits, "-", "_" and ".", got "../token"',
    ],
    [{ A: { name: 'none', file: 'x' } }, 'secrets.A: there is no secret none (no such file in --secrets-dir)'],
    [{ A: { name: 'token', file: 'x', path: 'y' } }, 'unknown field secrets.A.path'],
    [{ A: { name: 'token', file: 1 } }, 'invalid JSON: secrets.A.file: expected string, got number'],
    [
      Object.fromEntries(Array.from({ length: 256 }, (_, i) => [`V${i}`, { name: 'token', file: `f${i}` }])),
      'secrets has 256 entries (a task has at most 64)',
    ],
    [
      Object.fromEntries(Array.from({ length: 5 }, (_, i) => [`V${i}`, { name: 'large', file: `f${i}` }])),
      'secrets.V4: the secrets of a task have at most 4194304 bytes together',
    ],
  ])('%j', async (asked, message) => {
    const inputs = { 'in/put': { task_id: 'other', file: 'x' } }
    const body = { ...command('/bin/true'), secrets: asked, inputs, sandbox: { workspace_subdir: 'work/sub' } }
    expect(await refused(await runtime.post(body))).toEqual([400, 'invalid_input', message])
  })

  test('a path of megabytes in another field costs nothing', async () => {
    const body = { ...command('/bin/true'), secrets: one('x'), sandbox: { workspace_subdir: 'a/'.repeat(4_000_000) } }
    expect((await refused(await runtime.post(body)))[2]).toBe(
      'sandbox.workspace_subdir has 8000000 bytes (at most 1024)',
    )
  })

  test('64 of them are none too many, nor is __proto__ a name like no other', async () => {
    const files = Object.fromEntries(
      Array.from({ length: 63 }, (_, i) => [`V${i}`, { name: 'token', file: `d/f${i}` }]),
    )
    const asked = JSON.parse(JSON.stringify(files).replace('{', '{"__proto__":{"name":"token","file":"__proto__/p"},'))
    const task = await runtime.run({ ...script(`${isThere('d/f62')} && ${isThere('__proto__/p')}`), secrets: asked })
    expect(task.status).toBe('success')
    expect(filesWithValue(runtime.dataDir)).toEqual([])
  })
})

test('a service does not start with secrets that others can read', async () => {
  using temp = tempDir()
  const open = join(temp.path, 'open')
  mkdirSync(open)
  chmodSync(open, 0o755)
  const flags = ['--listen-addr', '127.0.0.1:0', '--data-dir', join(temp.path, 'data'), '--secrets-dir', open]
  const { exitCode, stderr } = await runRuntime(['serve', ...flags])
  expect([exitCode, stderr]).toEqual([
    2,
    `taskmill-runtime: --secrets-dir ${open} is open to other users (chmod 700 it)\n`,
  ])
  expect(existsSync(join(temp.path, 'data'))).toBe(false)
})

test('systemd credentials are the secrets of a service without --secrets-dir', async () => {
  using temp = tempDir()
  chmodSync(temp.path, 0o500)
  await using service = await startRuntime({ env: { CREDENTIALS_DIRECTORY: secrets.path } })
  expect((await service.run({ ...script(IS_THERE), ...TOKEN })).status).toBe('success')
  await using without = await startRuntime({
    env: { CREDENTIALS_DIRECTORY: secrets.path },
    flags: ['--secrets-dir', temp.path],
  })
  expect((await refused(await without.post({ ...script(IS_THERE), ...TOKEN })))[2]).toBe(
    'secrets.TOKEN: there is no secret token (no such file in --secrets-dir)',
  )
})
