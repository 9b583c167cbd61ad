/** The type cli-skills. Source: contract, Executors beyond the spec's tables and section 5. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { type Control, startControl } from '../support/control.ts'
import { type TempDir, tempDir } from '../support/temp.ts'

const KILL_GRACE_MS = 200
const MIB = 1024 * 1024

let temp: TempDir
let skillsDir: string
/** The default policy, with skills. */
let control: Control
beforeAll(async () => {
  temp = tempDir()
  skillsDir = join(temp.path, 'skills')
  mkdirSync(skillsDir)
  skill('greet', '# Greets.\necho "hello $*"')
  skill('echo', 'echo "skill $1"')
  skill('both', 'for i in 1 2 3; do echo out$i; echo err$i >&2; done; echo named > /dev/stderr; exit $1')
  skill('die', 'echo before; kill -$1 $$')
  skill('env-of', 'env')
  skill('count', 'wc -c')
  skill('deaf', 'exec 0<&-; echo done')
  skill('flood', 'head -c $1 /dev/zero | tr "\\0" x; echo end >&2')
  skill('linger', "trap '' TERM; sleep 600 & echo $! > child; echo $$ > leader; while :; do sleep 0.02; done")
  skill('leave', 'sleep 600 & echo $! > left')
  writeFileSync(join(skillsDir, 'notes.txt'), 'rm -rf /\n')
  symlinkSync('/bin/sh', join(skillsDir, 'sh'))
  symlinkSync('greet', join(skillsDir, 'hail'))
  control = await startControl({
    env: { SERVICE_SKILLS_DIR: skillsDir, SERVICE_RUNTIME_TOKEN: 'sesame' },
    flags: ['--kill-grace', `${KILL_GRACE_MS}ms`],
  })
})
afterAll(async () => {
  await control.dispose()
  temp[Symbol.dispose]()
})

function skill(name: string, script: string): void {
  writeFileSync(join(skillsDir, name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(skillsDir, name), 0o755)
}

const run = (params: object | undefined, more: object = {}, service = control) =>
  service.run({ type: 'cli-skills', ...(params !== undefined && { params }), ...more })
const call = (tool_name: string, params?: object, more: object = {}) => run(params, { tool_name, ...more })
const outputOf = (task: TaskRecord) => (task.result as { output: string }).output
const failure = (error: unknown, code: string) => ({ status: 'failed', error, runtime: { error: { code } } })

describe('a command', () => {
  test('of the allowlist runs; the result says what and how it went', async () => {
    const task = await run({ command: '/bin/cat', args: ['-'], stdin: 'a\n' })
    expect(task).toMatchObject({ type: 'cli-skills', execution_category: 'cli-skills', status: 'success' })
    expect(task.result).toEqual({ command: '/bin/cat', args: ['-'], output: 'a\n', exit_code: 0, truncated: false })
  })

  test('without args has none in its result', async () => {
    const { result } = await run({ command: 'pwd', dir: temp.path })
    expect(result).toEqual({ command: 'pwd', args: [], output: `${temp.path}\n`, exit_code: 0, truncated: false })
  })

  test.each(['/bin/rm', './greet'])('outside the allowlist that is no skill fails the task: %j', async (command) => {
    const name = command.slice(command.lastIndexOf('/') + 1)
    const error = `command ${JSON.stringify(name)} is not in the allowed whitelist`
    const task = await run({ command })
    expect(task).toMatchObject(failure(expect.stringContaining(error), 'denied'))
    expect(task).not.toHaveProperty('result')
  })

  test('is free where SERVICE_SHELL_POLICY=open is set', async () => {
    await using open = await startControl({ env: { SERVICE_SHELL_POLICY: 'open' } })
    const task = await run({ command: 'sh', args: ['-c', 'echo $1', 'sh', 'free'] }, {}, open)
    expect(outputOf(task)).toBe('free\n')
  })
})

describe('a skill', () => {
  test('is called by tool_name', async () => {
    const task = await call('greet', { args: ['a', 'b  c'] })
    expect(task).toMatchObject({ status: 'success', tool_name: 'greet' })
    expect(task.result).toEqual({
      ...{ command: 'greet', args: ['a', 'b  c'], output: 'hello a b  c\n', exit_code: 0, truncated: false },
    })
    expect(outputOf(await call('greet'))).toBe('hello \n')
    expect(outputOf(await call('cli-skills.greet', {}))).toBe('hello \n')
  })

  test('is called as a command, and goes before a command of its name', async () => {
    expect((await run({ command: 'greet', args: ['you'] })).result).toMatchObject({
      command: 'greet',
      output: 'hello you\n',
    })
    expect(outputOf(await run({ command: 'echo', args: ['x'] }))).toBe('skill x\n')
    expect(outputOf(await run({ command: '/bin/echo', args: ['x'] }))).toBe('x\n')
  })

  test('may be named twice, but not differently', async () => {
    expect((await call('greet', { command: 'greet' })).status).toBe('success')
    const error = 'tool_name "greet" and command "echo" exclude each other'
    expect(await call('greet', { command: 'echo' })).toMatchObject(failure(error, 'invalid_input'))
  })

  test.each(['sh', '../skills/greet', 'cat'])('that is none fails the task: %j', async (name) => {
    const task = await call(name, { args: ['x'] })
    const error = `unknown skill "${name}" (available: both, count, deaf, die, echo, env-of, flood, greet, hail, leave, linger)`
    expect(task).toMatchObject(failure(error, 'invalid_input'))
  })

  test('that was put there after the start of the service is there', async () => {
    using more = tempDir()
    await using other = await startControl({ flags: ['--skills-dir', more.path] })
    const none = 'unknown skill "late" (available: none; --skills-dir says where they are)'
    expect((await run({}, { tool_name: 'late' }, other)).error).toBe(none)
    writeFileSync(join(more.path, 'late'), '#!/bin/sh\necho here\n', { mode: 0o755 })
    expect(outputOf(await run({}, { tool_name: 'late' }, other))).toBe('here\n')
  })

  test('that cannot be started fails with launch_failed', async () => {
    using more = tempDir()
    writeFileSync(join(more.path, 'broken'), '#!/no/such/interpreter\n', { mode: 0o755 })
    await using other = await startControl({ flags: ['--skills-dir', more.path] })
    const task = await run({}, { tool_name: 'broken' }, other)
    expect(task).toMatchObject(failure(expect.stringMatching(/^cannot start .*broken: ./), 'launch_failed'))
  })
})

describe('output', () => {
  test('is stdout and stderr in the order in which they were written', async () => {
    expect(outputOf(await call('both'))).toBe('out1\nerr1\nout2\nerr2\nout3\nerr3\nnamed\n')
  })

  test('of a command that exits with another code than 0 is kept, and the task is failed', async () => {
    const task = await call('both', { args: ['3'] })
    expect(task).toMatchObject(failure('cli skill command failed: exit status 3', 'exit_nonzero'))
    expect(task).toMatchObject({ result: { exit_code: 3, output: expect.stringContaining('err3') } })
  })

  test.each([
    ['SEGV', 139],
    ['KILL', 137],
  ])('of a command that died of SIG%s is kept, and the signal named', async (signal, exit_code) => {
    const task = await call('die', { args: [signal] })
    expect(task).toMatchObject(failure(`cli skill command failed: terminated by signal SIG${signal}`, 'exit_nonzero'))
    expect(task).toMatchObject({ result: { output: 'before\n', exit_code } })
  })

  test('beyond 1 MiB is cut, with a flag, and the command goes on to its end', async () => {
    const whole = await call('flood', { args: [String(MIB - 4)] })
    expect(outputOf(whole)).toBe(`${'x'.repeat(MIB - 4)}end\n`)
    expect(whole.result).toMatchObject({ truncated: false })
    const cut = await call('flood', { args: [String(5 * MIB)] })
    expect(cut.status).toBe('success')
    expect(outputOf(cut) === 'x'.repeat(MIB)).toBe(true)
    expect(cut.result).toMatchObject({ truncated: true, exit_code: 0 })
  })
})

describe('stdin', () => {
  test('is what was given, else empty', async () => {
    expect(outputOf(await run({ command: 'cat', stdin: 'grün\n€' }))).toBe('grün\n€')
    for (const params of [{}, { stdin: '' }, { stdin: null }]) {
      expect(outputOf(await run({ command: 'cat', ...params }))).toBe('')
    }
  })

  test('of up to 1 MiB is passed on; more is refused', async () => {
    const stdin = 'x'.repeat(MIB)
    expect(outputOf(await call('count', { stdin })).trim()).toBe(String(MIB))
    const error = `parse cli-skills params: stdin: expected at most ${MIB} bytes, got ${MIB + 1}; put more into a file`
    expect(await call('count', { stdin: `${stdin}x` })).toMatchObject(failure(error, 'invalid_input'))
    expect((await call('count', { stdin: '€'.repeat(MIB / 2) })).runtime?.error?.code).toBe('invalid_input')
  })
})

describe('parameters', () => {
  test.each([[undefined], [{}], [{ command: '' }], [{ command: '  ' }], [{ command: null, args: ['x'] }]])(
    'command is required: %j',
    async (params) => {
      expect(await run(params)).toMatchObject(failure('command is required', 'invalid_input'))
    },
  )

  test('with NUL characters, or a directory that does not exist, start nothing', async () => {
    const nul = 'command, arguments and dir must not contain NUL characters'
    expect(await run({ command: 'cat', args: ['a\0b'] })).toMatchObject(failure(nul, 'invalid_input'))
    const nowhere = join(temp.path, 'nowhere')
    const error = `cannot start cat: the working directory ${nowhere} does not exist`
    expect(await run({ command: 'cat', dir: nowhere })).toMatchObject(failure(error, 'launch_failed'))
  })
})

describe('processes', () => {
  test('see a minimal environment with the name of the attempt, nothing of the service', async () => {
    const output = outputOf(await call('env-of', { dir: '/' }))
    const names = output
      .trim()
      .split('\n')
      .map((line) => line.slice(0, line.indexOf('=')))
      .filter((name) => name !== 'PWD' && name !== 'OLDPWD' && name !== 'SHLVL' && name !== '_')
    expect(names.sort()).toEqual(['HOME', 'LANG', 'PATH', 'TASKMILL_ATTEMPT', 'TMPDIR', 'USER'])
    expect(output).not.toContain('sesame')
  })
})
