/** The JSON Schema of a graph file accepts our examples, and finds the mistakes that people make. */
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Ajv } from '@modelcontextprotocol/server/validators/ajv'
import { LEGACY_OS_TYPES } from '../../control/rules/normalize.ts'
import graphSchema from '../../shared/contract/graph-schema.json'
import { runClient } from '../support/client.ts'
import { startControl } from '../support/control.ts'

const EXAMPLES = join(dirname(dirname(import.meta.dir)), 'examples')
const files = readdirSync(EXAMPLES).filter((name) => name.endsWith('.json'))
const isGraph = new Ajv({ strict: false, validateFormats: false }).compile(graphSchema)
const task = (more: object) => ({ tasks: [{ id: 'a', ...more }] })

test.each(files)('the example %s is a graph', (name) => {
  isGraph(JSON.parse(readFileSync(join(EXAMPLES, name), 'utf8')))
  expect(isGraph.errors ?? []).toEqual([])
})

test('a file may have a schedule, which is no part of the graph', () => {
  const file = (schedule: object) => isGraph({ ...task({ type: 'noop' }), schedule })
  expect(file({ name: 'n', cron: '0 3 * * *', keep: 3 })).toBe(true)
  expect(file({ chron: '0 3 * * *' })).toBe(false)
})

const RIGHT = {
  'a short form': task({ type: 'sleep', params: { duration_ms: 1 } }),
  'a tool with its category': task({ type: 'os', tool_name: 'sleep', input: { duration_ms: 1 } }),
  'a type of a custom executor': task({ type: 'checksum', params: { anything: 1 } }),
  'an MCP tool': task({ type: 'mcp', tool_name: 'server/tool', params: { anything: 1 } }),
  'a whole runtime request': task({ type: 'runtime.command', params: { execution: { program: 'make' } } }),
  'names of the author': { ...task({ type: 'noop', 'x-a': 1, metadata: {} }), x_b: 2 },
  'the address of the schema': { $schema: './graph-schema.json', ...task({ type: 'noop' }) },
  'placeholders in parameters': {
    params: { tool: 'ls' },
    scope: 'graph',
    tasks: [
      { id: 'source', type: 'noop' },
      {
        ...{ id: 'a', type: 'shell', depends_on: ['source'] },
        params: { command: { $param: 'tool' }, args: ['-n', { $from: 'source', path: '/result/ok', as: 'text' }] },
      },
    ],
  },
  'placeholders for lists, maps and all parameters': {
    tasks: [
      { id: 'source', type: 'noop' },
      ...[
        { id: 'a', type: 'shell', params: { command: 'ls', args: { $from: 'source', as: 'lines' } } },
        { id: 'b', type: 'runtime.script', params: { script: 'a', env: { A: { $from: 'source', default: null } } } },
        { id: 'c', type: 'http', params: { $from: 'source' } },
        { id: 'd', type: 'file', params: { action: 'write', path: 'a', content: { $literal: 'x' } } },
      ].map((each) => ({ ...each, depends_on: ['source'] })),
    ],
    scope: 'graph',
  },
  'the element of a list and its index, as values': task({
    ...{ type: 'shell', for_each: ['a'] },
    params: { command: 'ls', args: [{ $item: '' }, { $index: true, as: 'text' }], stdin: { $item: '' } },
  }),
  'files of an element, and contents': {
    tasks: [
      { id: 'b', type: 'noop' },
      { id: 'build', type: 'runtime.command', depends_on: ['b'], params: { program: 'make' } },
      {
        ...{ id: 'a', type: 'runtime.command', depends_on: ['build'], for_each: ['x'] },
        params: {
          ...{ program: 'cat', stdin: { $from: 'b' } },
          inputs: { a: { $from: 'build', file: { $item: '' } }, c: { content: { list: [{ $index: true }] } } },
        },
      },
    ],
    scope: 'graph',
  },
  'groups, with and without a list': {
    tasks: [
      {
        id: 'a',
        for_each: ['x'],
        max_parallel: 2,
        tasks: [{ id: 'b', type: 'shell', params: { command: { $item: '' } } }],
      },
      { id: 'c', tasks: [{ id: 'b', type: 'noop', run_if: 'always' }] },
    ],
    scope: 'graph',
  },
  'parameters of the graph': { params: { version: 1, 'a.b/c-d': [1] }, ...task({ type: 'noop' }) },
  'a name and labels': { name: 'nightly', labels: { team: 'web' }, ...task({ type: 'noop' }) },
}

const WRONG = {
  'no tasks': { tasks: [] },
  'a misspelt field': task({ type: 'noop', depend_on: ['b'] }),
  'a misspelt parameter of a short form': task({ type: 'sleep', params: { duration: 1 } }),
  'a misspelt parameter of a tool with its category': task({ type: 'os', tool_name: 'sleep', params: { duration: 1 } }),
  'a misspelt field inside a parameter': task({
    type: 'runtime.script',
    params: { script: 'date', sandbox: { profil: 'process' } },
  }),
  'a parameter of a wrong type': task({ type: 'shell', params: { command: 'ls', args: '-l' } }),
  'a missing parameter': task({ type: 'http', params: {} }),
  'a reference with a misspelt field': task({ type: 'shell', params: { command: { $from: 'b', pth: '/result' } } }),
  'a task without a type': task({}),
  'a group in a group': task({ tasks: [{ id: 'b', tasks: [{ id: 'c', type: 'noop' }] }] }),
  'a misspelt parameter in a group': task({ tasks: [{ id: 'b', type: 'sleep', params: { duration: 1 } }] }),
  'an unknown field of the graph': { ...task({ type: 'noop' }), rank: 1 },
}

test.each(Object.entries(RIGHT))('accepts %s', (_, graph) => {
  isGraph(graph)
  expect(isGraph.errors ?? []).toEqual([])
})

test.each(Object.entries(WRONG))('refuses %s', (_, graph) => {
  expect(isGraph(graph)).toBe(false)
})

test('knows every short form', () => {
  const [{ enum: types }] = graphSchema.definitions.task.properties.type.anyOf as [{ enum: string[] }]
  expect([...LEGACY_OS_TYPES].filter((type) => !types.includes(type))).toEqual([])
})

test('the service accepts what the schema accepts, except for types that it does not have', async () => {
  await using control = await startControl()
  for (const [name, graph] of Object.entries(RIGHT)) {
    const response = await control.post(JSON.stringify(graph).replaceAll('"a"', JSON.stringify(name)))
    if (name === 'a type of a custom executor') expect(await response.text()).toContain('unknown task type')
    else expect([name, response.status]).toEqual([name, 202])
  }
})

describe('taskmill schema', () => {
  test('prints it, and nothing else, on one line', async () => {
    const { exitCode, stdout, stderr } = await runClient(['schema'])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toBe(`${JSON.stringify(graphSchema)}\n`)
  })

  test('takes no arguments', async () => {
    const { exitCode, envelope } = await runClient(['schema', 'graph'])
    expect(exitCode).toBe(2)
    expect(envelope.error?.message).toContain('unexpected argument "graph"')
  })
})
