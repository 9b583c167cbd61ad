/**
 * Goal: of a task with `outputs` the workspace keeps what matches and nothing else, whatever the task made, also over a kill
 * of the service. Method: tasks that make trees; their files are read over HTTP, and the directory is looked at.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { refused, script, waitFor } from '../support/runtime-tasks.ts'
import { endProcessesOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'

setDefaultTimeout(60_000)

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({ flags: ['--max-kept-files', '20', '--max-kept-bytes', '100000'] })
})
afterAll(() => runtime.dispose())

/** All paths in the workspace of a task. */
const left = (service: Runtime, id: string): string[] =>
  readdirSync(join(service.dataDir, 'tasks', id, 'workspace'), { recursive: true, encoding: 'utf8' }).toSorted()

const MADE = `mkdir -p dist/deep src/a/b empty && echo 1 > dist/one && echo 2 > dist/deep/two && echo 3 > src/a/b/three
  echo 4 > report.xml && echo 5 > other && ln -s /etc/passwd dist/link && mkfifo dist/pipe`

describe('the workspace of an ended task', () => {
  test.each<[string, readonly string[], readonly string[]]>([
    ['files', ['dist/one', 'report.xml'], ['dist', 'dist/one', 'report.xml']],
    ['a tree', ['dist/**'], ['dist', 'dist/deep', 'dist/deep/two', 'dist/link', 'dist/one']],
    ['a directory by its name', ['dist/deep'], ['dist', 'dist/deep', 'dist/deep/two']],
    ['files anywhere', ['**/t*'], ['dist', 'dist/deep', 'dist/deep/two', 'src', 'src/a', 'src/a/b', 'src/a/b/three']],
    ['an empty directory', ['empty'], ['empty']],
    ['nothing that is not there', ['none/**'], []],
    ['nothing', [], []],
  ])('has %s', async (_, outputs, kept) => {
    const { task_id, status } = await runtime.run({ ...script(MADE), outputs })
    expect(status).toBe('success')
    expect(left(runtime, task_id)).toEqual([...kept])
  })

  test('has all without outputs', async () => {
    const { task_id } = await runtime.run(script(MADE))
    expect(left(runtime, task_id)).toContain('src/a/b/three')
  })

  test('has the outputs of a task that failed', async () => {
    const task = await runtime.run({ ...script(`${MADE}; exit 3`), outputs: ['report.xml'] })
    expect(task).toMatchObject({ status: 'failed', error: { code: 'exit_nonzero' } })
    expect(left(runtime, task.task_id)).toEqual(['report.xml'])
    expect(await (await runtime.fetch(`/api/v1/tasks/${task.task_id}/files/report.xml`)).text()).toBe('4\n')
  })

  test('is reduced in a sandbox, too, and where the task closed its directories', async () => {
    const made = `${MADE}; mkdir -p closed/in; echo > closed/in/file; chmod 0 closed/in closed`
    const task = await runtime.run({ ...script(made), outputs: ['dist/one'], sandbox: { profile: 'linux_sandbox' } })
    expect(task.status).toBe('success')
    expect(left(runtime, task.task_id)).toEqual(['dist', 'dist/one'])
  })

  test('loses files whose names are not UTF-8, and very deep ones', async () => {
    const made = `printf x > "$(printf 'a\\377b')"; mkdir "$(printf 'd\\377')"; echo > "$(printf 'd\\377')/file"; echo > kept
      i=0; while [ $i -lt 300 ]; do mkdir d && cd d || exit 1; i=$((i+1)); done; echo > file`
    const task = await runtime.run({ ...script(made), outputs: ['kept', '**/file.none'] })
    expect(task.status).toBe('success')
    expect(left(runtime, task.task_id)).toEqual(['kept'])
  })

  test('is not followed out of: a link in the place of a directory is kept or removed as a link', async () => {
    using outside = tempDir()
    writeFileSync(join(outside.path, 'precious'), 'x')
    const made = `ln -s ${outside.path} a; ln -s ${outside.path} b`
    const task = await runtime.run({ ...script(made), outputs: ['a/**'] })
    expect(readdirSync(join(runtime.dataDir, 'tasks', task.task_id, 'workspace'))).toEqual(['a'])
    expect(existsSync(join(outside.path, 'precious'))).toBe(true)
    const replaced = `rm -rf ../workspace; ln -s ${outside.path} ../workspace`
    expect((await runtime.run({ ...script(replaced), outputs: [] })).status).toBe('success')
    expect(existsSync(join(outside.path, 'precious'))).toBe(true)
  })
})

describe('more than a task may keep', () => {
  test.each([
    [
      'files',
      'seq 1 30 | xargs touch',
      'outputs has more than 20 files (--max-kept-files); its workspace stays as it is',
    ],
    [
      'bytes',
      'head -c 200000 /dev/zero > a',
      'outputs has more than 100000 bytes (--max-kept-bytes); its workspace stays as it is',
    ],
  ])('%s: the task fails, and keeps them', async (_, made, message) => {
    const task = await runtime.run({ ...script(`${made}; echo > other.txt`), outputs: ['*'] })
    expect(task).toMatchObject({ status: 'failed', exit_code: 0, error: { code: 'resource_limit_exceeded', message } })
    expect(left(runtime, task.task_id)).toContain('other.txt')
  })

  test('a task that failed keeps its own error', async () => {
    const task = await runtime.run({ ...script('seq 1 30 | xargs touch; exit 4'), outputs: ['*'] })
    expect(task).toMatchObject({ status: 'failed', exit_code: 4, error: { code: 'exit_nonzero' } })
  })
})

test('a task that ended while the service was away is reduced by the next one', async () => {
  using temp = tempDir()
  await using _ = endProcessesOf(temp.path)
  let id = ''
  {
    await using first = await startRuntime({ dataDir: temp.path })
    const body = { ...script(`echo; ${waitFor(join(temp.path, 'go'))}; echo x > a; echo x > b`), outputs: ['a'] }
    id = await first.submit(body)
    await first.printed(id)
    await first.stop('SIGKILL')
  }
  writeFileSync(join(temp.path, 'go'), '')
  await using second = await startRuntime({ dataDir: temp.path })
  expect((await second.ended(id)).status).toBe('success')
  expect(left(second, id)).toEqual(['a'])
})

test.each([
  [['/dist'], 'outputs[0] must be a path below the workspace, such as dist/**, got "/dist"'],
  [['a', 'b/../c'], 'outputs[1] must be a path below the workspace, such as dist/**, got "b/../c"'],
  [[''], 'outputs[0] must be a path below the workspace, such as dist/**, got ""'],
  [['a\0'], 'outputs[0] cannot contain NUL characters'],
  [['x'.repeat(1025)], 'outputs[0] has 1025 characters (at most 1024)'],
  [Array.from({ length: 65 }, () => 'a'), 'outputs has 65 entries (at most 64)'],
])('a pattern that cannot be meant is refused: %j', async (outputs, message) => {
  expect(await refused(await runtime.post({ ...script('true'), outputs }))).toEqual([400, 'invalid_input', message])
})
