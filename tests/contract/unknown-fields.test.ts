/** Unknown fields and parameters of the control service, and the warnings of a submission. Source: contract 5, "Unknown fields". */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { MAX_SUBMIT_WARNINGS, type SubmitResponse } from '../../shared/contract/submission.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { tempDir } from '../support/temp.ts'

const OLD_FILES = join(import.meta.dir, '../data/unknown-fields')

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

/** Status and body of a POST. */
async function posted(
  path: string,
  body: unknown,
  service = control,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await service.fetch(path, { method: 'POST', body: JSON.stringify(body) })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

const noop = (id: string, more: object = {}) => ({ id, type: 'noop', ...more })
const refusal = (error: string) => ({ status: 400, body: { error } })

describe('an unknown field of a graph is refused', () => {
  test.each<[object, string]>([
    [
      { tasks: [noop('m1'), noop('m2', { depend_on: ['m1'] })] },
      'unknown field "depend_on" in task m2 (did you mean "depends_on"?)',
    ],
    [{ tasks: [noop('a', { retries: 3 })] }, 'unknown field "retries" in task a (did you mean "retry"?)'],
    [{ tasks: [noop('a', { timeout_ms: 3 })] }, 'unknown field "timeout_ms" in task a (did you mean "timeout"?)'],
    [
      { tasks: [noop('a', { dependencies: [] })] },
      'unknown field "dependencies" in task a (did you mean "depends_on"?)',
    ],
    [{ tasks: [noop('a', { message: 'x' })] }, 'unknown field "message" in task a (did you mean "params.message"?)'],
    [{ tasks: [noop('a', { colour: 'red' })] }, 'unknown field "colour" in task a'],
    [{ tasks: [noop('a', { colour: null })] }, 'unknown field "colour" in task a'],
    [{ tasks: [noop('a')], taks: [] }, 'unknown field "taks" in graph (did you mean "tasks"?)'],
    [{ tasks: [noop('a')], parameters: {} }, 'unknown field "parameters" in graph (did you mean "params"?)'],
    [{ tasks: [noop('a')], rank: 1 }, 'unknown field "rank" in graph'],
    [
      { tasks: [{ id: 'build', type: 'runtime.command', params: { program: 'true' }, limits: { pids_max: 1 } }] },
      'unknown field "limits" in task build (did you mean "params.limits"?)',
    ],
  ])('%j', async (graph, error) => {
    expect(await posted('/tasks', graph)).toEqual(refusal(error))
  })

  test('after the seven checks, and before 409', async () => {
    const unknown = { depend_on: [] }
    const first = async (tasks: object[]) => (await posted('/tasks', { tasks, taks: [] })).body.error as string
    expect(await first([])).toBe('task graph is empty')
    expect(await first([noop('', unknown)])).toBe('task id is required')
    expect(await first([noop('a', unknown), noop('a')])).toBe('duplicate task id: a')
    expect(await first([noop('a', { ...unknown, depends_on: ['b'] })])).toBe('task a depends on unknown task b')
    expect(await first([noop('a', { ...unknown, depends_on: ['a'] })])).toBe('task a cannot depend on itself')
    expect(await first([{ id: 'a', type: 'nonsense', ...unknown }])).toStartWith('unknown task type: nonsense')
    await control.submit([{ id: 'held', type: 'sleep', params: { duration_ms: 600_000 } }])
    expect(await first([noop('held', unknown)])).toBe('unknown field "taks" in graph (did you mean "tasks"?)')
    expect((await posted('/tasks', { tasks: [noop('held', unknown)] })).status).toBe(400)
    expect((await posted('/tasks', { tasks: [noop('held')] })).status).toBe(409)
    await control.fetch('/tasks/held/cancel', { method: 'POST' })
  })

  test('in a large graph too, of which nothing is stored', async () => {
    const tasks = Array.from({ length: 5_000 }, (_, i) => noop(`large-${i}`))
    expect(await posted('/tasks', { tasks: [...tasks, noop('odd', { depend_on: [] })] })).toEqual(
      refusal('unknown field "depend_on" in task odd (did you mean "depends_on"?)'),
    )
    expect((await control.fetch('/tasks/large-0')).status).toBe(404)
  })
})

describe('an unknown parameter of a known tool is refused', () => {
  const runtime = (params: object) => ({
    id: 'build',
    type: 'runtime',
    tool_name: 'command',
    params: { program: 'true', ...params },
  })
  test.each<[object, string]>([
    [
      { id: 'a', type: 'sleep', params: { duration: 1 } },
      'unknown parameter "duration" of os.sleep in task a (did you mean "duration_ms"?)',
    ],
    [
      { id: 'a', type: 'os', tool_name: 'shell', input: { cmd: 'ls' } },
      'unknown parameter "cmd" of os.shell in task a (did you mean "command"?)',
    ],
    [
      { id: 'a', type: 'file', params: { action: 'stat', path: '/', depth: 1 } },
      'unknown parameter "depth" of os.file in task a',
    ],
    [
      { id: 'a', type: 'cli-skills', params: { command: 'ls', arg: [] } },
      'unknown parameter "arg" of cli-skills in task a (did you mean "args"?)',
    ],
    [
      { id: 'a', type: 'mcp', tool_name: 'call', params: { tool: 'echo', args: {} } },
      'unknown parameter "args" of mcp.call in task a (did you mean "arguments"?)',
    ],
    [runtime({ sandbx: {} }), 'unknown parameter "sandbx" of runtime.command in task build (did you mean "sandbox"?)'],
    [
      runtime({ sandbox: { profil: 'linux_sandbox' } }),
      'unknown field "sandbox.profil" in task build (did you mean "sandbox.profile"?)',
    ],
    [
      runtime({ limits: { memory: 1 } }),
      'unknown field "limits.memory" in task build (did you mean "limits.memory_bytes"?)',
    ],
    [
      { id: 'build', type: 'runtime', input: { execution: { kind: 'command', progam: 'true' } } },
      'unknown field "execution.progam" in task build (did you mean "execution.program"?)',
    ],
    [
      runtime({ inputs: { lib: { task_id: 't', file: 'f', fiel: 'g' } } }),
      'unknown field "inputs.lib.fiel" in task build (did you mean "inputs.lib.file"?)',
    ],
    [
      runtime({ inputs: { first: { $from: 'x', file: 'f' }, lib: { task_id: 't', file: 'f', sha_256: 'g' } } }),
      'unknown field "inputs.lib.sha_256" in task build (did you mean "inputs.lib.sha256"?)',
    ],
    [
      runtime({ secrets: { TOKEN: { name: 'a', file: 'b', mode: 3 } } }),
      'unknown field "secrets.TOKEN.mode" in task build',
    ],
    [
      runtime({ placement: { runtim: 'a' } }),
      'unknown field "placement.runtim" in task build (did you mean "placement.runtime"?)',
    ],
  ])('%j', async (task, error) => {
    const source = { id: 'x', type: 'runtime', tool_name: 'command', params: { program: 'true' } }
    const tasks = JSON.stringify(task).includes('$from') ? [source, { ...task, depends_on: ['x'] }] : [task]
    expect(await posted('/tasks', { tasks })).toEqual(refusal(error))
  })

  test('inputs may name the runtime service of their task', async () => {
    const inputs = { lib: { task_id: 't', file: 'f', runtime: 'gpu-1', 'x-note': 1 } }
    const { status, body } = await posted('/tasks?dry_run=true', { tasks: [runtime({ inputs })] })
    expect({ status, body }).toMatchObject({ status: 200, body: { valid: true } })
  })

  test.each<[object, string]>([
    [{ backoff: { initial: 5 } }, 'backoff: unknown field "initial" (did you mean "initial_ms"?)'],
    [{ cache: { key: 'a', ttl: 5 } }, 'cache: unknown field "ttl" (did you mean "ttl_ms"?)'],
    [{ secrets: { T: { name: 'a', file: 'b', mode: 3 } } }, 'secrets: unknown field "T.mode"'],
  ])('of a field with a strict form, which names it: %j', async (more, error) => {
    expect(await posted('/tasks', { tasks: [noop('a', more)] })).toEqual(refusal(`invalid JSON: tasks[0].${error}`))
  })

  test('but not an argument of an MCP tool, nor a name of the caller, nor one in params that input replaces', async () => {
    const echo = { type: 'mcp', tool_name: 'builtin/echo', input: { tool_name: 'a', echo: 'b', more: 1 } }
    expect(await control.run(echo)).toMatchObject({ status: 'success' })
    const own = { type: 'sleep', params: { duration: 1 }, input: { duration_ms: 0, 'x-note': 1 } }
    expect(await control.run(own)).toMatchObject({ status: 'success' })
  })
})

describe('other doors refuse them too', () => {
  const action = (kind: string, input: object) => ({ action: { kind, input } })
  test.each<[object, string]>([
    [
      { action: { kind: 'os.noop', depend_on: [] } },
      'unknown field "action.depend_on" (did you mean "action.depends_on"?)',
    ],
    [action('os.sleep', { duration: 1 }), 'unknown parameter "duration" of os.sleep (did you mean "duration_ms"?)'],
    [
      action('runtime.command', { progam: 'ls' }),
      'unknown parameter "progam" of runtime.command (did you mean "program"?)',
    ],
    [
      action('runtime.command', { program: 'ls', inputs: { lib: { task_id: 't', fiel: 'f' } } }),
      'unknown field "input.inputs.lib.fiel" (did you mean "input.inputs.lib.file"?)',
    ],
    [
      action('runtime.script', { script: 'ls', sandbox: { profil: 'process' } }),
      'unknown field "input.sandbox.profil" (did you mean "input.sandbox.profile"?)',
    ],
    [
      action('task_graph.submit', { tasks: [noop('a', { depend_on: [] })] }),
      'unknown field "depend_on" in task a (did you mean "depends_on"?)',
    ],
    [action('task_graph.submit', { task_graph: { tasks: [noop('a')], x: 1 } }), 'unknown field "x" in graph'],
  ])('actions and translate: %j', async (body, error) => {
    expect(await posted('/adapters/actions', body)).toEqual(refusal(`invalid adapter action: ${error}`))
    expect(await posted('/adapters/translate', body)).toEqual(refusal(`invalid adapter action: ${error}`))
  })

  test('POST /mcp/call', async () => {
    const error = 'unknown field "arguments" (did you mean "input"?)'
    expect(await posted('/mcp/call', { tool_name: 'echo', arguments: {} })).toEqual(refusal(error))
  })

  test('the tools of POST /mcp', async () => {
    const called = async (name: string, args: object) => {
      const request = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
      const response = await control.fetch('/mcp', {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify(request),
      })
      const text = await response.text()
      return JSON.parse(text.slice(text.indexOf('{'))).result
    }
    const tasks = [noop('m2', { depend_on: ['m1'] })]
    expect(await called('submit_graph', { tasks })).toMatchObject({
      isError: true,
      content: [{ text: 'unknown field "depend_on" in task m2 (did you mean "depends_on"?)' }],
    })
    expect(await called('list_tasks', { stats: 'failed' })).toMatchObject({
      isError: true,
      content: [{ text: 'invalid input: unknown field "stats" (did you mean "status"?)' }],
    })
    const warned = await called('submit_graph', {
      tasks: [{ id: 'denied', type: 'shell', params: { command: 'git' } }],
    })
    expect(warned.structuredContent.warnings).toEqual([
      { task_id: 'denied', message: (await control.ended('denied')).error },
    ])
    const acted = await called('run_action', { kind: 'os.shell', input: { command: 'git' } })
    expect(acted.structuredContent.warnings).toHaveLength(1)
  })
})

test('--unknown-fields ignore lets all of them pass', async () => {
  await using service = await startControl({ flags: ['--unknown-fields', 'ignore'] })
  const task = { id: 'a', type: 'sleep', params: { duration: 60_000 }, depend_on: ['b'] }
  expect(await posted('/tasks', { tasks: [task], x: 1 }, service)).toMatchObject({ status: 202 })
  expect(await service.ended('a')).toMatchObject({ status: 'success', result: { slept_ms: 0 } })
  const action = { acton: 1, action: { kind: 'os.sleep', input: { duration: 60_000 }, depend_on: [] } }
  expect(await posted('/adapters/actions', action, service)).toMatchObject({ status: 202 })
  expect(await posted('/mcp/call', { tool_name: 'echo', arguments: {} }, service)).toMatchObject({ status: 202 })
})

test.each(['journal-0000000001.log', 'state.json'])(
  'what an earlier version accepted loads and runs: %s',
  async (file) => {
    using temp = tempDir()
    const dataDir = join(temp.path, 'data')
    mkdirSync(dataDir)
    copyFileSync(join(OLD_FILES, file), join(dataDir, file))
    await using service = await startControl({ dataDir })
    expect(await service.ended('sloppy')).toMatchObject({ status: 'success', result: { message: 'still here' } })
    expect(await service.reached('hold', 'running')).toMatchObject({ input: { duration_ms: 600_000 } })
  },
)

test.each([
  ['bash', 'shell'],
  ['command', 'runtime.command'],
  ['htpp', 'http'],
  ['nonsense', undefined],
])('an unknown type %s is refused with the types there are', async (type, nearest) => {
  const hint = nearest === undefined ? '' : ` (did you mean "${nearest}"?)`
  expect(await posted('/tasks', { tasks: [{ id: 'a', type }] })).toEqual(
    refusal(
      `unknown task type: ${type} (available: approval, cli-skills, mcp, os, runtime, wait) or a short form: dns, file, http, noop, shell, sleep, tcp${hint}`,
    ),
  )
})

describe('a task that is certain to fail', () => {
  const TASKS: object[] = [
    { id: 'w-missing', type: 'http', params: {} },
    { id: 'w-absent', type: 'shell' },
    { id: 'w-type', type: 'sleep', params: { duration_ms: 'long' } },
    { id: 'w-range', type: 'tcp', params: { address: 'nowhere' } },
    { id: 'w-url', type: 'http', params: { url: 'ftp://a' } },
    { id: 'w-action', type: 'file', params: { path: 'a', action: 'move' } },
    { id: 'w-list', type: 'noop', params: [] },
    { id: 'w-tool', type: 'os', tool_name: 'bash' },
    { id: 'w-leaves', type: 'file', params: { path: '../a', action: 'read' } },
    { id: 'w-saved', type: 'http', params: { url: 'http://127.0.0.1:1/', save_to: '../a' } },
    { id: 'w-nul', type: 'shell', params: { command: 'echo', args: ['a\0b'] } },
    { id: 'w-half', type: 'shell', params: { command: 'echo', args: ['\ud800'] } },
    { id: 'w-nul-skill', type: 'cli-skills', params: { command: 'cat', dir: '\0' } },
    { id: 'w-nul-path', type: 'file', params: { path: 'a\0b', action: 'read' } },
    { id: 'w-mcp', type: 'mcp', tool_name: 'call', params: {} },
    { id: 'w-server', type: 'mcp', tool_name: 'discover', params: { server: 'files' } },
    { id: 'w-skill', type: 'cli-skills', tool_name: 'deploy' },
    { id: 'w-cli', type: 'cli-skills', params: { command: 'git' } },
    { id: 'w-both', type: 'runtime', params: { program: 'ls', execution: {} } },
    { id: 'w-git', type: 'shell', params: { command: '/usr/bin/git' } },
    { id: 'w-line', type: 'shell', params: { command: 'echo hello' } },
    { id: 'w-long', type: 'shell', params: { command: 'git status' } },
    { id: 'w-script', type: 'shell', params: { script: 'ls | wc' } },
  ]

  test('is accepted, and the answer warns with the error that it gets', async () => {
    const { status, body } = await posted('/tasks', { tasks: [noop('fine'), ...TASKS] })
    expect(status).toBe(202)
    const { warnings } = body as unknown as SubmitResponse
    expect(warnings!.map(({ task_id }) => task_id)).toEqual(TASKS.map((task) => (task as { id: string }).id))
    for (const { task_id, message } of warnings!) expect((await control.ended(task_id)).error).toBe(message)
    const text = (id: string) => warnings!.find(({ task_id }) => task_id === id)!.message
    expect(text('w-git')).toBe(
      'command "git" is not in the allowed whitelist (a runtime.script task runs any command; SERVICE_SHELL_POLICY=open lifts the list: taskmill up --shell open)',
    )
    expect(text('w-line')).toBe('command "echo hello" is not in the allowed whitelist (arguments belong into args)')
    expect(text('w-long')).toBe(
      'command "git status" is not in the allowed whitelist (arguments belong into args; a runtime.script task runs any command; SERVICE_SHELL_POLICY=open lifts the list: taskmill up --shell open)',
    )
  })

  test('is warned of up to a number, and a graph without one has no warnings', async () => {
    const many = Array.from({ length: MAX_SUBMIT_WARNINGS + 1 }, (_, i) => ({ id: `many-${i}`, type: 'http' }))
    expect((await control.submit(many)).warnings).toHaveLength(MAX_SUBMIT_WARNINGS)
    expect(await control.submit([noop('calm')])).not.toHaveProperty('warnings')
  })

  test('is named by the client, on standard error', async () => {
    const graph = JSON.stringify({ tasks: [{ id: 'shown', type: 'shell', params: { command: 'git' } }] })
    const submit = await runClient(['submit'], { url: control.url, stdin: graph })
    const message = (await control.ended('shown')).error
    expect(submit.envelope).toMatchObject({ ok: true, data: { warnings: [{ task_id: 'shown', message }] } })
    expect(submit.stderr).toBe(`taskmill: task shown will fail: ${message}\n`)
    const action = JSON.stringify({ action_id: 'shown-2', action: { kind: 'os.shell', input: { command: 'git' } } })
    const act = await runClient(['act'], { url: control.url, stdin: action })
    expect(act.stderr).toBe(`taskmill: task shown-2 will fail: ${message}\n`)
  })

  test('an action warns as well, and a key gives the warning again', async () => {
    const action = { action: { kind: 'os.shell', input: { command: 'git' } }, action_id: 'act-1' }
    const send = async (path: string) =>
      (
        await control.fetch(path, { method: 'POST', body: JSON.stringify(action), headers: { 'idempotency-key': 'k' } })
      ).json()
    const answer = await send('/adapters/actions')
    expect(answer).toMatchObject({ accepted: 1, warnings: [{ task_id: 'act-1' }] })
    expect(await send('/adapters/actions')).toEqual(answer)
    expect(await send('/adapters/translate')).toMatchObject({ accepted: 0, warnings: [{ task_id: 'act-1' }] })
  })
})
