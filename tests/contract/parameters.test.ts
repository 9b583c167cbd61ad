/** Goal: tasks get the parameters of their graph, also after a restart, and no graph runs without one that it needs. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { ErrorResponse } from '../../shared/contract/control.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { type Control, startControl } from '../support/control.ts'
import { connectClient } from '../support/mcp-client.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const echo = (id: string, input: unknown, more: object = {}) => ({ id, type: 'mcp', tool_name: 'echo', input, ...more })

test('a task gets the values of parameters, which are not searched for placeholders', async () => {
  await using control = await startControl()
  const params = { version: '1.2.3', list: [1, { $param: 'version' }], zero: 0 }
  const input = { a: { $param: 'list' }, b: [{ $param: 'zero' }], c: { $literal: { $param: 'x' } }, d: 'plain' }
  const response = await control.post({ params, tasks: [echo('a', input), echo('whole', { $param: 'list' })] })
  expect(response.status).toBe(202)
  const task = await control.ended('a')
  const resolved = { a: params.list, b: [0], c: { $param: 'x' }, d: 'plain' }
  expect(task).toMatchObject({ status: 'success', result: { echo: resolved } })
  expect([task.resolved_input, task.input]).toEqual([resolved, input])
  expect(await control.ended('whole')).toMatchObject({ status: 'success', resolved_input: params.list })
})

describe('a graph is refused', () => {
  let control: Control
  beforeAll(async () => {
    control = await startControl()
  })
  afterAll(() => control.dispose())

  test.each<[string, object, string]>([
    ['without a value', { params: { a: 1, version: null }, tasks: [echo('a', {})] }, 'graph needs parameter version'],
    [
      'with a parameter that is not declared',
      { params: { version: 1 }, tasks: [echo('a', { b: { $param: 'versoin' } })] },
      'task a uses unknown parameter "versoin" (did you mean "version"?)',
    ],
    [
      'with something beside the name',
      { params: { a: 1 }, tasks: [echo('a', { b: [{ $param: 'a', default: 1 }] })] },
      'task a: input.b[0]: unknown field "default" beside "$param"',
    ],
    [
      'with parameters that are no object',
      { params: [], tasks: [echo('a', {})] },
      'invalid JSON: params: expected object of parameters',
    ],
    [
      'with a name that is no name of a parameter',
      { params: { 'a b': 1 }, tasks: [echo('a', {})] },
      'invalid JSON: params: expected names of 1 to 63 letters, digits, ".", "_", "/" or "-", got "a b"',
    ],
  ])('%s', async (_, graph, error) => {
    const response = await control.post(graph)
    expect([response.status, ((await response.json()) as ErrorResponse).error]).toEqual([400, error])
    expect(await control.list()).toEqual([])
  })

  test('in a tool of an agent, too', async () => {
    await using mcp = await connectClient(control.url)
    const { isError, text } = await mcp.call('submit_graph', { params: { version: null }, tasks: [echo('a', {})] })
    expect([isError, text]).toEqual([true, 'graph needs parameter version'])
  })
})

test('what is certain to fail is told with the values of the parameters', async () => {
  await using control = await startControl()
  const shell = (id: string, params: object) => ({ id, type: 'shell', params })
  const response = await control.post({
    params: { tool: 'git', count: 7 },
    tasks: [
      shell('a', { command: { $param: 'tool' } }),
      shell('b', { command: 'ls', args: [{ $param: 'count' }] }),
      shell('c', { command: { $literal: 'ls' }, args: [{ $param: 'tool' }] }),
    ],
  })
  const { warnings } = (await response.json()) as SubmitResponse
  expect(warnings?.map(({ task_id, message }) => [task_id, message.slice(0, 40)])).toEqual([
    ['a', 'command "git" is not in the allowed whit'],
    ['b', 'parse shell params: args: expected array'],
  ])
})

test('parameters survive a kill and a stop of the service', async () => {
  using dir = tempDir()
  const gate = join(dir.path, 'gate')
  const options = { dataDir: join(dir.path, 'data'), env: { SERVICE_SHELL_POLICY: 'open' } }
  const script = `until test -e ${gate}; do sleep 0.1; done`
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    await using control = await startControl({ ...options, flags: ['--shutdown-timeout', '0s'] })
    if (signal === 'SIGKILL') {
      const wait = { id: 'wait', type: 'shell', params: { script } }
      const after = echo('after', { word: { $param: 'word' } }, { depends_on: ['wait'] })
      expect((await control.post({ params: { word: 'hello' }, tasks: [wait, after] })).status).toBe(202)
    }
    await control.reached('wait', 'running')
    await control.stop(signal)
  }
  await Bun.write(gate, '')
  await using control = await startControl(options)
  const task = await until(
    () => control.get('after'),
    ({ finished_at }) => finished_at !== undefined,
  )
  expect(task).toMatchObject({ status: 'success', result: { echo: { word: 'hello' } } })
})
