/**
 * Goal: `inputs` of a runtime task with `{"$from", "file"}` hand it files of an earlier one, whatever attempt made them, and
 * everything else is refused or fails with a text that says why. Method: both built services; graphs that pass files on.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDryRun } from '../../shared/contract/graph-dry-run.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'
import { type Control, startControl } from '../support/control.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { until } from '../support/until.ts'

let runtime: Runtime
let control: Control
beforeAll(async () => {
  runtime = await startRuntime()
  control = await startControl({ flags: ['--runtime-url', runtime.url] })
})
afterAll(async () => {
  await control.dispose()
  await runtime.dispose()
})

type Inputs = Readonly<Record<string, unknown>>

const make = (id: string, script: string, more: object = {}, params: object = {}) => ({
  ...{ id, type: 'runtime.script', params: { script, ...params } },
  ...more,
})
const use = (id: string, inputs: Inputs, script = 'true', more: object = {}) =>
  make(id, script, { depends_on: ['build'], ...more }, { inputs })
const BUILD = make(
  'build',
  'mkdir dist; echo 1 > dist/one; echo 2 > dist/two; echo 3 > three',
  {},
  { outputs: ['dist'] },
)
const from = (file: string, id = 'build') => ({ $from: id, file })

const graphOf = (id: string): Promise<GraphDetails> =>
  until(
    async () => (await (await control.fetch(`/graphs/${id}?wait_ms=20000`)).json()) as GraphDetails,
    ({ state }) => state !== 'running',
  )

/** Runs a graph to its end, and gives its tasks. */
async function run(tasks: readonly object[], more: object = {}) {
  const response = await control.post({ scope: 'graph', tasks, ...more })
  if (response.status !== 202) throw new Error(await response.text())
  return await ended(((await response.json()) as { graph_id: string }).graph_id)
}

async function ended(graph_id: string) {
  const { state } = await graphOf(graph_id)
  const task = async (id: string) =>
    (await (await control.fetch(`/graphs/${graph_id}/tasks/${encodeURIComponent(id)}`)).json()) as TaskRecord
  return { graph_id, state, task }
}

const stdoutOf = ({ result }: TaskRecord) => (result as TaskStatusResponse).stdout

describe('a runtime task gets', () => {
  test('files and directories of an earlier one, and its record shows which', async () => {
    const inputs = { 'lib/one': from('dist/one'), all: from('dist'), last: from('.') }
    const graph = await run([BUILD, use('pack', inputs, 'cat lib/one all/two; find last -type f | sort')])
    const pack = await graph.task('pack')
    expect(stdoutOf(pack)).toBe('1\n2\nlast/dist/one\nlast/dist/two\n')
    const { handle_id: task_id } = await graph.task('build')
    expect(pack.resolved_input).toMatchObject({
      inputs: { all: { task_id, file: 'dist' }, last: { task_id, file: '.' } },
    })
    expect((pack.params as { inputs: object }).inputs).toEqual(inputs)
    expect((pack.result as TaskStatusResponse).inputs!.all).toMatchObject({ task_id, file: 'dist', files: 2, bytes: 4 })
  })

  test('those of a task that it depends on through others, and those of the attempt that succeeded', async () => {
    const build = make('build', `case "$PWD" in *-1/workspace) echo first > a; exit 1;; *) echo second > a;; esac`, {
      retry: 1,
    })
    const graph = await run([
      build,
      { id: 'between', type: 'noop', depends_on: ['build'] },
      use('pack', { a: from('a') }, 'cat a', { depends_on: ['between'] }),
    ])
    expect((await graph.task('build')).attempt).toBe(2)
    expect(stdoutOf(await graph.task('pack'))).toBe('second\n')
  })

  test('those of a task that failed, if it runs all the same', async () => {
    const build = make('build', 'echo why > log; exit 3')
    const graph = await run([build, use('tell', { log: from('log') }, 'cat log', { run_if: 'failed' })])
    expect(stdoutOf(await graph.task('tell'))).toBe('why\n')
  })

  test('those of a literal, of a parameter, and of a whole request', async () => {
    const first = await run([BUILD])
    const { handle_id: task_id } = await first.task('build')
    const script = { execution: { kind: 'script', script: 'cat a b' } }
    const inputs = { a: { task_id: { $param: 'task' }, file: 'dist/one' }, b: from('dist/two') }
    const whole = { id: 'pack', type: 'runtime', depends_on: ['build'], params: { ...script, inputs } }
    const graph = await run([BUILD, whole], { params: { task: task_id } })
    expect(stdoutOf(await graph.task('pack'))).toBe('1\n2\n')
  })
})

describe('files of the children of a task', () => {
  const test_ = (script: string, more: object = {}) =>
    make('test', script, { for_each: ['x', 'y', 'z'], ...more }, { env: { NAME: { $item: '' } } })
  const gather = (file: string, script: string, more: object = {}) =>
    use('report', { parts: from(file, 'test') }, script, { depends_on: ['test'], ...more })
  const MADE = 'mkdir -p out; echo $NAME > out/report.xml'

  test('come into directories of their own, by the index of the child, and in a rerun', async () => {
    const all = { parts: from('out/report.xml', 'test'), whole: from('.', 'test') }
    const script = 'cd parts; grep . */out/report.xml; cat ../whole/2/out/report.xml; test -n "$FIXED"'
    const graph = await run([test_(MADE), use('report', all, script, { depends_on: ['test'] })])
    const found = '0/out/report.xml:x\n1/out/report.xml:y\n2/out/report.xml:z\nz\n'
    const report = await graph.task('report')
    expect(stdoutOf(report)).toBe(found)
    const { handle_id: task_id } = await graph.task('test[1]')
    const { inputs } = report.resolved_input as { inputs: { parts: object[] } }
    expect([inputs.parts.length, inputs.parts[1]]).toEqual([3, { task_id, file: 'out/report.xml' }])
    expect((report.result as TaskStatusResponse).inputs!['parts/1/out/report.xml']).toMatchObject({ task_id, bytes: 2 })
    const response = await control.fetch(`/graphs/${graph.graph_id}/rerun`, { method: 'POST' })
    const again = await ended(((await response.json()) as { graph_id: string }).graph_id)
    expect((await again.task('test')).reused_from).toBeDefined()
    expect(stdoutOf(await again.task('report'))).toBe(found)
  })

  test('come from children that failed, too, if the task runs all the same, and from none', async () => {
    const graph = await run([
      test_(`${MADE}; test $NAME != y`),
      gather('out', 'cat parts/*/out/*', { run_if: 'always' }),
      make('none', 'true', { for_each: [] }),
      use('empty', { parts: from('x', 'none') }, 'ls; echo end', { depends_on: ['none'], run_if: 'always' }),
    ])
    expect((await graph.task('test')).error).toBe('1 of 3 failed: test[1]')
    expect(stdoutOf(await graph.task('report'))).toBe('x\ny\nz\n')
    expect(stdoutOf(await graph.task('empty'))).toBe('end\n')
  })

  test('may be hundreds', async () => {
    const many = test_(MADE, { for_each: Array.from({ length: 200 }, (_, i) => `n${i}`) })
    const graph = await run([many, gather('out/report.xml', 'cat parts/*/out/report.xml | sort -u | wc -l')])
    expect(stdoutOf(await graph.task('report'))).toBe('200\n')
  })

  test('fail the task if a child has not made the file, or has not run: the error names the child', async () => {
    const missing = await run([test_(`test $NAME = y || { ${MADE}; }`), gather('out/report.xml', 'true')])
    const report = await missing.task('report')
    const { handle_id } = await missing.task('test[1]')
    expect([report.runtime?.error?.code, report.error]).toEqual([
      'invalid_input',
      `inputs."parts/1/out/report.xml": "out/report.xml" of task ${handle_id} is not there (a task with outputs keeps only what they match)`,
    ])
    const first = test_('exit 1', { max_parallel: 1, fail_fast: true })
    const notRun = await run([first, gather('out', 'true', { run_if: 'always', retry: 2 })])
    const { error, attempt, runtime } = await notRun.task('report')
    expect([error, attempt, runtime?.error?.code]).toEqual([
      'params.inputs.parts: task test[1] has no files: it did not run in the runtime service',
      ...[1, 'invalid_input'],
    ])
  })

  test('are named by the element or the index of a child of the task that takes them', async () => {
    const numbers = make('build', 'echo 0 > 0; echo 1 > 1; mkdir a b; echo a > a/f; echo b > b/f')
    const each = (id: string, file: object, list: readonly unknown[], more: object = {}) =>
      use(id, { in: from(file as unknown as string) }, 'cat in', { for_each: list, run_if: 'always', ...more })
    const graph = await run([
      numbers,
      each('item', { $item: '' }, ['a/f', 'b/f']),
      each('member', { $item: '/at' }, [{ at: 'b/f' }]),
      each('index', { $index: true }, ['x', 'y']),
      each('text', { $item: '', as: 'text' }, [1]),
      each('number', { $item: '' }, [1]),
      each('none', { $item: '/at' }, [{}]),
      each('outside', { $item: '' }, ['../f'], { retry: 1 }),
    ])
    const outputs = async (id: string) =>
      ((await graph.task(id)).result as TaskStatusResponse[]).map(({ stdout }) => stdout)
    expect(await outputs('item')).toEqual(['a\n', 'b\n'])
    expect(await outputs('member')).toEqual(['b\n'])
    expect(await outputs('index')).toEqual(['0\n', '1\n'])
    expect(await outputs('text')).toEqual(['1\n'])
    const errors = ['number', 'none', 'outside'].map(async (id) => {
      const { error, attempt, runtime } = await graph.task(`${id}[0]`)
      return [error, attempt, runtime?.error?.code]
    })
    expect(await Promise.all(errors)).toEqual([
      ['params.inputs.in: file: expected a text, got number ("as" may be text)', 1, 'invalid_input'],
      ['params.inputs.in: file: element 0 of none has no /at', 1, 'invalid_input'],
      ['params.inputs.in: file cannot contain parent traversal', 1, 'invalid_input'],
    ])
  })

  test('are known to a check', async () => {
    const tasks = [test_(MADE), use('a', { parts: from('x', 'test'), 'parts/0/x': from('y', 'test') }, 'true')]
    const body = JSON.stringify({ tasks: [tasks[0], { ...tasks[1], depends_on: ['test'] }] })
    const response = await control.fetch('/tasks?dry_run=true', { method: 'POST', body })
    expect(((await response.json()) as GraphDryRun).errors).toEqual([
      { task_id: 'a', message: 'task a: inputs."parts/0/x/0/y" lies within inputs."parts/0/x"', fails: true },
    ])
  })
})

describe('given contents', () => {
  const input = { message: { n: [1, '"'], text: 'a\n' } }
  const list = { id: 'list', type: 'mcp', tool_name: 'builtin/echo', input }
  const message = (path: string, more: object = {}) => ({ $from: 'list', path: `/result/echo/message${path}`, ...more })
  const after = { depends_on: ['list'] }

  test('are files: a text as it is, anything else as JSON, with values of other tasks', async () => {
    const inputs = {
      'given.txt': { content: 'plain\n' },
      'given.json': { content: { a: [1, null] } },
      'lib/whole.json': { content: message('') },
      'text.txt': { content: message('/text') },
      'as.json': { content: { all: [message('/n', { as: 'json' }), message('/n', { as: 'text' })] } },
      'none.json': { content: null },
    }
    const script = 'cat given.txt given.json; echo; cat lib/whole.json; echo; cat text.txt as.json; echo; cat none.json'
    const graph = await run([list, make('use', script, after, { inputs })])
    const use = await graph.task('use')
    const whole = '{"n":[1,"\\""],"text":"a\\n"}'
    expect(stdoutOf(use)).toBe(`plain\n{"a":[1,null]}\n${whole}\na\n{"all":[[1,"\\""],"[1,\\"\\\\\\"\\"]"]}\nnull`)
    expect((use.resolved_input as { inputs: object }).inputs).toMatchObject({ 'text.txt': { content: 'a\n' } })
    expect(Object.keys((use.result as TaskStatusResponse).inputs!['text.txt']!).toSorted()).toEqual([
      ...['bytes', 'files', 'sha256'],
    ])
  })

  test('are standard input, of a command and of a script', async () => {
    const command = { program: 'cat', stdin: message('/n') }
    const whole = { execution: { kind: 'command', program: 'cat', stdin: { all: message('/text') } } }
    const graph = await run([
      list,
      { id: 'command', type: 'runtime.command', ...after, params: command },
      make('script', 'cat', after, { stdin: message('/text') }),
      { id: 'whole', type: 'runtime', ...after, params: whole },
      make('none', 'cat; echo none', after, { stdin: message('/x', { default: null }) }),
    ])
    const outputs = ['command', 'script', 'whole', 'none'].map(async (id) => stdoutOf(await graph.task(id)))
    expect(await Promise.all(outputs)).toEqual(['[1,"\\""]', 'a\n', '{"all":"a\\n"}', 'none\n'])
  })

  test('may be far larger than a command line: 7 MiB of a referenced value', async () => {
    writeFileSync(join(control.cwd, 'large.txt'), 'x'.repeat(7 * 1024 * 1024))
    const read = { id: 'read', type: 'file', params: { action: 'read', path: 'large.txt' } }
    const text = { $from: 'read', path: '/result/content' }
    const params = { stdin: text, inputs: { large: { content: text } } }
    const graph = await run([read, make('use', 'wc -c < large; wc -c', { depends_on: ['read'] }, params)])
    expect(stdoutOf(await graph.task('use'))).toBe('7340032\n7340032\n')
  })

  test('that are more than the runtime service takes in a request fail with the field and the remedy', async () => {
    await using small = await startRuntime({ flags: ['--max-body-bytes', '2000'] })
    await using own = await startControl({ flags: ['--runtime-url', small.url] })
    const failed = async (params: object) => {
      const response = await own.post({ tasks: [make('a', 'true', { retry: 2 }, params)] })
      const { graph_id } = (await response.json()) as { graph_id: string }
      const answer = await own.fetch(`/graphs/${graph_id}/tasks/a?wait_ms=20000`)
      const { error, attempt, runtime } = (await answer.json()) as TaskRecord
      return [error, attempt, runtime?.error?.code]
    }
    const text = (at: string) =>
      `${at} has 3000 bytes, and request body is larger than 2000 bytes (the limit is --max-body-bytes): hand it over ` +
      'as a file of the task that makes it ({"$from": id, "file": path} in inputs), or raise --max-body-bytes of the runtime service'
    const content = 'x'.repeat(3_000)
    expect(await failed({ inputs: { a: { content: 'x' }, 'b.txt': { content } } })).toEqual([
      ...[text('inputs.b.txt.content'), 1, 'invalid_input'],
    ])
    expect(await failed({ stdin: content })).toEqual([text('stdin'), 1, 'invalid_input'])
  })
})

describe('a rerun', () => {
  test('finds the files of a reused task, and says when they are gone', async () => {
    const tasks = [BUILD, use('pack', { a: from('dist/one') }, 'cat a; test -n "$FIXED"')]
    const failed = await run(tasks)
    expect(failed.state).toBe('failed')
    const again = async (graph_id: string) => {
      const response = await control.fetch(`/graphs/${graph_id}/rerun`, { method: 'POST' })
      expect(response.status).toBe(202)
      return await ended(((await response.json()) as { graph_id: string }).graph_id)
    }
    const second = await again(failed.graph_id)
    expect((await second.task('build')).reused_from).toEqual({ graph_id: failed.graph_id, task_id: 'build' })
    expect(stdoutOf(await second.task('pack'))).toBe('1\n')
    const { handle_id } = await failed.task('build')
    expect((await runtime.fetch(`/api/v1/tasks/${handle_id}`, { method: 'DELETE' })).status).toBe(204)
    const third = await again(second.graph_id)
    const pack = await third.task('pack')
    expect(pack.error).toBe(`inputs.a: there is no task ${handle_id}, or it was removed with its files: run it again`)
    expect(pack.runtime?.error?.code).toBe('invalid_input')
  })
})

describe('a task fails', () => {
  const codeOf = ({ status, attempt, runtime }: TaskRecord) => [status, attempt, runtime?.error?.code]

  test('if the other one did not keep the file', async () => {
    const graph = await run([BUILD, use('pack', { a: from('three') }, 'true', { retry: 1 })])
    const pack = await graph.task('pack')
    const { handle_id } = await graph.task('build')
    expect(codeOf(pack)).toEqual(['failed', 2, 'invalid_input'])
    expect(pack.runtime?.error).toMatchObject({
      code: 'invalid_input',
      message: `inputs.a: three of task ${handle_id} is not there (a task with outputs keeps only what they match)`,
    })
  })

  test('at once if the other one did not run', async () => {
    const skipped = make('build', 'true', { run_if: 'failed' })
    const graph = await run([skipped, use('pack', { a: from('x') }, 'true', { run_if: 'always', retry: 3 })])
    const pack = await graph.task('pack')
    expect(codeOf(pack)).toEqual(['failed', 1, 'invalid_input'])
    expect(pack.error).toContain('params.inputs.a: task build has no files: it did not run in the runtime service')
  })
})

describe('a graph is refused', () => {
  const shell = { id: 'build', type: 'shell', params: { command: 'true' } }
  const elsewhere =
    '"file" beside "$from" stands only in inputs of a runtime task, as in {"inputs": {"lib": {"$from": "build", "file": "dist"}}}'
  test.each<[string, readonly object[], string]>([
    ['an unknown task', [BUILD, use('b', { a: from('x', 'none') })], 'task b references unknown task none'],
    [
      'a task that is no ancestor',
      [BUILD, use('b', { a: from('x') }, 'true', { depends_on: [] })],
      'task b references build but does not depend on it',
    ],
    [
      'a task of another type',
      [shell, use('b', { a: from('x') })],
      'task b takes files of build, which is no runtime task',
    ],
    [
      'inputs of a task of another type',
      [BUILD, { id: 'b', type: 'noop', depends_on: ['build'], params: { inputs: { a: from('x') } } }],
      'task b: params.inputs.a: only runtime tasks have inputs',
    ],
    [
      'a file among arguments',
      [BUILD, { id: 'b', type: 'runtime', depends_on: ['build'], params: { program: 'cat', args: [from('x')] } }],
      `task b: params.args[0]: ${elsewhere}`,
    ],
    [
      'a content beside a file',
      [BUILD, use('b', { a: { content: 'x', ...from('x') } })],
      'task b: params.inputs.a: unknown field "content" beside "$from"',
    ],
    [
      'a file as a content',
      [BUILD, use('b', { a: { content: from('x') } })],
      `task b: params.inputs.a.content: ${elsewhere}`,
    ],
    [
      'a misspelt content',
      [BUILD, use('b', { a: { contents: 'x' } })],
      'unknown field "inputs.a.contents" in task b (did you mean "inputs.a.content"?)',
    ],
    [
      'a file deeper in inputs',
      [BUILD, use('b', { a: { task_id: from('x'), file: 'x' } })],
      `task b: params.inputs.a.task_id: ${elsewhere}`,
    ],
    [
      'a path out of the workspace',
      [BUILD, use('b', { a: from('../x') })],
      'task b: params.inputs.a: file cannot contain parent traversal',
    ],
    [
      'an absolute path',
      [BUILD, use('b', { a: from('/x') })],
      'task b: params.inputs.a: file must be relative to the workspace',
    ],
    ['no path', [BUILD, use('b', { a: from('') })], 'task b: params.inputs.a: file must name a file'],
    [
      'a path that is no text',
      [BUILD, use('b', { a: { $from: 'build', file: { $param: 'x' } } })],
      'task b: params.inputs.a: file: expected the path of a file in the workspace of that task',
    ],
    [
      'an element in a task without for_each',
      [BUILD, use('b', { a: { $from: 'build', file: { $item: '' } } })],
      'task b: params.inputs.a.file: $item means something only in a task with for_each',
    ],
    [
      'other fields',
      [BUILD, use('b', { a: { ...from('x'), path: '/result' } })],
      'task b: params.inputs.a: unknown field "path" beside "$from"',
    ],
    [
      'a file in a condition',
      [BUILD, use('b', {}, 'true', { when: { ...from('x'), equals: 1 } })],
      'task b: when: unknown field "file"',
    ],
  ])('for %s', async (_, tasks, error) => {
    const response = await control.post({ scope: 'graph', tasks })
    expect([response.status, ((await response.json()) as { error: string }).error]).toEqual([400, error])
  })
})

test('a check shows the plan of a task whose files are not there yet, and an error for what cannot be meant', async () => {
  const tasks = [BUILD, use('b', { a: from('x') }), use('c', { a: from('x'), 'a/b': from('y') })]
  const response = await control.fetch('/tasks?dry_run=true', { method: 'POST', body: JSON.stringify({ tasks }) })
  const checked = (await response.json()) as GraphDryRun
  expect(checked.errors).toEqual([{ task_id: 'c', message: 'task c: inputs."a/b" lies within inputs.a', fails: true }])
  expect(Object.keys(checked.runtime!.b!)).toEqual(['execution_plan'])
  const submitted = await control.post({ scope: 'graph', tasks })
  const { warnings, graph_id } = (await submitted.json()) as { warnings: object[]; graph_id: string }
  expect(warnings).toEqual([{ task_id: 'c', message: 'inputs."a/b" lies within inputs.a' }])
  await graphOf(graph_id)
})
