/**
 * What a token with a tenant and without the right `host` gets of the machine, against the built services: every door to work is
 * tried with a process that would leave a file. Source: docs/security.md.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { freePort } from '../support/free-port.ts'
import { oddServer } from '../support/mcp.ts'
import { connectClient } from '../support/mcp-client.ts'
import { Pair } from '../support/pair.ts'
import { type Tokens, tokensFile } from '../support/tokens.ts'
import { until } from '../support/until.ts'

const rights = ['read', 'submit', 'cancel', 'answer'] as const
const ALL = {
  fenced: { rights, tenant: 'acme' },
  trusted: { rights: [...rights, 'host'], tenant: 'acme' },
} as const

let tokens: Tokens
let pair: Pair

/** No task of this name runs, so no file of it is there. */
let trace: string

beforeAll(async () => {
  tokens = tokensFile(ALL)
  const options = { controlEnv: { SERVICE_TOKEN: 'sesame', SERVICE_SHELL_POLICY: 'open' } }
  const config = `${tokens.path}.mcp`
  writeFileSync(config, JSON.stringify({ mcpServers: { files: oddServer() } }))
  pair = new Pair(await freePort(), {
    ...options,
    controlFlags: ['--tokens-file', tokens.path, '--mcp-config', config],
  })
  trace = pair.file('trace')
  await pair.startRuntime()
  await pair.startControl()
})
afterAll(async () => {
  await pair[Symbol.asyncDispose]()
  tokens[Symbol.dispose]()
})

async function post(name: string, path: string, body?: unknown, method = 'POST') {
  const answer = await pair.control.fetch(path, {
    ...{ method, headers: tokens.as(name) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it as they expect it
  return { status: answer.status, body: (await answer.json()) as any }
}

async function ended(graph: string, id: string): Promise<TaskRecord> {
  const path = `/graphs/${graph}/tasks/${id}`
  const look = async () => (await pair.control.fetch(path, { headers: tokens.as('trusted') })).json()
  return until(look as () => Promise<TaskRecord>, ({ finished_at }) => finished_at !== undefined)
}

const STRICT = { sandbox: { profile: 'linux_sandbox' }, policy: { capability_mode: 'strict' } }
const shell = (id = 'x') => ({ id, type: 'shell', params: { command: 'touch', args: [trace] } })
const script = (id: string, text: string, more: object = STRICT) => ({
  ...{ id, type: 'runtime.script' },
  params: { script: text, ...more },
})
const onHost = (id = 'x') => script(id, `touch ${trace}`, {})
const lacking = (id: string, field: string) => `task ${id}: the token fenced lacks the right host: ${field}: `

test('a strict sandbox may be had, and has no network unless it asks for one', async () => {
  const { status, body } = await post('fenced', '/tasks', { tasks: [script('in', 'cut -d: -f1 /proc/net/dev')] })
  expect([status, body.error]).toEqual([202, undefined])
  const { status: end, result } = await ended(body.graph_id, 'in')
  expect([end, (result as { stdout: string }).stdout.match(/^ *\w+$/gm)]).toEqual(['success', ['    lo']])
})

test.each<[what: string, graph: () => object, id: string, field: string]>([
  ['a task', () => ({ tasks: [shell()] }), 'x', 'type'],
  ['a task of a runtime service', () => ({ tasks: [onHost()] }), 'x', 'params.sandbox.profile'],
  [
    'a member of a group',
    () => ({ tasks: [{ id: 'g', tasks: [onHost(), shell('y')] }] }),
    'g/x',
    'params.sandbox.profile',
  ],
  ['children', () => ({ tasks: [{ ...onHost(), for_each: [{}, {}] }] }), 'x', 'params.sandbox.profile'],
  [
    'the network of the machine, from a list',
    () => ({
      tasks: [
        {
          ...script('x', 'id', { ...STRICT, sandbox: { profile: 'linux_sandbox', network: { $item: '' } } }),
          for_each: ['host'],
        },
      ],
    }),
    'x',
    'params.sandbox',
  ],
  [
    'params of another task',
    () => ({
      tasks: [script('a', 'id'), { id: 'x', type: 'runtime.script', depends_on: ['a'], params: { $from: 'a' } }],
    }),
    'x',
    'params',
  ],
  [
    'a parameter of the graph',
    () => ({
      params: { p: 'process' },
      tasks: [script('x', 'id', { ...STRICT, sandbox: { profile: { $param: 'p' } } })],
    }),
    'x',
    'params.sandbox',
  ],
  [
    'a command at the end',
    () => ({
      scope: 'graph',
      tasks: [{ id: 'a', type: 'noop' }],
      on_end: [{ command: { command: 'touch', args: [trace] } }],
    }),
    'on_end/0',
    'type',
  ],
  [
    'a file of the service',
    () => ({ tasks: [{ id: 'x', type: 'http', params: { url: pair.control.url, save_to: trace } }] }),
    'x',
    'params.save_to',
  ],
  [
    'an MCP server that is a command',
    () => ({ tasks: [{ id: 'x', type: 'mcp', tool_name: 'files/say', params: {} }] }),
    'x',
    'tool_name',
  ],
])('not as %s: 403, and an error of a dry run', async (_, graph, id, field) => {
  const start = expect.stringContaining(lacking(id, field))
  const refused = await post('fenced', '/tasks', graph())
  expect([refused.status, refused.body.error]).toEqual([403, start])
  const { body } = await post('fenced', '/tasks?dry_run=true', graph())
  expect([body.valid, body.errors]).toEqual([false, expect.arrayContaining([{ task_id: id, message: start }])])
  expect((await post('trusted', '/tasks?dry_run=true', graph())).body.errors).not.toContainEqual(
    expect.objectContaining({ message: expect.stringContaining('lacks the right') }),
  )
})

test('not by an action, a tool call, or a tool of the MCP server', async () => {
  const action = { action: { kind: 'os.shell', input: { command: 'touch', args: [trace] } } }
  for (const path of ['/adapters/actions', '/adapters/translate']) {
    const { status, body } = await post('fenced', path, action)
    expect([path, status, body.error]).toEqual([
      path,
      403,
      expect.stringContaining('lacks the right host: type: os.shell'),
    ])
  }
  expect((await post('trusted', '/adapters/translate', action)).status).toBe(200)
  const call = await post('fenced', '/mcp/call', { tool_name: 'files/say', input: {} })
  expect([call.status, call.body.error]).toEqual([403, expect.stringContaining('files is a command')])
  await using mcp = await connectClient(pair.control.url, 'auto', tokens.as('fenced'))
  const asked = [
    await mcp.call('submit_graph', { tasks: [shell()] }),
    await mcp.call('run_action', { kind: 'os.shell', input: { command: 'touch', args: [trace] } }),
  ]
  for (const { isError, text } of asked)
    expect([isError, text]).toEqual([true, expect.stringContaining('lacks the right host: type: os.shell')])
})

test('lists no tools of MCP servers that are commands, and starts none', async () => {
  const namesFor = async (name: string) => {
    const answer = await pair.control.fetch('/mcp/tools', { headers: tokens.as(name) })
    const { tools } = (await answer.json()) as { tools: { name: string }[] }
    return [...new Set(tools.map((tool) => tool.name.split('/')[0]))]
  }
  expect(await namesFor('fenced')).toEqual(['builtin'])
  expect(await namesFor('trusted')).toEqual(['builtin', 'files'])
})

test('not by a patch, nor by running again what a trusted token has submitted', async () => {
  const held = { id: 'held', type: 'wait' }
  const own = (await post('fenced', '/tasks', { tasks: [held, { id: 'a', type: 'noop', depends_on: ['held'] }] })).body
  const patches = { add: [shell()], replace: [{ ...shell('a'), depends_on: ['held'] }] }
  for (const [verb, tasks] of Object.entries(patches))
    for (const query of ['', '?dry_run=true']) {
      const { status, body } = await post('fenced', `/graphs/${own.graph_id}${query}`, { [verb]: tasks }, 'PATCH')
      expect([verb, query, status, body.error]).toEqual([
        verb,
        query,
        403,
        expect.stringContaining('lacks the right host'),
      ])
    }
  await post('fenced', `/graphs/${own.graph_id}/cancel`)
  const failing = { tasks: [{ ...shell(), params: { command: 'touch', args: ['/nowhere/x'] } }] }
  const { graph_id } = (await post('trusted', '/tasks', failing)).body
  expect((await ended(graph_id, 'x')).status).toBe('failed')
  for (const path of ['retry', 'tasks/x/retry', 'rerun']) {
    const { status, body } = await post('fenced', `/graphs/${graph_id}/${path}`)
    expect([path, status, body.error]).toEqual([path, 403, expect.stringContaining(lacking('x', 'type'))])
  }
})

test('not by tasks that a task adds, whose token lacks the right or has lost its tenant', async () => {
  const adding = (task: object) => ({
    ...script('d', `echo '${JSON.stringify({ add_tasks: [task] })}'`),
    dynamic: true,
  })
  const of = async (task: object) => {
    const { graph_id } = (await post('fenced', '/tasks', { tasks: [adding(task)] })).body
    return (await ended(graph_id, 'd')).error
  }
  expect(await of(shell())).toContain('lacks the right host: type: os.shell')
  expect(await of(onHost())).toContain('lacks the right host: params.sandbox.profile')
  expect(await of(script('y', 'true'))).toBeUndefined()
  const { graph_id } = (
    await post('fenced', '/tasks', {
      tasks: [
        { id: 'h', type: 'wait' },
        { ...adding(shell()), depends_on: ['h'] },
      ],
    })
  ).body
  tokens.put({ ...ALL, fenced: { rights } })
  await until(async () => (await post('fenced', '/tasks?dry_run=true', { tasks: [shell('q')] })).body.valid === true)
  expect((await post('trusted', `/graphs/${graph_id}/tasks/h/signal`)).status).toBe(200)
  expect((await ended(graph_id, 'd')).error).toContain('the token fenced, whose task this is, has another tenant now')
  tokens.put(ALL)
})

test('none of them has left a file', () => {
  expect(existsSync(trace)).toBe(false)
})
