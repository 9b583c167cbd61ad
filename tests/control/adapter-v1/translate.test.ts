/**
 * Goal: an action becomes the tasks that the contract says, or is refused with a text that names the field.
 * Method: tables of actions, inputs and texts; then rules over random requests, right ones and any JSON at all.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { MAX_JSON_DEPTH } from '../../../control/json/depth.ts'
import { decodeTasks, isTaskShape } from '../../../control/rules/decode.ts'
import { validateGraph } from '../../../control/rules/validate.ts'
import { ACTION_KINDS } from '../../../shared/contract/adapter-v1.ts'
import { ServiceError } from '../../../shared/contract/errors.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { NEW_TASK_ID, randomAction, refusal, SAMPLES, tasksOf, translation } from '../../support/actions.ts'

const act = (kind: string, input?: unknown, more: object = {}) => ({ action: { kind, input, ...more } })

/** The one task of an action, without what the next tests are about. */
function toolOf(body: unknown) {
  const [{ id: _, annotations: __, ...tool }] = tasksOf(body) as [{ id?: unknown; annotations?: unknown }]
  return tool as object
}

describe('an action becomes a task', () => {
  test.each<[string, object | undefined, object]>([
    ['os.shell', { command: 'ls', args: ['-l'] }, { type: 'os', tool_name: 'shell' }],
    ['bash', { script: 'ls | wc', command: null }, { type: 'os', tool_name: 'shell' }],
    ['os.file', { action: 'rename', path: 'a' }, { type: 'os', tool_name: 'file' }],
    ['os.http', { url: 'x', 'x-more': 1 }, { type: 'os', tool_name: 'http' }],
    ['dns', { name: 'localhost' }, { type: 'os', tool_name: 'dns' }],
    ['tcp', { address: 'localhost:80' }, { type: 'os', tool_name: 'tcp' }],
    ['sleep', { duration_ms: 0 }, { type: 'os', tool_name: 'sleep' }],
    ['noop', {}, { type: 'os', tool_name: 'noop' }],
    ['cli.run', { command: 'wc', stdin: 'a' }, { type: 'cli-skills' }],
    ['mcp.call', { server: 's', tool: 't', arguments: { a: null } }, { type: 'mcp', tool_name: 'call' }],
  ])('of %s with the input as it is: %j', (kind, input, tool) => {
    expect(toolOf(act(kind, input))).toEqual({ ...tool, input })
  })

  test('without input where there was none', () => {
    expect(toolOf(act('noop'))).toEqual({ type: 'os', tool_name: 'noop' })
    expect(toolOf(act('sleep', null))).toEqual({ type: 'os', tool_name: 'sleep' })
    expect(toolOf(act('mcp.call', undefined, { tool_name: 'discover' }))).toEqual({
      type: 'mcp',
      tool_name: 'discover',
    })
  })

  test('of mcp.call by tool_name: all of the input is the tool’s', () => {
    const input = { server: 7, tool: null }
    expect(toolOf(act('mcp.call', input, { tool_name: 'builtin/echo' }))).toEqual({
      type: 'mcp',
      tool_name: 'builtin/echo',
      input,
    })
  })

  test('of cli.run by tool_name: a skill', () => {
    expect(toolOf(act('cli.run', { args: ['x'] }, { tool_name: 'deploy' }))).toEqual({
      type: 'cli-skills',
      tool_name: 'deploy',
      input: { args: ['x'] },
    })
  })

  test.each(['read', 'write'])('of file.%s with that action filled in', (action) => {
    for (const given of [{}, { action: null }, { action }]) {
      expect(toolOf(act(`file.${action}`, { path: 'a', ...given }))).toEqual({
        type: 'os',
        tool_name: 'file',
        input: { path: 'a', action },
      })
    }
  })

  test('with depends_on, retry and the limits of time as they are, and without those that are null', () => {
    const given = { depends_on: ['b'], retry: 2, timeout: 100, queue_timeout: 200 }
    expect(tasksOf(act('noop', {}, given))[0]).toMatchObject(given)
    const nulls = tasksOf(act('noop', {}, { depends_on: null, retry: null, timeout: null, queue_timeout: null }))[0]!
    expect(Object.keys(nulls).sort()).toEqual(['annotations', 'id', 'input', 'tool_name', 'type'])
  })

  test('whose id is the action_id, else the one that was made', () => {
    const idOf = (action_id: unknown) => tasksOf({ action_id, ...act('noop') })[0]!.id
    expect([idOf('a b'), idOf(''), idOf(null), idOf(undefined)]).toEqual(['a b', NEW_TASK_ID, NEW_TASK_ID, NEW_TASK_ID])
  })
})

describe('a runtime action', () => {
  const rest = {
    limits: { wall_time_ms: 1 },
    sandbox: { profile: 'linux_sandbox', namespaces: { net: true } },
    policy: { capability_mode: 'strict' },
    control_context: { tenant: 't', labels: { a: 'b' } },
    metadata: { m: '1' },
  }
  const command = { program: 'go', args: ['test'], env: { CI: '1' } }
  const script = { script: 'exit', interpreter: ['sh'], env: {} }

  test.each<[string, object, object]>([
    ['runtime.command', { ...command, ...rest }, { execution: { kind: 'command', ...command }, ...rest }],
    ['command', { execution: command, ...rest }, { execution: { kind: 'command', ...command }, ...rest }],
    ['command', { execution: { kind: 'command', program: 'a' } }, { execution: { kind: 'command', program: 'a' } }],
    ['runtime.script', { ...script, ...rest }, { execution: { kind: 'script', ...script }, ...rest }],
    ['SCRIPT', { execution: { ...script, kind: 'script' } }, { execution: { kind: 'script', ...script } }],
    [
      'command',
      { program: 'a', args: null, execution: null, limits: { pids_max: null } },
      { execution: { kind: 'command', program: 'a' }, limits: {} },
    ],
    ['command', { program: 'a', task_id: 'x', 'x-more': 1 }, { execution: { kind: 'command', program: 'a' } }],
  ])('%s with %j becomes a whole request', (kind, input, whole) => {
    const tool_name = kind.toLowerCase().includes('command') ? 'command' : 'script'
    expect(toolOf(act(kind, input))).toEqual({ type: 'runtime', tool_name, input: whole })
  })
})

describe('an action is refused', () => {
  test.each<[string, unknown, string]>([
    ['x', {}, `unknown action kind "x" (available: ${ACTION_KINDS.join(', ')})`],
    ['__proto__', {}, `unknown action kind "__proto__" (available: ${ACTION_KINDS.join(', ')})`],
    ['shell', undefined, 'input.command is required for os.shell (or input.script)'],
    ['shell', { command: ' ', script: '' }, 'input.command is required for os.shell (or input.script)'],
    ['shell', { command: 'ls', args: '-l' }, 'input.args: expected array of strings'],
    ['shell', { command: 7 }, 'input.command: expected string'],
    ['shell', { script: 'ls', runner: 'bash' }, 'input.runner: expected auto, sh or direct'],
    ['os.file', { action: 'read' }, 'input.path is required for os.file'],
    ['os.file', { path: 'a' }, 'input.action is required for os.file'],
    ['file.read', {}, 'input.path is required for os.file'],
    ['file.read', { path: 'a', action: 'delete' }, 'input.action must be "read" for file.read, or left out'],
    ['http.request', { url: '' }, 'input.url is required for os.http'],
    ['os.http', { url: 'x', headers: { a: 1 } }, 'input.headers: expected object of strings'],
    ['dns', {}, 'input.name is required for os.dns'],
    ['dns', { name: 'a', record: 'soa' }, 'input.record: expected ip, txt, cname or mx'],
    ['tcp', { address: null }, 'input.address is required for os.tcp'],
    ['tcp', { address: 'a:1', timeout_ms: 60_001 }, 'input.timeout_ms: expected integer from 1 to 60000'],
    ['sleep', { duration_ms: 600_001 }, 'input.duration_ms: expected number from 0 to 600000'],
    ['noop', { message: 1 }, 'input.message: expected string'],
    ['command', {}, 'input.program is required for runtime.command'],
    ['command', { program: '' }, 'input.program is required for runtime.command'],
    ['command', { execution: {} }, 'input.execution.program is required for runtime.command'],
    ['command', { script: 'ls' }, 'input.script does not belong to runtime.command (use runtime.script)'],
    ['script', {}, 'input.script is required for runtime.script'],
    ['script', { script: 'ls', program: 'a' }, 'input.program does not belong to runtime.script (use runtime.command)'],
    [
      'script',
      { execution: { program: 'a' } },
      'input.execution.program does not belong to runtime.script (use runtime.command)',
    ],
    ['command', { program: 'a', execution: { program: 'a' } }, 'input.program and input.execution exclude each other'],
    [
      'command',
      { execution: { kind: 'script', program: 'a' } },
      'input.execution.kind must be "command" for runtime.command, or left out',
    ],
    ['command', { program: ['a'] }, 'input.program: expected string'],
    [
      'command',
      { program: 'a', limits: { memory_bytes: 0 } },
      'input.limits.memory_bytes: expected whole number above 0',
    ],
    ['command', { program: 'a', limits: [] }, 'input.limits: expected object'],
    [
      'command',
      { program: 'a', sandbox: { profile: 'vm' } },
      'input.sandbox.profile: expected process or linux_sandbox',
    ],
    [
      'command',
      { program: 'a', sandbox: { namespaces: { net: 1 } } },
      'input.sandbox.namespaces.net: expected true or false',
    ],
    [
      'command',
      { program: 'a', control_context: { owner: '' } },
      'input.control_context.owner: expected string that is not empty',
    ],
    ['command', { program: 'a', env: { A: 1 } }, 'input.env.A: expected string, or object with placeholder_for'],
    ['mcp.call', undefined, 'tool_name is required for mcp.call'],
    ['mcp.call', { server: 'a', tool: '' }, 'tool_name is required for mcp.call'],
    ['mcp.call', { tool: 'a', arguments: 'b' }, 'input.arguments: expected object'],
    ['cli.run', { args: [] }, 'input.command is required for cli.run (or tool_name, for a skill)'],
    ['cli.run', { command: 'wc', stdin: 1 }, 'input.stdin: expected string'],
    ['task_graph.submit', {}, 'input.tasks is required for task_graph.submit (or input.task_graph)'],
    ['task_graph.submit', { tasks: [], task_graph: {} }, 'input.tasks and input.task_graph exclude each other'],
  ])('%s with %j', (kind, input, detail) => {
    expect(refusal(() => translation(act(kind, input)))).toBe(`invalid adapter action: ${detail}`)
  })

  test.each([
    [{ tasks: {} }, 'action.input.tasks: expected array, got object'],
    [{ tasks: [{}, 7] }, 'action.input.tasks[1]: expected object, got number'],
    [{ tasks: [{ depends_on: 'a' }] }, 'action.input.tasks[0].depends_on: expected array of strings'],
    [{ task_graph: [] }, 'action.input.task_graph: expected object with a list of tasks, got array'],
    [{ task_graph: { tasks: [{ id: 1 }] } }, 'action.input.task_graph.tasks[0].id: expected string'],
  ])('task_graph.submit with fields of the wrong type: %j', (input, detail) => {
    expect(refusal(() => translation(act('task_graph.submit', input)))).toBe(`invalid JSON: ${detail}`)
  })

  test.each([{ depends_on: ['a'] }, { retry: 1 }, { timeout: 1 }, { queue_timeout: 1 }])(
    'task_graph.submit with %j of its own',
    (field) => {
      const input = SAMPLES['task_graph.submit'].input
      expect(refusal(() => translation(act('task_graph.submit', input, field)))).toBe(
        `invalid adapter action: action.${Object.keys(field)[0]} cannot be given for task_graph.submit: give it to its tasks`,
      )
      const unused = { depends_on: [], retry: 0, timeout: 0, queue_timeout: 0 }
      expect(tasksOf(act('task_graph.submit', input, unused))).toHaveLength(1)
    },
  )

  test('an input that is nested deeper than the limit', () => {
    const nested = (levels: number) => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
    const body = (levels: number) => `{"action":{"kind":"mcp.call","tool_name":"x","input":${nested(levels)}}}`
    expect(tasksOf(body(MAX_JSON_DEPTH))).toHaveLength(1)
    const message = `invalid JSON: action.input: nested deeper than ${MAX_JSON_DEPTH} levels`
    expect(refusal(() => translation(body(MAX_JSON_DEPTH + 1)))).toBe(message)
    expect(refusal(() => translation(body(100_000)))).toBe(message)
  })
})

describe('a submitted graph', () => {
  test('keeps the fields that count, in order, from tasks and from task_graph alike', () => {
    const given = [
      { id: 'b', type: 'shell', params: { command: 'ls' }, depends_on: ['a'], retry: 1, timeout: null, status: 'x' },
      { id: 'a', type: 'noop', input: null, 'x-more': { deep: [1] } },
    ]
    const kept = [
      { id: 'b', type: 'shell', params: { command: 'ls' }, depends_on: ['a'], retry: 1 },
      { id: 'a', type: 'noop' },
    ]
    expect(translation(act('task_graph.submit', { tasks: given })).tasks).toEqual(kept)
    expect(translation(act('task_graph.submit', { task_graph: { tasks: given } })).tasks).toEqual(kept)
  })

  test.each([
    { tasks: null },
    { tasks: [] },
    { task_graph: null },
    { task_graph: {} },
    { tasks: null, task_graph: {} },
  ])('may be empty here: %j', (input) => expect(tasksOf(act('task_graph.submit', input))).toEqual([]))
})

describe('annotations', () => {
  test('say which adapter, kind, agent, session and action, and hold the metadata', () => {
    const ids = { agent_id: 'agent', session_id: 'session', action_id: 'action' }
    const body = { adapter: 'CoDex', ...ids, metadata: { ticket: '7' }, ...act('BASH', { command: 'ls' }) }
    expect(tasksOf(body)[0]!.annotations).toEqual({
      adapter_schema: 'adapter.v1',
      adapter: 'codex',
      action_kind: 'os.shell',
      ...ids,
      ticket: '7',
    })
  })

  test('leave out ids that were not given, and are generic without an adapter', () => {
    for (const audit of [{}, { adapter: '', agent_id: '', session_id: null }]) {
      expect(tasksOf({ ...audit, ...act('noop') })[0]!.annotations).toEqual({
        adapter_schema: 'adapter.v1',
        adapter: 'generic',
        action_kind: 'os.noop',
      })
    }
  })

  test('of the adapter win over a task’s own, and these over metadata', () => {
    const tasks = [{ id: 'a', type: 'noop', annotations: { adapter: 'forged', mine: 'task', own: '1' } }]
    const body = { metadata: { mine: 'metadata', action_kind: 'forged' }, ...act('task_graph.submit', { tasks }) }
    expect(tasksOf(body)[0]!.annotations).toEqual({
      adapter_schema: 'adapter.v1',
      adapter: 'generic',
      action_kind: 'task_graph.submit',
      mine: 'task',
      own: '1',
    })
  })
})

test('the trace tells what was asked for and what it was taken as', () => {
  expect(translation({ agent_id: 'a', ...act('File.READ', { path: 'x' }) }).trace).toEqual({
    schema_version: 'adapter.v1',
    adapter: 'generic',
    agent_id: 'a',
    session_id: '',
    action_id: '',
    source_kind: 'File.READ',
    normalized_kind: 'os.file',
  })
})

describe('translation', () => {
  const types = new Set(['os', 'runtime', 'mcp', 'cli-skills'])

  test('of a right request is a graph that passes all checks, the same each time', () => {
    fc.assert(
      fc.property(randomAction, ({ kind, body }) => {
        const tasks = tasksOf(body)
        expect(tasksOf(body)).toEqual(tasks)
        expect(tasks.every(isTaskShape)).toBe(true)
        const sent = JSON.parse(JSON.stringify({ tasks }))
        expect(runSync(decodeTasks(sent))).toEqual(tasks)
        const isGraph = kind === 'task_graph.submit'
        const alone = tasks.map((task) => (isGraph ? task : { ...task, depends_on: [] }))
        expect(runSync(validateGraph(alone, types)).tasks).toHaveLength(tasks.length)
        for (const { annotations } of tasks) expect(annotations).toMatchObject({ action_kind: kind })
      }),
      { numRuns: 500 },
    )
  })

  test('of anything else is refused in words', () => {
    const anything = fc.jsonValue({ maxDepth: 4 })
    const almost = fc.record({ base: randomAction, at: fc.nat(), value: anything }).map(({ base, at, value }) => {
      const body = structuredClone(base.body) as Record<string, unknown>
      const action = body.action as Record<string, unknown>
      const input = (action.input ?? {}) as Record<string, unknown>
      const places: [Record<string, unknown>, string][] = [
        ...Object.keys(body).map((key): [typeof body, string] => [body, key]),
        ...Object.keys(action).map((key): [typeof body, string] => [action, key]),
        ...Object.keys(input).map((key): [typeof body, string] => [input, key]),
      ]
      const [holder, key] = places[at % places.length]!
      holder[key] = value
      return body as unknown
    })
    fc.assert(
      fc.property(fc.oneof(anything, almost), (body) => {
        try {
          expect(tasksOf(body).every(isTaskShape)).toBe(true)
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error
          expect(error.status).toBe(400)
          expect(error.message).toMatch(/^invalid (JSON|adapter action): .*[^ ]$/s)
          expect(error.message).not.toContain('undefined')
        }
      }),
      { numRuns: 1000 },
    )
  })
})
