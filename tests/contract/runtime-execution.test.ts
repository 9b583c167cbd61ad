/**
 * Commands and scripts of the runtime: what runs, with which arguments, environment, directory and input.
 * Source: spec, ExecutionSpec and SandboxPolicy; contract 2, execution and artifacts.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command, refused, script } from '../support/runtime-tasks.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { tempDir } from '../support/temp.ts'

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({
    env: { SERVICE_TOKEN_OF_OTHERS: 'sesame-1', MY_SECRET: 'sesame-2' },
  })
})
afterAll(() => runtime.dispose())

const skipped = missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`
const withSandbox = test.skipIf(missingSandbox !== undefined)

const lines = (text: string) => text.split('\n').slice(0, -1)

describe('a command', () => {
  test('is run with its arguments exactly as they are, without a shell', async () => {
    const args = [
      '',
      ' ',
      'a b',
      '$HOME',
      '`id`',
      '*',
      '\\',
      '"',
      "'",
      '-n',
      '--',
      'ä€😀',
      'two\nlines',
      'x'.repeat(50_000),
    ]
    const task = await runtime.run(command('/usr/bin/printf', '[%s]', ...args))
    expect(task).toMatchObject({ status: 'success', exit_code: 0 })
    expect(task.stdout).toBe(args.map((arg) => `[${arg}]`).join(''))
  })

  test('is found in PATH where its name has no slash', async () => {
    expect(await runtime.run(command('printf', 'found'))).toMatchObject({ status: 'success', stdout: 'found' })
  })

  test('has default signal handling, and no signal is blocked', async () => {
    const { stdout } = await runtime.run(command('/bin/grep', '-E', '^(SigBlk|SigIgn)', '/proc/self/status'))
    expect(lines(stdout)).toEqual(['SigBlk:\t0000000000000000', 'SigIgn:\t0000000000000000'])
  })

  test('that does not exist ends as launch_failed', async () => {
    const task = await runtime.run(command('/no/such/program'))
    expect(task).toMatchObject({ status: 'failed', error: { code: 'launch_failed' } })
    expect(task.error!.message).toContain('/no/such/program')
    expect(task.exit_code).toBeUndefined()
  })
})

describe('a script', () => {
  test('without interpreter runs with /bin/sh', async () => {
    const task = await runtime.runScript('readlink /proc/$$/exe; [ $((1+1)) = 2 ] && echo ok')
    const [shell, ok] = lines(task.stdout)
    expect(ok).toBe('ok')
    const sh = await runtime.run(command('/usr/bin/readlink', '-f', '/bin/sh'))
    expect(shell).toBe(sh.stdout.trim())
  })

  test('is given to its interpreter, a program plus flags', async () => {
    const execution = (interpreter: string[], text: string) => ({
      execution: { kind: 'script', script: text, interpreter },
    })
    expect(await runtime.run(execution(['/bin/sh', '-e'], 'false; echo no'))).toMatchObject({
      exit_code: 1,
      stdout: '',
    })
    expect(await runtime.run(execution(['/bin/sh', '-u', '-x'], 'echo yes'))).toMatchObject({
      stdout: 'yes\n',
      stderr: '+ echo yes\n',
    })
    expect(await runtime.run(execution(['awk', '-f'], 'BEGIN { print 6 * 7 }'))).toMatchObject({ stdout: '42\n' })
  })

  test('reaches its interpreter byte for byte, in the file that artifacts.script_path names', async () => {
    const text = `#!/no/such\nü € 😀 'quotes" $HOME \\n \`id\`\r\n\tlast line without an end`
    const task = await runtime.run({ execution: { kind: 'script', script: text, interpreter: ['/bin/cat'] } })
    expect(task).toMatchObject({ status: 'success', stdout: text })
    expect(readFileSync(task.artifacts.script_path!, 'utf8')).toBe(text)
  })

  test('may be far longer than a command line', async () => {
    const text = `${`# ${'x'.repeat(1000)}\n`.repeat(1000)}echo end`
    expect(await runtime.runScript(text)).toMatchObject({ status: 'success', stdout: 'end\n' })
  })

  test('has no script_path where there is a command', async () => {
    expect((await runtime.run(command('/bin/true'))).artifacts).not.toHaveProperty('script_path')
  })
})

describe('standard input', () => {
  const large = `ä\0${'x'.repeat(3 * 1024 * 1024)}`

  test('is empty by default, and for an empty text', async () => {
    expect(await runtime.runScript('cat; echo end')).toMatchObject({ stdout: 'end\n' })
    const execution = { ...command('cat').execution, stdin: '' }
    expect(await runtime.run({ execution })).toMatchObject({ status: 'success', stdout: '' })
  })

  test('is execution.stdin byte for byte, however long, and may be opened again', async () => {
    for (const given of [command('sh', '-c', 'cat; wc -c < /dev/stdin'), script('cat; wc -c < /dev/stdin')]) {
      const task = await runtime.run({ execution: { ...given.execution, stdin: large } })
      expect(task).toMatchObject({ status: 'success', stdout_truncated: false })
      expect(task.stdout).toBe(`${large}${Buffer.byteLength(large)}\n`)
    }
  })

  withSandbox(`is the same in a sandbox, in which nobody can change it${skipped}`, async () => {
    for (const namespaces of [{}, { mount: false }]) {
      const sandbox = { profile: 'linux_sandbox', namespaces }
      const execution = { kind: 'script', script: 'cat; cat /dev/stdin; echo more >&0 || echo no', stdin: 'text\n' }
      expect(await runtime.run({ execution, sandbox })).toMatchObject({ stdout: 'text\ntext\nno\n', status: 'success' })
    }
  })

  test('has to be a text of Unicode', async () => {
    const refusal = async (stdin: unknown) =>
      await refused(
        await runtime.fetch('/api/v1/tasks', {
          method: 'POST',
          body: JSON.stringify({ execution: { kind: 'script', script: 'true', stdin } }),
        }),
      )
    expect(await refusal([])).toEqual([
      ...[400, 'invalid_input'],
      'invalid JSON: execution.stdin: expected string, got array',
    ] as [number, string, string])
    expect((await refusal('\ud800'))[2]).toBe(
      'execution.stdin is not valid Unicode: it contains half of a surrogate pair',
    )
  })
})

describe('the environment', () => {
  const environment = async (env?: Record<string, string>) => {
    const task = await runtime.run({ execution: { kind: 'command', program: '/usr/bin/env', args: ['-0'], env } })
    return new Map(
      task.stdout
        .split('\0')
        .slice(0, -1)
        .map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
    )
  }
  /** Marks of ours, by which we find the processes of a task, are no harm. */
  const isOurs = (name: string) => name.startsWith('TASKMILL_')

  test('is minimal: PATH HOME LANG TMPDIR USER, never that of the service', async () => {
    const found = await environment()
    expect(
      [...found.keys()]
        .filter((name) => !isOurs(name))
        .toSorted()
        .join(),
    ).toBe('HOME,LANG,PATH,TMPDIR,USER')
    expect([...found.values()].join(' ')).not.toContain('sesame')
    for (const [name, value] of found) expect([name, value]).not.toEqual([name, ''])
  })

  test('has execution.env besides, which may replace what is there', async () => {
    const env = { A: '', 'with space': 'a=b', ü: '😀\nx', PATH: '/bin', HOME: '/home/of/nobody', __proto__x: 'p' }
    const found = await environment(env)
    for (const [name, value] of Object.entries(env)) expect([name, found.get(name)]).toEqual([name, value])
    expect([...found.keys()].length).toBe(new Set(found.keys()).size)
  })
})

describe('the workspace', () => {
  test('is the working directory, below the directory of the task', async () => {
    const task = await runtime.run(command('/bin/pwd', '-P'))
    expect(task.stdout.trim()).toBe(join(runtime.dataDir, 'tasks', task.task_id, 'workspace'))
  })

  test('is empty at first, and keeps what the task writes', async () => {
    const task = await runtime.runScript('ls -A; mkdir sub; echo kept > sub/file')
    expect(task.stdout).toBe('')
    expect(readFileSync(join(task.artifacts.task_dir, 'workspace', 'sub', 'file'), 'utf8')).toBe('kept\n')
  })

  test.each(['./a/b', '...', 'ü x'])(
    'workspace_subdir is the working directory, relative to the workspace: %s',
    async (workspace_subdir) => {
      const task = await runtime.run({ ...command('/bin/pwd', '-P'), sandbox: { workspace_subdir } })
      expect(task.stdout).toBe(`${join(runtime.dataDir, 'tasks', task.task_id, 'workspace', workspace_subdir)}\n`)
      expect(statSync(task.stdout.trim()).isDirectory()).toBe(true)
    },
  )
})

test('artifacts are disk paths below <data-dir>/tasks/<task_id>/', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'elsewhere')
  await using other = await startRuntime({ dataDir })
  const task = await other.run({ task_id: 'files', ...script('echo out; echo err >&2; exit 3') })
  const taskDir = join(dataDir, 'tasks', 'files')
  expect(task.artifacts).toEqual({
    task_dir: taskDir,
    request_path: join(taskDir, 'request.json'),
    result_path: join(taskDir, 'result.json'),
    stdout_path: join(taskDir, 'stdout.log'),
    stderr_path: join(taskDir, 'stderr.log'),
    script_path: expect.stringMatching(new RegExp(`^${taskDir}/[^/]+$`)),
  })
  expect(readFileSync(task.artifacts.stdout_path, 'utf8')).toBe('out\n')
  expect(readFileSync(task.artifacts.stderr_path, 'utf8')).toBe('err\n')
  expect(JSON.parse(readFileSync(task.artifacts.request_path, 'utf8'))).toMatchObject({
    task_id: 'files',
    execution: { kind: 'script' },
  })
  expect(existsSync(join(taskDir, 'workspace'))).toBe(true)
  expect(existsSync(join(dataDir, 'runtime.db'))).toBe(true)
})

test('result.json is the final status', async () => {
  for (const text of ['echo out; echo err >&2', 'exit 3', 'kill -9 $$']) {
    const task = await runtime.runScript(text, { metadata: { text } })
    const { updated_at: _, ...result } = JSON.parse(readFileSync(task.artifacts.result_path, 'utf8'))
    expect(task).toMatchObject(result)
    expect(result).toMatchObject({ task_id: task.task_id, status: task.status, finished_at: task.finished_at! })
  }
})
