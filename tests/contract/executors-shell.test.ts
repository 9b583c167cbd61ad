/** The executor shell. Source: spec, Task executors; contract, Executors and section 5. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { type Control, startControl } from '../support/control.ts'
import { pidFrom } from '../support/pid-file.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { isAlive, until } from '../support/until.ts'

const KILL_GRACE_MS = 200

/** The default policy. */
let guarded: Control
/** SERVICE_SHELL_POLICY=open. */
let open: Control
let temp: TempDir
beforeAll(async () => {
  temp = tempDir()
  const secrets = {
    SERVICE_RUNTIME_TOKEN: 'sesame',
    SECRET_KEY: 'sesame',
    HTTP_PROXY: 'http://127.0.0.1:9',
    LANG: 'C.UTF-8',
  }
  guarded = await startControl({ env: secrets })
  open = await startControl({
    env: { ...secrets, SERVICE_SHELL_POLICY: 'open' },
    flags: ['--kill-grace', `${KILL_GRACE_MS}ms`],
  })
})
afterAll(async () => {
  await guarded.dispose()
  await open.dispose()
  temp[Symbol.dispose]()
})

type Shell = { stdout: string; stderr: string; exit_code: number; runner: string; truncated: boolean } & Record<
  string,
  unknown
>
const resultOf = (task: TaskRecord) => task.result as Shell
const run = (service: Control, params: object, more: object = {}) => service.run({ type: 'shell', params, ...more })
const script = (text: string, more: object = {}) => run(open, { script: text, dir: temp.path }, more)

describe('allowlist', () => {
  test.each(['rm', 'echo;id'])('a command outside it fails the task: %j', async (command) => {
    const task = await run(guarded, { command })
    expect(task).toMatchObject({
      status: 'failed',
      error: expect.stringContaining(`command ${JSON.stringify(command)} is not in the allowed whitelist (`),
      runtime: { error: { code: 'denied' } },
    })
    expect(task).not.toHaveProperty('result')
  })

  test('a script fails the task: it could run anything', async () => {
    const made = join(temp.path, 'made')
    const task = await run(guarded, { script: `touch ${made}` })
    expect(task).toMatchObject({ status: 'failed', runtime: { error: { code: 'denied' } } })
    expect(task.error).toContain('not in the allowed whitelist')
    expect(existsSync(made)).toBe(false)
  })

  test('SERVICE_SHELL_POLICY=open disables it; another value does not', async () => {
    expect(resultOf(await run(open, { command: 'sh', args: ['-c', 'echo hi'] }))).toMatchObject({ stdout: 'hi\n' })
    await using closed = await startControl({ env: { SERVICE_SHELL_POLICY: 'closed' } })
    expect((await run(closed, { command: 'sh', args: ['-c', 'echo hi'] })).runtime?.error?.code).toBe('denied')
  })
})

describe('result', () => {
  test('has stdout, stderr and exit_code, and the runner', async () => {
    const task = await run(guarded, { command: 'echo', args: ['a', 'b'] })
    expect(task.status).toBe('success')
    expect(resultOf(task)).toMatchObject({
      stdout: 'a b\n',
      stderr: '',
      exit_code: 0,
      runner: 'direct',
      truncated: false,
    })
  })

  test('arguments are passed on as they are, through no shell', async () => {
    const args = ['$HOME', '`id`', '; ls', '*', '', 'two  spaces', "quo'te", '日本']
    expect(resultOf(await run(guarded, { command: 'echo', args })).stdout).toBe(`${args.join(' ')}\n`)
  })

  test('of a command that exits with another code than 0 is kept, and the task is failed', async () => {
    const task = await run(guarded, { command: 'ls', args: ['/no/such/directory'] })
    expect(task).toMatchObject({
      status: 'failed',
      error: 'command failed: exit status 2',
      runtime: { error: { code: 'exit_nonzero', message: 'command failed: exit status 2' } },
      result: { exit_code: 2, stdout: '', stderr: expect.stringContaining('/no/such/directory') },
    })
  })

  test.each(['SEGV', 'TERM', 'KILL', 'HUP'])('of a command that died of SIG%s names the signal', async (signal) => {
    const task = await script(`echo before; kill -${signal} $$`)
    expect(task).toMatchObject({
      status: 'failed',
      runtime: { error: { code: 'exit_nonzero', details: { signal: `SIG${signal}` } } },
      result: { stdout: 'before\n' },
    })
    expect(task.error).toEndWith(`terminated by signal SIG${signal}`)
  })

  test('both streams are kept apart', async () => {
    expect(resultOf(await script('echo out; echo err >&2; exit 3'))).toMatchObject({
      stdout: 'out\n',
      stderr: 'err\n',
      exit_code: 3,
    })
  })
})

describe('script and runner', () => {
  test.each([{}, { runner: 'auto' }, { runner: 'sh' }])('a script runs with sh: %j', async (runner) => {
    const task = await run(open, { script: 'x=1; for i in 1 2; do echo $x$i; done', ...runner })
    expect(task.status).toBe('success')
    expect(resultOf(task)).toMatchObject({ stdout: '11\n12\n', runner: 'sh' })
  })

  test('another runner is a bad parameter', async () => {
    const task = await run(open, { script: 'echo', runner: 'perl' })
    expect(task.error).toStartWith('parse shell params: runner')
    expect(task.runtime?.error?.code).toBe('invalid_input')
  })
})

describe('dir', () => {
  test('is the working directory', async () => {
    const dir = join(temp.path, 'a dir')
    mkdirSync(dir)
    expect(resultOf(await run(guarded, { command: 'pwd', dir })).stdout).toBe(`${dir}\n`)
  })

  test('that does not exist fails the task', async () => {
    const task = await run(guarded, { command: 'pwd', dir: join(temp.path, 'nowhere') })
    expect(task).toMatchObject({ status: 'failed', runtime: { error: { code: 'launch_failed' } } })
    expect(task.error).toContain('nowhere')
  })

  test('that is a file fails the task', async () => {
    const dir = join(temp.path, 'file')
    writeFileSync(dir, '')
    const task = await run(guarded, { command: 'pwd', dir })
    expect(task.error).toBe(`cannot start pwd: the working directory ${dir} is not a directory`)
    expect(task.runtime?.error?.code).toBe('launch_failed')
  })
})

describe('parameters', () => {
  test.each([[undefined], [{}], [{ command: '' }], [{ command: null }], [{ args: ['x'] }]])(
    'command is required: %j',
    async (params) => {
      const task = await guarded.run({ type: 'shell', params })
      expect(task).toMatchObject({
        status: 'failed',
        error: 'command is required',
        runtime: { error: { code: 'invalid_input' } },
      })
    },
  )

  test.each([
    [['echo'], ''],
    ['echo', ''],
    [{ command: 7 }, 'command'],
    [{ command: 'echo', args: 'x' }, 'args'],
    [{ command: 'echo', args: [1] }, 'args'],
    [{ command: 'echo', dir: [] }, 'dir'],
  ])('of the wrong type fail with `parse shell params`: %j', async (params, field) => {
    const task = await guarded.run({ type: 'shell', params })
    expect(task.error).toMatch(new RegExp(`^parse shell params: .*${field}`))
    expect(task).toMatchObject({ status: 'failed', runtime: { error: { code: 'invalid_input' } } })
  })

  test.each(['no-such-program', '/no/such/program', '/etc', '/etc/passwd'])(
    'a program that cannot start fails with launch_failed: %s',
    async (command) => {
      const task = await run(open, { command })
      expect(task).toMatchObject({ status: 'failed', runtime: { error: { code: 'launch_failed' } } })
      expect(task.error).toContain(command)
      expect(task).not.toHaveProperty('result')
    },
  )
})

describe('what a process sees', () => {
  test('the environment is minimal (PATH HOME LANG TMPDIR USER), never the service’s own', async () => {
    const { stdout } = resultOf(await run(open, { command: 'env' }))
    const names = stdout
      .trim()
      .split('\n')
      .map((line) => line.slice(0, line.indexOf('=')))
    // TASKMILL_ATTEMPT names the attempt: what a killed service left running is found by it.
    expect(names.sort()).toEqual(['HOME', 'LANG', 'PATH', 'TASKMILL_ATTEMPT', 'TMPDIR', 'USER'])
    expect(stdout).not.toContain('sesame')
    expect(resultOf(await run(guarded, { command: 'cat', args: ['/proc/self/environ'] })).stdout).not.toContain(
      'sesame',
    )
  })

  test('no descriptor of the service is open beside the three', async () => {
    const { stdout } = resultOf(await script('ls /proc/$$/fd; exit 0'))
    expect(stdout).toBe('0\n1\n2\n')
  })
})

describe('output beyond 1 MiB', () => {
  const MIB = 1024 * 1024

  test('is cut, with a truncated flag for each stream, and the task goes on to its end', async () => {
    const task = await script(`head -c 5000000 /dev/zero | tr '\\0' x; echo end >&2; touch reached`)
    expect(task.status).toBe('success')
    const { stdout, ...rest } = resultOf(task)
    expect(stdout).toBe('x'.repeat(MIB))
    expect(rest).toMatchObject({ stderr: 'end\n', truncated: true, stdout_truncated: true, stderr_truncated: false })
    expect(existsSync(join(temp.path, 'reached'))).toBe(true)
  })

  test('is cut on stderr as well', async () => {
    const { stderr, ...rest } = resultOf(await script(`head -c ${MIB + 1} /dev/zero | tr '\\0' x >&2`))
    expect(stderr).toHaveLength(MIB)
    expect(rest).toMatchObject({ stdout: '', truncated: true, stdout_truncated: false, stderr_truncated: true })
  })

  test('exactly 1 MiB is not cut', async () => {
    const { stdout, ...rest } = resultOf(await script(`head -c ${MIB} /dev/zero | tr '\\0' x`))
    expect(stdout).toHaveLength(MIB)
    expect(rest).toMatchObject({ truncated: false, stdout_truncated: false, stderr_truncated: false })
  })
})

describe('ends of processes', () => {
  const pidIn = (name: string) => pidFrom(join(temp.path, name))
  const gone = (pid: number) => until(() => isAlive(pid), false)

  test('background processes that are left over end with their task', async () => {
    const task = await script(
      'sleep 600 & echo $! > left-over; sleep 601 > /dev/null 2>&1 & echo $! > silent; echo done',
    )
    expect(task.status).toBe('success')
    expect(resultOf(task).stdout).toBe('done\n')
    await gone(await pidIn('left-over'))
    await gone(await pidIn('silent'))
  })

  /** Cancels a script once it has written its pid, and gives the pid and the milliseconds until its end. */
  async function cancelled(name: string, text: string): Promise<{ pid: number; tookMs: number }> {
    await open.submit([{ id: name, type: 'shell', params: { script: text, dir: temp.path } }])
    const pid = await pidIn(name)
    const at = Date.now()
    await open.fetch(`/tasks/${name}/cancel`, { method: 'POST' })
    const task = await open.ended(name)
    expect(task.status).toBe('cancelled')
    return { pid, tookMs: Date.parse(task.finished_at!) - at }
  }

  test('get TERM first: a process may clean up', async () => {
    const text = `trap 'echo cleaned > cleaned; exit 0' TERM; echo $$ > tidy; while :; do sleep 0.02; done`
    await gone((await cancelled('tidy', text)).pid)
    expect(readFileSync(join(temp.path, 'cleaned'), 'utf8')).toBe('cleaned\n')
  })

  test('a process that ignores TERM is killed after --kill-grace', async () => {
    const text = `trap '' TERM; echo $$ > stubborn; while :; do sleep 0.02; done`
    const { pid, tookMs } = await cancelled('stubborn', text)
    expect(tookMs).toBeGreaterThanOrEqual(KILL_GRACE_MS - 2)
    await gone(pid)
  })

  test('a stop of the service ends what runs beyond --shutdown-timeout', async () => {
    await using stopped = await startControl({
      env: { SERVICE_SHELL_POLICY: 'open' },
      flags: ['--shutdown-timeout', '0s', '--kill-grace', `${KILL_GRACE_MS}ms`],
    })
    const text = `trap '' TERM; sh -c 'echo $$ > inner; sleep 600' & echo $$ > outer; while :; do sleep 0.02; done`
    await stopped.submit([{ id: 'endless', type: 'shell', params: { script: text, dir: temp.path } }])
    const [outer, inner] = [await pidIn('outer'), await pidIn('inner')]
    expect(await stopped.stop()).toBe(0)
    expect([await isAlive(outer), await isAlive(inner)]).toEqual([false, false])
  })
})
