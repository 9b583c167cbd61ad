/**
 * Goal: a task gets the values of other tasks that its parameters reference, once and for ever, as data and nothing else.
 * Method: the built services, with restarts by SIGKILL, values that try to be more than data, and a table of refusals.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ErrorResponse, TaskRecord } from '../../shared/contract/control.ts'
import { type Control, startControl } from '../support/control.ts'
import { connectClient } from '../support/mcp-client.ts'
import { startPair } from '../support/pair.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

const noop = (id: string, message: unknown, more: object = {}) => ({ id, type: 'noop', params: { message }, ...more })

const message = { $from: 'a', path: '/result/message' }

/** Runs a task after a task `a`, whose result has `value` as its message. */
async function runAfter(control: Control, value: string, task: object): Promise<TaskRecord> {
  const tasks = [noop('a', value), { id: 'b', depends_on: ['a'], ...task }]
  const answer = await (await control.post({ scope: 'graph', tasks })).json()
  const path = `/graphs/${(answer as { graph_id: string }).graph_id}/tasks/b?wait_ms=60000`
  return until(
    async () => (await (await control.fetch(path)).json()) as TaskRecord,
    ({ finished_at }) => finished_at !== undefined,
  )
}

const refusal = async (control: Control, graph: object) => {
  const response = await control.post(graph)
  expect(response.status).toBe(400)
  return ((await response.json()) as ErrorResponse).error
}

describe('a task gets', () => {
  test('the values of tasks before it, of every type and form, at any place of its parameters', async () => {
    await using control = await startControl({ flags: ['--unknown-fields', 'refuse'] })
    writeFileSync(join(control.cwd, 'list.txt'), 'b c\na\n')
    await control.submit([
      { id: 'list', type: 'shell', params: { command: 'cat', args: ['list.txt'] } },
      { id: 'lost', type: 'shell', params: { command: 'cat', args: ['missing.txt'] } },
      {
        ...{ id: 'echo', type: 'shell', depends_on: ['list'] },
        params: { command: 'echo', args: ['-n', { $from: 'list', path: '/result/stdout' }, { $literal: '$x' }] },
      },
      {
        ...{ id: 'each', type: 'shell', depends_on: ['list'] },
        params: { command: 'echo', args: { $from: 'list', path: '/result/stdout', as: 'lines' } },
      },
      {
        ...{ id: 'all', type: 'mcp', tool_name: 'builtin/echo', depends_on: ['each', 'echo'] },
        input: {
          far: { $from: 'list', path: '/result/exit_code' },
          near: [{ $from: 'each', path: '/result/stdout', as: 'text' }],
          none: { $from: 'each', path: '/result/none', default: null },
          whole: { $from: 'echo', path: '/params/args/0' },
          literal: { $literal: { $from: 'nobody' } },
        },
      },
      { ...noop('whole', 'x', { depends_on: ['list'] }), params: { $from: 'list', path: '/result', as: 'json' } },
    ])
    await control.allEnded()
    expect((await control.get('echo')).result).toMatchObject({ stdout: 'b c\na\n $x' })
    expect((await control.get('each')).result).toMatchObject({ stdout: 'b c a\n' })
    const all = await control.get('all')
    const input = { far: 0, near: ['b c a\n'], none: null, whole: '-n', literal: { $from: 'nobody' } }
    expect(all).toMatchObject({ status: 'success', result: { echo: input } })
    expect(all.resolved_input).toEqual(input)
    expect(all.input).toMatchObject({ literal: { $literal: { $from: 'nobody' } } })
    expect((await control.get('list')).resolved_input).toBeUndefined()
    expect((await control.get('whole')).resolved_input).toMatchObject({ stdout: 'b c\na\n' })
    expect(await control.get('lost')).toMatchObject({ status: 'failed' })
  })

  test('a large result, from its file, and keeps the digest of a large input', async () => {
    await using control = await startControl()
    const large = 'ö"\n'.repeat(40_000)
    const task = await runAfter(control, large, noop('b', message))
    const files = readdirSync(join(control.dataDir, 'results'))
    expect(files.filter((name) => !/^\d+-\d+-0-/.test(name))).toHaveLength(2)
    expect(task).toMatchObject({ status: 'success', result: { message: large } })
    const json = JSON.stringify({ message: large })
    const $digest = `sha256:${createHash('sha256').update(json).digest('hex')}`
    expect(task.resolved_input).toEqual({ $digest, length: Buffer.byteLength(json) })
  })

  test('the same value in each attempt, also after a kill of the service, and after the other task was deleted', async () => {
    using dir = tempDir()
    const go = join(dir.path, 'go')
    const options = { dataDir: join(dir.path, 'data'), env: { SERVICE_SHELL_POLICY: 'open' } }
    const script = `echo "$1" >> ${go}.values; test -e ${go} || sleep 300`
    {
      await using control = await startControl(options)
      await control.submit([
        noop('a', 'the value'),
        { id: 'b', type: 'shell', depends_on: ['a'], params: { script, args: [message] } },
      ])
      await until(() => existsSync(`${go}.values`))
      expect((await control.fetch('/tasks/a', { method: 'DELETE' })).status).toBe(204)
      await control.stop('SIGKILL')
    }
    writeFileSync(go, '')
    await using control = await startControl(options)
    const task = await control.ended('b')
    expect(task).toMatchObject({ status: 'success', attempt: 2, resolved_input: { script, args: ['the value'] } })
    expect(readFileSync(`${go}.values`, 'utf8')).toBe('the value\nthe value\n')
    expect((await control.get('b')).params).toEqual({ script, args: [message] })
  })

  test('a large value in each attempt, also after a kill of the service, and after the other task was deleted', async () => {
    using dir = tempDir()
    const go = join(dir.path, 'go')
    const dataDir = join(dir.path, 'data')
    const options = { dataDir, flags: ['--persist-interval', '20ms'], env: { SERVICE_SHELL_POLICY: 'open' } }
    const script = `wc -c >> ${go}.sizes; test -e ${go}.kill || sleep 300; test -e ${go}`
    const large = 'x'.repeat(70_000)
    const sizes = async (count: number) =>
      await until(
        () => (existsSync(`${go}.sizes`) ? readFileSync(`${go}.sizes`, 'utf8').trim().split('\n') : []),
        (lines) => lines.length === count,
      )
    {
      await using control = await startControl(options)
      await control.submit([
        noop('a', large),
        {
          ...{ id: 'b', type: 'shell', depends_on: ['a'], retry: 1_000, backoff: { initial_ms: 10, max_ms: 10 } },
          params: { script, stdin: message },
        },
      ])
      await sizes(1)
      expect((await control.fetch('/tasks/a', { method: 'DELETE' })).status).toBe(204)
      await control.stop('SIGKILL')
    }
    writeFileSync(`${go}.kill`, '')
    await using control = await startControl(options)
    await until(
      () => readFileSync(`${go}.sizes`, 'utf8').trim().split('\n').length,
      (attempts) => attempts > 3,
    )
    writeFileSync(go, '')
    const task = await control.ended('b')
    expect([task.status, task.error]).toEqual(['success', undefined])
    expect(task.resolved_input).toMatchObject({ $digest: expect.stringContaining('sha256:') })
    expect(JSON.stringify(task)).not.toContain('input_file')
    expect(new Set(readFileSync(`${go}.sizes`, 'utf8').trim().split('\n').map(Number))).toEqual(new Set([large.length]))
    await until(() => readdirSync(join(dataDir, 'results')).length, 0)
  })

  test('its value in a graph that is an action, and in a graph of an agent', async () => {
    const graph = (id: string) => ({
      params: { greeting: 'hi' },
      tasks: [noop(`${id}-a`, 'x'), noop(`${id}-b`, [{ $from: `${id}-a`, path: '/status' }, { $param: 'greeting' }])],
    })
    const withEdge = (id: string) => {
      const { params, tasks } = graph(id)
      const [a, b] = tasks as [object, object]
      return { params, tasks: [a, { ...b, type: 'mcp', tool_name: 'echo', depends_on: [`${id}-a`] }] }
    }
    const action = { kind: 'task_graph.submit', input: { task_graph: withEdge('action') } }
    const acted = await control.fetch('/adapters/actions', { method: 'POST', body: JSON.stringify({ action }) })
    expect([acted.status, await acted.text()]).toEqual([202, expect.stringContaining('"params":{"greeting":"hi"}')])
    await using mcp = await connectClient(control.url)
    await mcp.call('submit_graph', { ...withEdge('tool'), wait_ms: 20_000 })
    for (const id of ['action-b', 'tool-b']) {
      expect((await control.ended(id)).result).toEqual({ tool_name: 'echo', echo: { message: ['success', 'hi'] } })
    }
    const { data } = await mcp.call('get_task', { task_id: 'tool-b', detail: true })
    expect(data).toMatchObject({ resolved_input: { message: ['success', 'hi'] } })
  })
})

describe('the input of a task without a graph is data, whatever it looks like', () => {
  const inputs: [string, unknown][] = [
    ['a reference', { x: { $from: 'q' } }],
    ['a parameter and a literal', { x: [{ $param: 'p' }, { $literal: { $literal: 1 } }] }],
    ['a placeholder with other fields', { x: { $from: 'q', other: 1 }, y: { $from: 'q' } }],
    ['a placeholder as a whole', { $from: 7 }],
  ]
  test.each(inputs)('%s', async (_, input) => {
    const post = async (path: string, body: object) => {
      const answer = await control.fetch(path, { method: 'POST', body: JSON.stringify(body) })
      expect([answer.status, await answer.clone().text()]).toEqual([
        path.endsWith('translate') ? 200 : 202,
        expect.any(String),
      ])
      return (await answer.json()) as { task_graph: { tasks: object[] } }
    }
    await using mcp = await connectClient(control.url)
    await post('/mcp/call', { id: 'call', tool_name: 'builtin/echo', input })
    const action = { kind: 'mcp.call', tool_name: 'builtin/echo', input }
    await post('/adapters/actions', { action_id: 'action', action })
    const { task_graph } = await post('/adapters/translate', { action_id: 'translated', action })
    await control.submit(task_graph.tasks)
    expect((await mcp.call('run_action', { ...action, action_id: 'agent' })).isError).toBe(false)
    const ids = ['call', 'action', 'translated', 'agent']
    for (const id of ids) {
      const { result, resolved_input } = await control.ended(id)
      expect([result, resolved_input]).toEqual([expect.objectContaining({ echo: input }), input])
    }
  })

  test('also after restarts before it runs, and in a rerun', async () => {
    using temp = tempDir()
    const options = { dataDir: join(temp.path, 'data'), flags: ['--max-concurrency', '1', '--shutdown-timeout', '0s'] }
    const input = { x: { $from: 'q' } }
    {
      await using control = await startControl(options)
      await control.submit([{ id: 'first', type: 'sleep', params: { duration_ms: 600_000 } }])
      const body = JSON.stringify({ id: 'call', tool_name: 'builtin/echo', input })
      expect((await control.fetch('/mcp/call', { method: 'POST', body })).status).toBe(202)
      control.process.kill('SIGKILL') // the journal has it
      await control.process.exited
    }
    {
      await using control = await startControl(options)
      expect((await control.get('call')).status).toBe('pending')
      await control.stop('SIGTERM') // the state file has it
    }
    await using control = await startControl(options)
    await control.fetch('/tasks/first/cancel', { method: 'POST' })
    const { result, resolved_input, graph_id } = await control.ended('call')
    expect([result, resolved_input]).toEqual([expect.objectContaining({ echo: input }), input])
    const again = await control.fetch(`/graphs/${graph_id}/rerun`, {
      method: 'POST',
      body: JSON.stringify({ from: ['call'] }),
    })
    expect(again.status).toBe(202)
    expect((await control.ended('call')).result).toMatchObject({ echo: input })
  })

  test('a value of the wrong type is refused as ever', async () => {
    const action = { kind: 'os.shell', input: { command: 'echo', args: [{ $from: 'later' }] } }
    for (const path of ['/adapters/translate', '/adapters/actions']) {
      const answer = await control.fetch(path, { method: 'POST', body: JSON.stringify({ action }) })
      expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('input.args')])
    }
  })
})

describe('a graph is refused', () => {
  const b = (params: unknown, more: object = {}) => ({ id: 'b', type: 'noop', depends_on: ['a'], params, ...more })
  test.each<[string, object, string]>([
    ['unknown task', b({ message: { $from: 'x' } }), 'task b references unknown task x'],
    ['no ancestor', b({ message: { $from: 'c' } }), 'task b references c but does not depend on it'],
    ['itself', b({ message: [{ $from: 'b' }] }), 'task b references b but does not depend on it'],
    [
      'bad pointer',
      b({ message: { $from: 'a', path: 'x' } }),
      'task b: params.message: path: expected a JSON Pointer, which begins with "/"',
    ],
    [
      'two stars',
      b({ message: { $from: 'a', path: '/result/*/x/*' } }),
      'task b: params.message: path: expected at most one "*"; let another task gather the inner arrays',
    ],
    ['bad form', b({ message: { $from: 'a', as: 'x' } }), 'task b: params.message: as: expected text, json, lines'],
    [
      'unknown field',
      b({ message: [{ $from: 'a', pat: '/x' }] }),
      'task b: params.message[0]: unknown field "pat" beside "$from" (did you mean "path"?)',
    ],
    ['in input', { ...b(undefined), input: { $from: 'x' } }, 'task b references unknown task x'],
    ['unknown parameter', b({ message: { $param: 'version' } }), 'task b uses unknown parameter "version"'],
    [
      'unknown name',
      b({ messages: { $from: 'a' } }),
      'unknown parameter "messages" of os.noop in task b (did you mean "message"?)',
    ],
  ])('for %s', async (_, task, error) => {
    expect(await refusal(control, { tasks: [noop('a', 'x'), noop('c', 'x'), task] })).toBe(error)
  })
})

describe('a task fails without a retry', () => {
  let bounded: Control
  beforeAll(async () => {
    bounded = await startControl({ flags: ['--max-reference-bytes', '100'] })
  })
  afterAll(() => bounded.dispose())

  test.each<[string, object, string]>([
    [
      'a missing path',
      { $from: 'a', path: '/result/none' },
      'params.message: task a has no /result/none, and there is no default',
    ],
    [
      'a star on a text',
      { $from: 'a', path: '/result/message/*' },
      'params.message: /result/message of task a is no array, which "*" in a path crosses: it is a string',
    ],
    [
      'text that is no JSON',
      { ...message, as: 'json' },
      'params.message: /result/message of task a is not JSON: Unexpected identifier "hello"',
    ],
    [
      'too much',
      { $from: 'a', path: '' },
      'params.message: the record of task a has more than 100 bytes as JSON (the limit is --max-reference-bytes)',
    ],
  ])('for %s', async (_, reference, error) => {
    const task = await runAfter(bounded, 'hello', noop('b', reference, { retry: 3 }))
    expect(task).toMatchObject({ status: 'failed', attempt: 1, error, runtime: { error: { code: 'invalid_input' } } })
    expect(task.attempts).toBeUndefined()
  })

  test('for a task that was deleted', async () => {
    using gate = new Gate()
    await using control = await startControl()
    await control.submit([noop('a', 'x'), gate.task('slow'), noop('b', message, { depends_on: ['a', 'slow'] })])
    await control.ended('a')
    expect((await control.fetch('/tasks/a', { method: 'DELETE' })).status).toBe(204)
    gate.open()
    const error = 'task b references a, which was deleted'
    expect(await control.ended('b')).toMatchObject({ status: 'failed', error })
  })
})

describe('what is put in stays data', () => {
  /** Each looks like something that another program would work on. */
  const HOSTILE = [
    '$(touch pwned) `touch pwned` ; touch pwned && touch pwned | touch pwned > pwned',
    '"\'; touch pwned; echo "\'',
    'line one\nline two\r\nX-Injected: yes\r\n\r\n<script>alert(1)</script>',
    '{"$from": "a", "path": ""}',
    `-rf --help ../../../../etc/passwd %2e%2e%2f $${'{HOME}'} $HOME ~ * ?`,
    `{{message}} $${'{message}'} <%= message %> \u001b[31m \u2028 \ud83d\ude00`,
  ]

  test.each(HOSTILE)('in arguments, files, skills, tools and parameters: %j', async (value) => {
    const echoed = await runAfter(control, value, { type: 'shell', params: { command: 'echo', args: ['x', message] } })
    expect(echoed.result).toMatchObject({ stdout: `x ${value}\n` })
    const skill = await runAfter(control, value, { type: 'cli-skills', params: { command: 'cat', stdin: message } })
    expect(skill.result).toMatchObject({ output: value })
    const skillArgs = await runAfter(control, value, {
      type: 'cli-skills',
      params: { command: 'echo', args: ['x', message] },
    })
    expect(skillArgs.result).toMatchObject({ output: `x ${value}\n` })
    const tool = await runAfter(control, value, { type: 'mcp', tool_name: 'echo', input: { text: message } })
    expect(tool.result).toEqual({ tool_name: 'echo', echo: { text: value } })
    const write = { type: 'file', params: { action: 'write', path: 'content.txt', content: message } }
    expect((await runAfter(control, value, write)).status).toBe('success')
    expect(readFileSync(join(control.cwd, 'content.txt'), 'utf8')).toBe(value)
    const again = await runAfter(control, value, noop('b', { nested: [message] }))
    expect(again.resolved_input).toEqual({ message: { nested: [value] } })
    expect(existsSync(join(control.cwd, 'pwned'))).toBe(false)
  })

  test('in headers, addresses and bodies of requests', async () => {
    const seen: { url: string; headers: Record<string, string>; body: string }[] = []
    await using server = Bun.serve({
      ...{ port: 0, hostname: '127.0.0.1' },
      fetch: async (request) => {
        seen.push({ url: request.url, headers: Object.fromEntries(request.headers), body: await request.text() })
        return new Response('ok')
      },
    })
    const params = { url: server.url.href, method: 'POST', body: message }
    for (const value of HOSTILE) {
      const task = await runAfter(control, value, { type: 'http', params })
      expect([task.status, seen.at(-1)?.body]).toEqual(['success', value])
    }
    const count = seen.length
    const split = 'a\r\nX-Injected: yes'
    const inHeader = await runAfter(control, split, {
      type: 'http',
      params: { ...params, headers: { 'X-A': message } },
    })
    expect(inHeader.status).toBe('failed')
    expect(seen.length).toBe(count)
    const inUrl = await runAfter(control, `${server.url.href}?a=b\r\nX-Injected: yes`, {
      type: 'http',
      params: { url: message },
    })
    expect(seen.slice(count).every(({ headers }) => headers['x-injected'] === undefined)).toBe(true)
    expect(['success', 'failed']).toContain(inUrl.status)
  })

  test('in paths, which cannot leave the file root', async () => {
    using dir = tempDir()
    await using control = await startControl({ flags: ['--file-root', dir.path] })
    for (const path of ['../outside.txt', '/etc/passwd', 'a/../../outside.txt']) {
      const task = await runAfter(control, path, {
        type: 'file',
        params: { action: 'write', path: message, content: 'x' },
      })
      expect(task).toMatchObject({ status: 'failed', error: expect.stringContaining('path escapes the file root') })
    }
  })

  test('in the parameters of runtime tasks, which get the values and keep no secret of them', async () => {
    await using pair = await startPair()
    const { control } = pair
    for (const value of HOSTILE) {
      const params = {
        program: '/bin/sh',
        args: ['-c', 'printf "%s|%s" "$1" "$VALUE"', 'sh', message],
        env: { VALUE: message },
      }
      const task = await runAfter(control, value, { type: 'runtime.command', params })
      expect(task).toMatchObject({ status: 'success', result: { stdout: `${value}|${value}` } })
      expect(task.params).toEqual({ ...params, env: { VALUE: '***' } })
      expect(task.resolved_input).toEqual({
        ...params,
        args: [...params.args.slice(0, -1), value],
        env: { VALUE: '***' },
      })
    }
    const env = { TOKEN: 'hunter2-0f6e1c' }
    for (const path of ['/params/env/TOKEN', '/input/env/TOKEN', '/params/env']) {
      const tasks = [
        { id: 'a', type: 'runtime.script', params: { script: 'true', env } },
        noop('b', { $from: 'a', path }, { depends_on: ['a'] }),
      ]
      await control.submit(tasks)
      const task = await control.ended('b')
      expect(JSON.stringify(await control.list())).not.toContain(env.TOKEN)
      expect(task.error).toBe(`params.message: ${path} of task a holds a hidden value of env`)
    }
  })
})

test('values of env below a placeholder for all parameters are in no answer, and are handed to no task', async () => {
  await using control = await startControl({ flags: ['--runtime-url', 'http://127.0.0.1:1'] })
  const secret = 'hunter2-0f6e1c'
  const fields = { command: 'echo', env: { TOKEN: secret } }
  const execution = { program: 'echo', env: { TOKEN: secret } }
  const instead = (value: unknown) => ({ $from: 'a', path: '/none', default: value })
  const inputs = [
    { type: 'shell', params: { $literal: fields }, path: '/params/$literal/env/TOKEN' },
    { type: 'shell', params: instead(fields), path: '/params/default/env/TOKEN' },
    { type: 'cli-skills', params: instead(fields), path: '/resolved_input/env/TOKEN' },
    {
      type: 'runtime.command',
      params: { execution: { $literal: execution } },
      path: '/params/execution/$literal/env/TOKEN',
    },
    { type: 'runtime.command', params: { execution: instead(execution) }, path: '/input/execution/default/env/TOKEN' },
  ]
  await using mcp = await connectClient(control.url)
  for (const { path, ...task } of inputs) {
    const tasks = [
      noop('a', 'x'),
      { id: 'b', depends_on: ['a'], ...task },
      noop('c', { $from: 'b', path }, { depends_on: ['b'], run_if: 'always' }),
    ]
    const response = await control.post({ tasks })
    expect(response.status).toBe(202)
    const answer = (await response.json()) as { graph_id: string }
    expect((await control.ended('c')).error).toBe(`params.message: ${path} of task b holds a hidden value of env`)
    const shown = [
      await (await control.fetch('/tasks/b')).text(),
      await (await control.fetch(`/tasks?graph_id=${answer.graph_id}`)).text(),
      (await mcp.call('get_task', { task_id: 'b', detail: true })).text,
    ]
    for (const text of shown) {
      expect(text).toContain('***')
      expect(text).not.toContain(secret)
    }
    await control.allEnded()
  }
})

test('a reference to a hidden value, or to what holds one, is refused before its form, default and test', async () => {
  await using control = await startControl({})
  const a = (params: object) => ({ id: 'a', type: 'shell', params: { command: 'echo', ...params } })
  const after = { depends_on: ['a'], run_if: 'always' }
  const reads: [string, object][] = [
    '',
    '/params',
    '/params/env',
    '/input/env/T',
    '/params/env/T',
    '/*',
    '/params/*/T',
  ].flatMap((path) =>
    [{}, { as: 'text' }, { as: 'json' }, { as: 'lines' }, { default: 1 }].map((more): [string, object] => [path, more]),
  )
  const tasks = reads.flatMap(([path, more], i) => {
    const reference = { $from: 'a', path, ...more }
    return [
      noop(`given-${i}`, reference, after),
      noop(`equal-${i}`, 'x', { ...after, when: { ...reference, equals: path.endsWith('T') ? '***' : { T: '***' } } }),
      noop(`other-${i}`, 'x', { ...after, when: { ...reference, not: 'x' } }),
    ]
  })
  await control.submit([a({ env: { T: 'hunter2-0f6e1c' } }), ...tasks])
  await control.allEnded()
  for (let i = 0; i < reads.length; i++) {
    const error = `${reads[i]![0] || 'the record'} of task a holds a hidden value of env`
    expect((await control.get(`given-${i}`)).error).toBe(`params.message: ${error}`)
    for (const id of [`equal-${i}`, `other-${i}`]) {
      expect(await control.get(id)).toMatchObject({ status: 'failed', error: `when: ${error}` })
    }
  }
  // What is shown as it is can be referenced, beside a hidden value too.
  for (const [params, path, value] of [
    [{ env: { T: 'x' }, args: ['***'] }, '/params/args', ['***']],
    [{ env: {} }, '/params', { command: 'echo', env: {} }],
    [{ env: null }, '/params/env', null],
    [{ env: { T: 'x' } }, '/params/env/none', 'the default'],
  ] as const) {
    await control.submit([a(params), noop('b', { $from: 'a', path, default: 'the default' }, after)])
    expect((await control.ended('b')).resolved_input).toEqual({ message: value })
    await control.allEnded()
  }
})

test('a runtime task that goes on over a restart is followed, with the value of its first attempt', async () => {
  await using pair = await startPair()
  const go = pair.file('go')
  const script = `echo "$VALUE" >> ${pair.file('values')}; until test -e ${go}; do sleep 0.1; done`
  await pair.control.submit([
    noop('a', 'the value'),
    { id: 'b', type: 'runtime.script', depends_on: ['a'], params: { script, env: { VALUE: message } } },
  ])
  await until(() => pair.lines('values').length, 1)
  expect((await pair.control.fetch('/tasks/a', { method: 'DELETE' })).status).toBe(204)
  await pair.stopControl('SIGKILL')
  await pair.startControl()
  writeFileSync(go, '')
  const task = await pair.control.ended('b')
  expect(task).toMatchObject({ status: 'success', attempt: 1 })
  expect(pair.lines('values')).toEqual(['the value'])
})
