/** Tasks that run once for each element of a list (docs/graphs.md): `for_each`, `$item`, `$index`, children. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ErrorResponse, TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { type Control, startControl } from '../support/control.ts'
import { startRuntime } from '../support/runtime.ts'
import { ended, read, statusesOf, submit } from '../support/scoped-graphs.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

let control: Control
beforeAll(async () => {
  control = await startControl({ env: OPEN })
})
afterAll(() => control.dispose())

/** Has any value for a result. */
const noop = (id: string, message: unknown, more: object = {}) => ({
  ...{ id, type: 'mcp', tool_name: 'echo', params: { message } },
  ...more,
})
/** The result of such a task. */
const said = (message: unknown) => ({ tool_name: 'echo', echo: { message } })
const echo = (id: string, args: unknown, more: object = {}) => ({
  ...{ id, type: 'shell', params: { command: 'echo', args } },
  ...more,
})
const after = (...depends_on: string[]) => ({ depends_on })
/** Fails for each element that is no file. */
const reads = (id: string, for_each: unknown, more: object = {}) => ({
  ...{ id, type: 'file', for_each, params: { action: 'read', path: { $item: '' } } },
  ...more,
})

const refusal = async (control: Control, graph: object) => {
  const response = await control.post(graph)
  return [response.status, ((await response.json()) as ErrorResponse).error]
}

describe('a task with for_each', () => {
  test('runs once for each element, and its result is the list of the results', async () => {
    const graphId = await submit(control, [
      echo('list', ['-n', '[{"name": "a"}, {"name": "b"}, {"name": ["c"]}]']),
      noop(
        'map',
        {
          name: { $item: '/name' },
          at: { $index: true },
          all: { $item: '' },
          list: { $from: 'list', path: '/status' },
        },
        { for_each: { $from: 'list', path: '/result/stdout', as: 'json' }, ...after('list') },
      ),
      noop('sum', { $from: 'map', path: '/result/1/echo/message/name' }, after('map')),
    ])
    const graph = await ended(control, graphId)
    expect(graph).toMatchObject({ state: 'success', task_count: 6, counts: { success: 6 } })
    expect(graph.tasks.map(({ id }) => id)).toEqual(['list', 'map', 'map[0]', 'map[1]', 'map[2]', 'sum'])
    const map = await read(control, graphId, 'map')
    const message = (name: unknown, at: number) => ({ name, at, all: { name }, list: 'success' })
    expect(map).toMatchObject({ status: 'success', attempt: 1, child_count: 3 })
    expect(map.result).toEqual([said(message('a', 0)), said(message('b', 1)), said(message(['c'], 2))])
    expect((await read(control, graphId, 'sum')).result).toEqual(said('b'))
    const child = await read(control, graphId, 'map[2]')
    expect(child).toMatchObject({ parent: 'map', index: 2, status: 'success', result: said(message(['c'], 2)) })
    expect(child.resolved_input).toEqual({ message: message(['c'], 2) })
    expect(child).not.toContainKeys(['for_each', 'depends_on', 'child_count'])
    const [, shown, first] = graph.tasks
    expect(shown).toMatchObject({ id: 'map', child_count: 3, children: { success: 3 } })
    expect(first).toMatchObject({ id: 'map[0]', parent: 'map' })
  })

  test('takes its list from the task, from a parameter, or from a literal, whose elements are data', async () => {
    const data = [{ $from: 'nobody' }, { $param: 'x' }, null]
    const graphId = await submit(
      control,
      [
        noop('inline', { $item: '' }, { for_each: data }),
        noop('literal', { $item: '' }, { for_each: { $literal: data } }),
        noop('parameter', { $item: '/at' }, { for_each: { $param: 'names' } }),
      ],
      { params: { names: [{ at: 1 }, { at: 'x' }] } },
    )
    expect((await ended(control, graphId)).state).toBe('success')
    const messages = async (id: string) =>
      ((await read(control, graphId, id)).result as { echo: { message: unknown } }[]).map(({ echo }) => echo.message)
    expect(await messages('inline')).toEqual(data)
    expect(await messages('literal')).toEqual(data)
    expect(await messages('parameter')).toEqual([1, 'x'])
  })

  test('hands over elements and indexes in the form that as names', async () => {
    const args = [
      { $index: true, as: 'text' },
      { $item: '/n', as: 'text' },
    ]
    const forms = [
      { $index: true, as: 'json' },
      { $item: '/text', as: 'json' },
      { $item: '/text', as: 'lines' },
    ]
    const for_each = [
      { n: 7, text: '[1]\n' },
      { n: [null], text: 1 },
    ]
    const graphId = await submit(control, [echo('texts', args, { for_each }), noop('forms', forms, { for_each })])
    await ended(control, graphId)
    expect((await read(control, graphId, 'texts')).result).toMatchObject([
      { stdout: '0 7\n' },
      { stdout: '1 [null]\n' },
    ])
    expect((await read(control, graphId, 'forms')).result).toEqual([said([0, [1], ['[1]']]), null])
    expect(await read(control, graphId, 'forms[1]')).toMatchObject({
      error: 'params.message[2]: /text of element 1 of forms is no text with lines: it is a number',
      runtime: { error: { code: 'invalid_input' } },
    })
  })

  test('over nothing succeeds with an empty list', async () => {
    const graphId = await submit(control, [
      noop('map', { $item: '' }, { for_each: [] }),
      noop('next', { $from: 'map' }, after('map')),
    ])
    expect(statusesOf(await ended(control, graphId))).toEqual({ map: 'success', next: 'success' })
    expect(await read(control, graphId, 'map')).toMatchObject({ result: [], child_count: 0 })
    expect((await read(control, graphId, 'next')).result).toEqual(said([]))
  })

  test('holds no slot: its children run with one slot', async () => {
    await using control = await startControl({ flags: ['--max-concurrency', '1'] })
    const sleeps = (id: string, more: object = {}) => ({
      ...{ id, type: 'sleep', for_each: [1, 2, 3], params: { duration_ms: { $item: '' } } },
      ...more,
    })
    const graphId = await submit(control, [sleeps('a'), sleeps('b', after('a'))])
    expect((await ended(control, graphId)).counts).toEqual({ success: 8 })
  })

  test('fails if a child fails, with null in its place; continue_on_error and retries count as for other tasks', async () => {
    writeFileSync(join(control.cwd, 'here'), 'text')
    const graphId = await submit(control, [
      reads('map', ['here', 'no', 'here', 'nor this'], { retry: 1, backoff: { initial_ms: 1 } }),
      noop('skipped', 'x', after('map')),
      noop('handler', { $from: 'map', path: '/error' }, { ...after('map'), run_if: 'failed' }),
      reads('optional', ['no'], { continue_on_error: true }),
      noop('runs', 'x', after('optional')),
    ])
    const graph = await ended(control, graphId)
    expect(statusesOf(graph)).toMatchObject({ map: 'failed', skipped: 'skipped', handler: 'success', runs: 'success' })
    const map = await read(control, graphId, 'map')
    expect(map.error).toBe('2 of 4 failed: map[1], map[3]')
    expect(map.runtime?.error?.code).toBe('not_found')
    expect((map.result as unknown[]).map((result) => result === null)).toEqual([false, true, false, true])
    expect(await read(control, graphId, 'map[1]')).toMatchObject({ status: 'failed', attempt: 2, retry: 1 })
    expect(graph.state).toBe('failed')
    expect(graph.root_cause).toMatchObject({ task_id: expect.stringMatching(/^map\[[13]\]$/), skipped: 1 })
  })

  test('counts for the state of its graph, its children do not', async () => {
    const graphId = await submit(control, [reads('map', ['no', 'no'], { continue_on_error: true })])
    expect(await ended(control, graphId)).toMatchObject({ state: 'success', counts: { failed: 3 } })
  })

  test('names at most five children of each kind', async () => {
    const graphId = await submit(control, [reads('map', Array(9).fill('no'))])
    await ended(control, graphId)
    const { error } = await read(control, graphId, 'map')
    expect(error).toBe('9 of 9 failed: map[0], map[1], map[2], map[3], map[4], …')
  })

  test('with fail_fast cancels what has not started once a child fails', async () => {
    const graphId = await submit(control, [reads('map', ['no', 'a', 'b', 'c'], { max_parallel: 1, fail_fast: true })])
    const graph = await ended(control, graphId)
    expect(graph.state).toBe('failed')
    const map = await read(control, graphId, 'map')
    expect(map.error).toBe('1 of 4 failed: map[0]; 3 of 4 cancelled: map[1], map[2], map[3]')
    expect(await read(control, graphId, 'map[3]')).toMatchObject({
      status: 'cancelled',
      error: 'task cancelled: map[0] failed (fail_fast)',
    })
  })

  test('runs at most max_parallel children at a time, and says what the others wait for', async () => {
    const go = join(control.cwd, 'go')
    const script = `echo x >> ${go}.starts; until test -e ${go}; do sleep 0.01; done`
    const graphId = await submit(control, [
      { id: 'map', type: 'shell', for_each: [1, 2, 3, 4, 5], max_parallel: 2, params: { script } },
    ])
    const starts = () =>
      existsSync(`${go}.starts`) ? readFileSync(`${go}.starts`, 'utf8').trim().split('\n').length : 0
    await until(starts, (count) => count === 2)
    const graph = (await (await control.fetch(`/graphs/${graphId}`)).json()) as GraphDetails
    expect(graph.counts).toEqual({ running: 3, pending: 3 })
    expect(graph.tasks[0]).toMatchObject({ id: 'map', children: { running: 2, pending: 3 } })
    expect(graph.tasks[5]!.waiting).toEqual({ reason: 'concurrency', detail: '2 children of map run (max_parallel)' })
    writeFileSync(go, '')
    expect((await ended(control, graphId)).state).toBe('success')
    expect(starts()).toBe(5)
  })

  test('is skipped, and tested by its condition, before its list is looked at', async () => {
    const graphId = await submit(control, [
      noop('list', 'no list'),
      noop('map', 1, {
        for_each: { $from: 'list' },
        ...after('list'),
        when: { $from: 'list', path: '/status', equals: 'failed' },
      }),
    ])
    expect((await ended(control, graphId)).state).toBe('success')
    expect(await read(control, graphId, 'map')).toMatchObject({
      status: 'skipped',
      error: 'condition not met: list/status',
    })
  })

  test('has a large result in a file, which references read', async () => {
    const graphId = await submit(control, [
      noop('map', { $item: '' }, { for_each: Array.from({ length: 50 }, (_, i) => `${i} ${'ö'.repeat(2_000)}`) }),
      noop('large', 'x'.repeat(70_000)),
      noop('both', { $from: 'large', path: '/result/echo/message' }, { for_each: [1, 2], ...after('large') }),
      noop('one', { $from: 'map', path: '/result/49/echo/message' }, after('map')),
    ])
    expect((await ended(control, graphId)).state).toBe('success')
    expect((await read(control, graphId, 'map')).result).toHaveLength(50)
    const both = (await read(control, graphId, 'both')).result as { echo: { message: string } }[]
    expect(both.map(({ echo }) => echo.message.length)).toEqual([70_000, 70_000])
    expect((await read(control, graphId, 'one')).result).toEqual(said(`49 ${'ö'.repeat(2_000)}`))
  })
})

describe('a list that is none, or too long', () => {
  const message = async (control: Control, map: object, list: unknown = 'text') => {
    const graphId = await submit(control, [noop('list', list), noop('map', 1, { ...after('list'), ...map })])
    await ended(control, graphId)
    const { status, error, runtime, attempt } = await read(control, graphId, 'map')
    return [status, error, runtime?.error?.code, attempt]
  }

  test('fails the task without further attempts', async () => {
    await using control = await startControl({ flags: ['--max-fan-out', '3'] })
    expect(await message(control, { retry: 3, for_each: { $from: 'list', path: '/result/echo/message' } })).toEqual([
      'failed',
      'for_each: /result/echo/message of task list is no list: it is of type string ("as" may be json or lines)',
      'invalid_input',
      1,
    ])
    expect(await message(control, { for_each: { $from: 'list' } })).toEqual([
      'failed',
      'for_each: /result of task list is no list: it is of type object',
      'invalid_input',
      1,
    ])
    expect(await message(control, { for_each: { $from: 'list', path: '/result/no' } })).toEqual([
      'failed',
      'for_each: task list has no /result/no, and there is no default',
      'invalid_input',
      1,
    ])
    expect(await message(control, { for_each: { $from: 'list', path: '/result/echo/message' } }, [1, 2, 3, 4])).toEqual(
      [
        'failed',
        'for_each: the list has 4 elements, but at most 3 are allowed (--max-fan-out)',
        'resource_limit_exceeded',
        1,
      ],
    )
    const warned = await control.post({ scope: 'graph', tasks: [noop('map', 1, { for_each: [1, 2, 3, 4] })] })
    expect(await warned.json()).toMatchObject({
      warnings: [
        { task_id: 'map', message: 'for_each: the list has 4 elements, but at most 3 are allowed (--max-fan-out)' },
      ],
    })
  })

  test('fails the task where the service has no room for its children, and makes room if it can', async () => {
    await using control = await startControl({ flags: ['--max-stored-tasks', '10'] })
    const first = await submit(control, [noop('map', 1, { for_each: [1, 2, 3, 4, 5, 6] })])
    expect((await ended(control, first)).state).toBe('success')
    const second = await submit(control, [noop('map', 1, { for_each: [1, 2, 3, 4, 5, 6, 7, 8, 9] })])
    expect((await ended(control, second)).state).toBe('success')
    expect((await control.fetch(`/graphs/${first}`)).status).toBe(404)
    const third = await submit(control, [noop('map', 1, { for_each: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] })])
    await ended(control, third)
    expect(await read(control, third, 'map')).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/^for_each: no room for 10 more tasks: .*\(--max-stored-tasks\)$/),
      runtime: { error: { code: 'resource_limit_exceeded' } },
    })
  })

  test('fails one of two tasks if there is room for the children of one', async () => {
    await using control = await startControl({ flags: ['--max-stored-tasks', '20'] })
    const nine = Array.from({ length: 9 }, (_, i) => i)
    const tasks = [noop('a', 1, { for_each: nine }), noop('b', 1, { for_each: nine }), noop('c', 1, { for_each: [1] })]
    const graph = await ended(control, await submit(control, tasks))
    expect(graph.task_count).toBeLessThanOrEqual(20)
    expect(graph.counts).toEqual({ success: 12, failed: 1 })
  })

  test('an element without the value of $item fails its child', async () => {
    const graphId = await submit(control, [noop('map', [{ $item: '/a' }], { for_each: [{ a: 1 }, { b: 1 }] })])
    await ended(control, graphId)
    expect(await read(control, graphId, 'map[1]')).toMatchObject({
      error: 'params.message[0]: element 1 of map has no /a',
      runtime: { error: { code: 'invalid_input' } },
    })
  })
})

test('children run in the runtime service, with names of their own, and are cancelled there', async () => {
  await using runtime = await startRuntime()
  await using control = await startControl({ flags: ['--runtime-url', runtime.url] })
  const command = (id: string, program: string, ...args: unknown[]) => ({
    ...{ id, type: 'runtime.command', for_each: ['x', 'y z', '$(id)'] },
    params: { program, args },
  })
  const tasks = [command('map', 'printf', '%s', { $item: '' }), command('long', 'sleep', '300')]
  const graphId = await submit(control, tasks)
  await until(
    () => read(control, graphId, 'map'),
    ({ status }) => status === 'success',
  )
  const results = (await read(control, graphId, 'map')).result as { stdout: string; task_id: string }[]
  expect(results.map(({ stdout }) => stdout)).toEqual(['x', 'y z', '$(id)'])
  expect(new Set(results.map(({ task_id }) => task_id)).size).toBe(3)
  await until(
    () => read(control, graphId, 'long[2]'),
    ({ status }) => status === 'running',
  )
  expect((await control.fetch(`/graphs/${graphId}/tasks/long/cancel`, { method: 'POST' })).status).toBe(202)
  expect(await ended(control, graphId)).toMatchObject({ counts: { success: 4, cancelled: 4 } })
})

describe('results', () => {
  test('that are too large together fail the task; each child keeps its own', async () => {
    // 70 outputs of 1 MiB, the most that a result keeps.
    const script = 'head -c 1048576 /dev/zero | tr "\\0" x'
    const graphId = await submit(control, [
      { id: 'map', type: 'shell', for_each: Array(70).fill(1), params: { script } },
      noop('next', 1, { ...after('map'), run_if: 'failed' }),
    ])
    expect(statusesOf(await ended(control, graphId))).toMatchObject({
      map: 'failed',
      'map[69]': 'success',
      next: 'success',
    })
    const map = await read(control, graphId, 'map')
    expect(map).toMatchObject({
      error: `the results of 70 children have more than 67108864 characters as JSON together: read them one by one, at /graphs/${graphId}/tasks/`,
      runtime: { error: { code: 'resource_limit_exceeded' } },
    })
    expect(map.result).toBeUndefined()
    const { result } = await read(control, graphId, 'map[69]')
    expect((result as { stdout: string }).stdout).toHaveLength(1024 * 1024)
  })
})

describe('a value of each child', () => {
  test('is gathered by parameters, conditions and lists, where a child that failed has none', async () => {
    writeFileSync(join(control.cwd, 'one.json'), '{"n":1}')
    writeFileSync(join(control.cwd, 'two.json'), '{"n":2}')
    const contents = { $from: 'all', path: '/result/*/content', as: 'json' }
    const graphId = await submit(control, [
      reads('all', ['one.json', 'two.json']),
      reads('some', ['one.json', 'missing.json']),
      noop('gathered', contents, after('all')),
      noop('again', { $item: '/n' }, { ...after('all'), for_each: contents }),
      noop('met', 'x', { ...after('all'), when: { ...contents, equals: [{ n: 1 }, { n: 2 }] } }),
      noop('broken', { $from: 'some', path: '/result/*/content' }, { ...after('some'), run_if: 'always' }),
      noop(
        'mended',
        { $from: 'some', path: '/result/*/content', as: 'json', default: 0 },
        { ...after('some'), run_if: 'always' },
      ),
    ])
    await ended(control, graphId)
    const result = async (id: string) => (await read(control, graphId, id)).result
    expect(await result('gathered')).toEqual(said([{ n: 1 }, { n: 2 }]))
    expect(await result('again')).toEqual([said(1), said(2)])
    expect(await result('met')).toEqual(said('x'))
    expect(await result('mended')).toEqual(said([{ n: 1 }, 0]))
    expect(await read(control, graphId, 'broken')).toMatchObject({
      status: 'failed',
      error: 'params.message: task some has no /result/1/content, and there is no default',
      runtime: { error: { code: 'invalid_input' } },
    })
  })
})

describe('refused at submission', () => {
  const a = (for_each: unknown, more: object = {}) => [noop('a', 1, { for_each, ...more })]
  const message = (value: unknown, more: object = { for_each: [] }) => [noop('a', value, more)]
  const FORM = 'expected a list, or an object with $from, $param or $literal'
  const AT_LEAST_ONE = 'invalid JSON: tasks[0].max_parallel: expected integer of at least 1'
  /** Texts that begin with a blank follow "task a:". */
  const cases: [string, readonly object[], string][] = [
    [
      ...(['a text', a('x')] as const),
      'invalid JSON: tasks[0].for_each: expected list, or object with $from, $param or $literal',
    ],
    ['an object that says nothing', a({}), ` for_each: ${FORM}`],
    ['an element', a({ $item: '' }), ` for_each: ${FORM}`],
    ['a literal that is no list', a({ $literal: 1 }), ' for_each: $literal: expected a list, got number'],
    [
      ...(['an unknown field', a({ $from: 'b', pth: 1 })] as const),
      ' for_each: unknown field "pth" beside "$from" (did you mean "path"?)',
    ],
    ['an unknown parameter', a({ $param: 'lst' }), 'task a uses unknown parameter "lst" (did you mean "list"?)'],
    ['no list', a({ $param: 'text' }), ' for_each: parameter text is no list: it is of type string'],
    [
      'a file',
      [noop('b', 1), ...a({ $from: 'b', file: 'x' }, after('b'))],
      ' for_each: "file" beside "$from" is no list',
    ],
    ['a list of nobody', a({ $from: 'b' }), 'task a references unknown task b'],
    ['a list of a stranger', [noop('b', 1), ...a({ $from: 'b' })], 'task a references b but does not depend on it'],
    ['max_parallel alone', message(1, { max_parallel: 2 }), ' max_parallel means nothing without for_each'],
    ['fail_fast alone', message(1, { fail_fast: false }), ' fail_fast means nothing without for_each'],
    ['max_parallel of nothing', a([], { max_parallel: 0 }), AT_LEAST_ONE],
    ['half a child at a time', a([], { max_parallel: 1.5 }), AT_LEAST_ONE],
    ['the id of a child', [...a([]), noop('a[7]', 1)], 'task id a[7] is reserved by for_each of a'],
    [
      'a reference to a child',
      [...a([1]), noop('b', { $from: 'a[0]' }, after('a'))],
      'task b references unknown task a[0] (it is a child of a: use {"$from": "a", "path": "/result/0"})',
    ],
    [
      ...(['$item elsewhere', message([{ $item: '' }], {})] as const),
      ' params.message[0]: $item means something only in a task with for_each',
    ],
    [
      ...(['$index elsewhere', message({ $index: true }, {})] as const),
      ' params.message: $index means something only in a task with for_each',
    ],
    ['$index of something', message({ $index: 1 }), ' params.message: $index: expected true'],
    [
      ...(['$item without a pointer', message({ $item: 'x' })] as const),
      ' params.message: $item: expected a JSON Pointer, which begins with "/"',
    ],
    ['an unknown form', message({ $item: '', as: 'yaml' }), ' params.message: as: expected text, json, lines'],
    ['an index as lines', message({ $index: true, as: 'lines' }), ' params.message: as: expected text, json'],
    [
      ...(['a misspelt form of an index', message({ $index: true, As: 'text' })] as const),
      ' params.message: unknown field "As" beside "$index" (did you mean "as"?)',
    ],
    [
      ...(['$item of a number', message({ $item: 0 })] as const),
      ' params.message: $item: expected a JSON Pointer into the element ("" for all of it)',
    ],
    [
      ...(['a word of another system', message(1, { foreach: [] })] as const),
      'unknown field "foreach" in task a (did you mean "for_each"?)',
    ],
  ]
  test.each(cases)('%s', async (_, tasks, end) => {
    const text = end.replace(/^ /, 'task a: ')
    const graph = { tasks, params: { list: [1], text: 'x' } }
    expect(await refusal(control, graph)).toEqual([400, text])
    const dry = await control.fetch('/tasks?dry_run=true', { method: 'POST', body: JSON.stringify(graph) })
    const { errors } = (await dry.json()) as { errors: { message: string }[] }
    expect(errors.map(({ message }) => message)).toContain(text)
  })

  test('not: ids that only look like those of children', async () => {
    await control.submit([
      noop('a', 1, { for_each: [1] }),
      noop('a[01]', 1),
      noop('a[x]', 1),
      noop('b[0]', 1),
      noop('[0]', 1),
    ])
    await control.allEnded()
  })
})

/** A task whose children wait for a file, and write down that they started. */
function waits(dir: string, id: string, for_each: unknown, more: object = {}) {
  const go = join(dir, 'go')
  const script = `echo "$1" >> ${go}.starts; until test -e ${go}; do sleep 0.01; done; echo -n "$1"`
  return { id, type: 'shell', for_each, params: { script, args: [{ $item: '' }] }, ...more }
}
const startsIn = (dir: string): string[] =>
  existsSync(join(dir, 'go.starts')) ? readFileSync(join(dir, 'go.starts'), 'utf8').trim().split('\n') : []
const startedIn = (dir: string, count: number) =>
  until(
    () => startsIn(dir),
    (starts) => starts.length === count,
  )

const OPEN = { SERVICE_SHELL_POLICY: 'open' }

describe('a restart', () => {
  for (const [how, flags] of [
    ['from the journal', []],
    ['from a state file', ['--persist-interval', '20ms']],
  ] as const) {
    test(`runs what has not ended, for the same elements, ${how}`, async () => {
      using dir = tempDir()
      const options = {
        ...{
          dataDir: join(dir.path, 'data'),
          env: OPEN,
          flags: ['--max-concurrency', '2', '--kill-grace', '100ms', ...flags],
        },
      }
      let graphId: string
      {
        await using control = await startControl(options)
        graphId = await submit(control, [
          echo('list', ['-n', 'a\nb\nc\nd']),
          waits(dir.path, 'map', { $from: 'list', path: '/result/stdout', as: 'lines' }, after('list')),
          waits(dir.path, 'known', ['x'], after('map')),
          noop('sum', { $from: 'map', path: '/result/3/stdout' }, after('known')),
        ])
        await startedIn(dir.path, 2)
        // The list is of no more use: its elements are on disk.
        expect((await control.fetch(`/graphs/${graphId}/tasks/list`, { method: 'DELETE' })).status).toBe(204)
        const state = join(control.dataDir, 'state.json')
        if (flags.length > 0) {
          await until(
            () => (existsSync(state) ? readFileSync(state, 'utf8') : ''),
            (text) => text.includes('map[3]') && !text.includes('/list":{'),
          )
        }
        await control.stop('SIGKILL')
      }
      writeFileSync(join(dir.path, 'go'), '')
      await using control = await startControl(options)
      const graph = await ended(control, graphId)
      expect(graph).toMatchObject({ state: 'success', task_count: 8, counts: { success: 8 } })
      const { result, child_count, attempt } = await read(control, graphId, 'map')
      expect((result as { stdout: string }[]).map(({ stdout }) => stdout)).toEqual(['a', 'b', 'c', 'd'])
      expect([child_count, attempt]).toEqual([4, 1])
      expect((await read(control, graphId, 'sum')).result).toEqual(said('d'))
      expect(startsIn(dir.path).toSorted()).toEqual(['a', 'a', 'b', 'b', 'c', 'd', 'x'])
      await control.stop('SIGTERM')
      await using again = await startControl(options)
      expect(await ended(again, graphId)).toEqual(graph)
      expect((await read(again, graphId, 'map[3]')).result).toMatchObject({ stdout: 'd' })
    })
  }

  test('keeps outcomes, deletions and lists; a stop lets children run again', async () => {
    using dir = tempDir()
    const options = {
      dataDir: join(dir.path, 'data'),
      env: OPEN,
      flags: ['--kill-grace', '100ms', '--shutdown-timeout', '0s'],
    }
    let graphId: string
    let before: TaskRecord[]
    {
      await using control = await startControl(options)
      writeFileSync(join(control.cwd, 'here'), 'text')
      graphId = await submit(control, [
        waits(dir.path, 'slow', ['1', '2', '3'], { max_parallel: 2 }),
        reads('mixed', [join(control.cwd, 'here'), join(control.cwd, 'no')], { continue_on_error: true }),
        noop('all', 'x', { for_each: [1, 2, 3] }),
      ])
      await startedIn(dir.path, 2)
      // What still runs at the stop runs again, and then differs from what was read before.
      for (const id of ['mixed', 'all'])
        await until(
          () => read(control, graphId, id),
          ({ status }) => isTerminal(status),
        )
      expect((await control.fetch(`/graphs/${graphId}/tasks/all%5B1%5D`, { method: 'DELETE' })).status).toBe(204)
      before = (await (await control.fetch(`/graphs/${graphId}/tasks`)).json()) as TaskRecord[]
      await control.stop('SIGTERM')
    }
    const stored = JSON.parse(readFileSync(join(options.dataDir, 'state.json'), 'utf8'))
    expect(Object.keys(stored)).toContain(`${graphId}/slow[0]`)
    expect(stored[`${graphId}/slow[0]`]).not.toContainKeys(['params', 'input'])
    await using control = await startControl(options)
    const still = (await (await control.fetch(`/graphs/${graphId}/tasks`)).json()) as TaskRecord[]
    const ofOthers = (records: TaskRecord[]) => records.filter(({ id }) => !id.startsWith('slow'))
    expect(ofOthers(still)).toEqual(ofOthers(before))
    writeFileSync(join(dir.path, 'go'), '')
    const graph = await ended(control, graphId)
    expect(graph).toMatchObject({ state: 'success', counts: { success: 8, failed: 2 } })
    expect((await read(control, graphId, 'slow')).result).toHaveLength(3)
  })
})

describe('a cancel', () => {
  const cancel = (control: Control, path: string) => control.fetch(`/graphs/${path}/cancel`, { method: 'POST' })

  test('of the task ends all its children, then the task', async () => {
    await using control = await startControl({ env: OPEN, flags: ['--max-concurrency', '2', '--kill-grace', '100ms'] })
    const graphId = await submit(control, [
      waits(control.cwd, 'map', ['a', 'b', 'c']),
      noop('clean', 'up', { ...after('map'), run_if: 'always' }),
      noop('next', 'x', after('map')),
    ])
    await startedIn(control.cwd, 2)
    const answer = (await (await cancel(control, `${graphId}/tasks/map`)).json()) as { tasks: object[] }
    expect(answer.tasks[0]).toMatchObject({ task_id: 'map', status: 'cancelling' })
    const graph = await ended(control, graphId)
    const cancelled = { map: 'cancelled', 'map[0]': 'cancelled', 'map[1]': 'cancelled', 'map[2]': 'cancelled' }
    expect(statusesOf(graph)).toEqual({ ...cancelled, clean: 'success', next: 'skipped' })
    expect(graph.state).toBe('cancelled')
    expect(startsIn(control.cwd)).toHaveLength(2)
  })

  test('of the graph ends all of it', async () => {
    await using control = await startControl({ env: OPEN, flags: ['--max-concurrency', '2', '--kill-grace', '100ms'] })
    const graphId = await submit(control, [
      waits(control.cwd, 'map', Array(300).fill('a'), { max_parallel: 2 }),
      noop('clean', 'up', { ...after('map'), run_if: 'always' }),
    ])
    await startedIn(control.cwd, 2)
    expect((await cancel(control, graphId)).status).toBe(202)
    expect(await ended(control, graphId)).toMatchObject({ state: 'cancelled', counts: { cancelled: 302 } })
    expect(startsIn(control.cwd)).toHaveLength(2)
  })

  test('or a deletion of one child leaves the others, and the task fails', async () => {
    await using control = await startControl({ env: OPEN, flags: ['--max-concurrency', '1', '--kill-grace', '100ms'] })
    const graphId = await submit(control, [waits(control.cwd, 'map', ['a', 'b', 'c', 'd'])])
    await startedIn(control.cwd, 1)
    expect((await cancel(control, `${graphId}/tasks/map%5B1%5D`)).status).toBe(202)
    expect((await control.fetch(`/graphs/${graphId}/tasks/map%5B2%5D`, { method: 'DELETE' })).status).toBe(204)
    writeFileSync(join(control.cwd, 'go'), '')
    expect((await ended(control, graphId)).state).toBe('failed')
    const map = await read(control, graphId, 'map')
    expect(map).toMatchObject({ error: '1 of 4 cancelled: map[1]; 1 of 4 deleted: map[2]', child_count: 4 })
    expect((map.result as unknown[]).map((result) => result === null)).toEqual([false, true, true, false])
  })
})

describe('children', () => {
  test('are seen below their graph only: their records, lists, logs and events', async () => {
    await using control = await startControl()
    const response = await control.post({ tasks: [echo('map', [{ $item: '' }], { for_each: ['a', 'b'] })] })
    const { graph_id, task_ids, accepted } = (await response.json()) as SubmitResponse
    expect([task_ids, accepted]).toEqual([['map'], 1])
    await ended(control, graph_id)
    expect((await control.fetch('/tasks/map%5B0%5D')).status).toBe(404)
    expect((await control.list()).map(({ id }) => id)).toEqual(['map'])
    const ids = async (path: string) => ((await (await control.fetch(path)).json()) as TaskRecord[]).map(({ id }) => id)
    expect(await ids(`/graphs/${graph_id}/tasks`)).toEqual(['map', 'map[0]', 'map[1]'])
    const log = await (await control.fetch(`/graphs/${graph_id}/tasks/map%5B1%5D/logs`)).text()
    expect(log).toContain('b')
    // Their ids are free for others.
    await control.submit([noop('map[0]', 'other')])
    expect((await control.ended('map[0]')).result).toEqual(said('other'))
    expect(await read(control, graph_id, 'map[0]')).toMatchObject({ parent: 'map' })
    const events = await (await control.fetch(`/graphs/${graph_id}/events?after=0&until=ended`)).text()
    const told = events
      .split('\n')
      .flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6)) as Record<string, unknown>] : []))
      .filter(({ task_id }) => task_id !== undefined)
    const last = (id: string) => told.findLast(({ task_id }) => task_id === id)
    expect(last('map')).toMatchObject({ status: 'success', child_count: 2 })
    expect(last('map[1]')).toMatchObject({ status: 'success', parent: 'map' })
    expect(told[0]).toMatchObject({ task_id: 'map', status: 'running', child_count: 2 })
    expect(await control.metrics()).toMatchObject({ tasks_total: 4, tasks_running: 0 })
  })

  test('of a deleted task are deleted', async () => {
    const graphId = await submit(control, [noop('map', 1, { for_each: [1, 2] }), noop('other', 1)])
    await ended(control, graphId)
    expect((await control.fetch(`/graphs/${graphId}/tasks/map`, { method: 'DELETE' })).status).toBe(204)
    const graph = await until(
      async () => (await (await control.fetch(`/graphs/${graphId}`)).json()) as GraphDetails,
      ({ task_count }) => task_count === 1,
    )
    expect(statusesOf(graph)).toEqual({ other: 'success' })
  })

  test('of a task that succeeded are not run again, those of any other task are', async () => {
    const graphId = await submit(control, [
      noop('good', { $item: '' }, { for_each: [1, 2] }),
      reads('bad', [join(control.cwd, 'later'), join(control.cwd, 'later')], { max_parallel: 1, fail_fast: true }),
      noop('next', { $from: 'good', path: '/result/1/echo/message' }, after('good', 'bad')),
    ])
    await ended(control, graphId)
    const rerun = (body: object) =>
      control.fetch(`/graphs/${graphId}/rerun`, { method: 'POST', body: JSON.stringify(body) })
    expect(await (await rerun({ from: ['bad[0]'] })).json()).toEqual({
      error: `task bad[0] of graph ${graphId} runs again with bad only: name bad`,
    })
    writeFileSync(join(control.cwd, 'later'), 'text')
    const again = (await (await rerun({})).json()) as SubmitResponse & { reused: string[] }
    expect([again.task_ids, again.reused]).toEqual([['good', 'bad', 'next'], ['good']])
    const graph = await ended(control, again.graph_id)
    const success = { good: 'success', bad: 'success', next: 'success', 'bad[0]': 'success', 'bad[1]': 'success' }
    expect(statusesOf(graph)).toEqual(success)
    expect((await read(control, again.graph_id, 'next')).result).toEqual(said(2))
    expect(await read(control, again.graph_id, 'bad')).toMatchObject({ max_parallel: 1, fail_fast: true })
  })
})
