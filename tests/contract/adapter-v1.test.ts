/** /adapters: the contract `adapter.v1` on the wire. Source: spec, Endpoints A; contract, Adapter endpoints. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import {
  ACTION_KINDS,
  type ActionResponse,
  type AdapterCapabilities,
  type AdapterTools,
} from '../../shared/contract/adapter-v1.ts'
import type { ErrorResponse } from '../../shared/contract/control.ts'
import { SAMPLES } from '../support/actions.ts'
import { type Control, startControl } from '../support/control.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

let control: Control
let gate: Gate
beforeAll(async () => {
  control = await startControl()
  gate = new Gate()
})
afterAll(async () => {
  gate[Symbol.dispose]()
  await control.dispose()
})

const newId = () => crypto.randomUUID()
const submit = (tasks: readonly object[]) => ({ action: { kind: 'task_graph.submit', input: { tasks } } })

function post(endpoint: 'translate' | 'actions', body: unknown, headers: Record<string, string> = {}) {
  return control.fetch(`/adapters/${endpoint}`, {
    method: 'POST',
    headers,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

/** The answer of a body that must be taken. */
async function taken(endpoint: 'translate' | 'actions', body: unknown): Promise<ActionResponse> {
  const response = await post(endpoint, body)
  const answer = (await response.json()) as ActionResponse
  expect({ status: response.status, answer }).toEqual({ status: endpoint === 'actions' ? 202 : 200, answer })
  return answer
}

/** The error text of a body that must be answered 400 by either endpoint. */
async function refused(body: unknown): Promise<string> {
  const texts: string[] = []
  for (const endpoint of ['translate', 'actions'] as const) {
    const response = await post(endpoint, body)
    const answer = (await response.json()) as ErrorResponse
    expect({ status: response.status, keys: Object.keys(answer) }).toEqual({ status: 400, keys: ['error'] })
    texts.push(answer.error)
  }
  expect(texts[0]).toBe(texts[1]!)
  return texts[0]!
}

describe('GET /adapters/capabilities', () => {
  test('answers {schema_version, profiles, action_kinds, compatibility_notes}', async () => {
    const response = await control.fetch('/adapters/capabilities')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toStartWith('application/json')
    const answer = (await response.json()) as AdapterCapabilities
    expect(answer).toEqual({
      schema_version: 'adapter.v1',
      profiles: ['generic', 'claudecode', 'codex', 'openclaw'],
      action_kinds: [...ACTION_KINDS],
      compatibility_notes: expect.any(Array),
    })
    for (const note of answer.compatibility_notes) expect(note).toBeString()
  })
})

describe('GET /adapters/tools', () => {
  test('answers each kind as a tool, in an order that is always the same', async () => {
    const texts = [
      await (await control.fetch('/adapters/tools')).text(),
      await (await control.fetch('/adapters/tools')).text(),
    ]
    expect(texts[0]).toBe(texts[1]!)
    const { schema_version, tools } = JSON.parse(texts[0]!) as AdapterTools
    expect(schema_version).toBe('adapter.v1')
    expect(tools.slice(0, ACTION_KINDS.length).map((tool) => tool.action_kind)).toEqual([...ACTION_KINDS])
    expect(tools.find((tool) => tool.name === 'os_shell')?.aliases).toEqual(['shell', 'bash', 'terminal.command'])
    for (const tool of tools) {
      expect(tool).toMatchObject({
        name: expect.stringMatching(/^[a-zA-Z0-9_-]{1,64}$/),
        category: expect.stringMatching(/^(os|runtime|mcp|cli-skills|task_graph)$/),
        description: expect.stringMatching(/.{10}/),
        input_schema: { type: 'object' },
      })
      expect(Object.keys((tool.input_schema as { properties: object }).properties)).not.toEqual([])
    }
  })
})

describe('POST /adapters/translate', () => {
  test.each([...ACTION_KINDS])('answers 200 with accepted: 0 and stores nothing: %s', async (kind) => {
    const action_id = newId()
    const before = (await control.list()).length
    const answer = await taken('translate', { action_id, action: { kind, ...SAMPLES[kind] } })
    const ids = kind === 'task_graph.submit' ? ['a'] : [action_id]
    expect(answer).toEqual({
      accepted: 0,
      task_ids: ids,
      task_graph: { tasks: [expect.objectContaining({ id: ids[0] })] },
      translation_trace: {
        schema_version: 'adapter.v1',
        adapter: 'generic',
        agent_id: '',
        session_id: '',
        action_id,
        source_kind: kind,
        normalized_kind: kind,
        task_ids: ids,
      },
    } as ActionResponse)
    expect((await control.list()).length).toBe(before)
    expect((await control.fetch(`/tasks/${ids[0]}`)).status).toBe(404)
  })

  test('keeps what the task depends on, so that it can join a graph', async () => {
    const one = await taken('translate', { action_id: newId(), action: { kind: 'noop' } })
    const depends_on = [...one.task_ids]
    const two = await taken('translate', { action_id: newId(), action: { kind: 'noop', depends_on } })
    await control.submit([...one.task_graph.tasks!, ...two.task_graph.tasks!])
    expect((await control.ended(two.task_ids[0]!)).status).toBe('success')
  })
})

describe('POST /adapters/actions', () => {
  test('answers 202 and runs the task, whose annotations say where it came from', async () => {
    const action_id = newId()
    const audit = { adapter: 'Codex', agent_id: 'agent-1', session_id: 'session-1', action_id, metadata: { pr: '12' } }
    const input = { command: 'echo', args: ['hi'] }
    const answer = await taken('actions', {
      ...audit,
      action: { kind: 'Bash', input, retry: 1, timeout: 5_000, queue_timeout: 6_000 },
    })
    const annotations = {
      adapter_schema: 'adapter.v1',
      adapter: 'codex',
      action_kind: 'os.shell',
      agent_id: 'agent-1',
      session_id: 'session-1',
      action_id,
      pr: '12',
    }
    const task = {
      id: action_id,
      type: 'os',
      tool_name: 'shell',
      input,
      retry: 1,
      timeout: 5_000,
      queue_timeout: 6_000,
      annotations,
    }
    expect(answer).toEqual({
      accepted: 1,
      task_ids: [action_id],
      task_graph: { tasks: [task] },
      translation_trace: {
        schema_version: 'adapter.v1',
        adapter: 'codex',
        agent_id: 'agent-1',
        session_id: 'session-1',
        action_id,
        source_kind: 'Bash',
        normalized_kind: 'os.shell',
        task_ids: [action_id],
      },
    })
    expect(await control.ended(action_id)).toMatchObject({ ...task, status: 'success', result: { stdout: 'hi\n' } })
  })

  test('makes the id adapter-<unique> where there is no action_id', async () => {
    const [one, two] = await Promise.all([1, 2].map(() => taken('actions', { action: { kind: 'noop' } })))
    for (const answer of [one!, two!]) {
      expect(answer.task_ids).toEqual([expect.stringMatching(/^adapter-[\w-]{8,}$/)])
      expect(answer.translation_trace.action_id).toBe('')
      const task = await control.ended(answer.task_ids[0]!)
      expect(task).toMatchObject({ status: 'success', annotations: { adapter: 'generic', action_kind: 'os.noop' } })
      expect(task.annotations).not.toHaveProperty('action_id')
    }
    expect(one!.task_ids).not.toEqual(two!.task_ids)
  })

  test('answers 409 while the id is in use, and replaces a task that has ended', async () => {
    const id = newId()
    await control.submit([gate.task(id)])
    const action = { action_id: id, action: { kind: 'noop' } }
    const response = await post('actions', action)
    expect(response.status).toBe(409)
    expect(await response.json()).toEqual({ error: expect.stringContaining(`task already active: ${id} (in graph `) })
    gate.open()
    await control.ended(id)
    expect((await taken('actions', action)).accepted).toBe(1)
    expect((await control.ended(id)).tool_name).toBe('noop')
  })

  test('what was answered 202 is there after SIGKILL', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const flags = ['--persist-interval', '1h']
    const action = { action_id: 'kept', metadata: { k: 'v' }, action: { kind: 'sleep', input: { duration_ms: 1 } } }
    {
      await using first = await startControl({ dataDir, flags })
      await first.fetch('/adapters/actions', { method: 'POST', body: JSON.stringify(action) })
      await first.stop('SIGKILL')
    }
    await using second = await startControl({ dataDir, flags })
    expect(await second.ended('kept')).toMatchObject({
      status: 'success',
      annotations: { k: 'v', action_kind: 'os.sleep' },
    })
  })
})

describe('task_graph.submit', () => {
  test('takes tasks or task_graph, and runs the graph', async () => {
    for (const wrap of [(tasks: object[]) => ({ tasks }), (tasks: object[]) => ({ task_graph: { tasks } })]) {
      const [one, two] = [newId(), newId()]
      const tasks = [
        { id: two, type: 'noop', depends_on: [one] },
        { id: one, type: 'sleep', params: { duration_ms: 1 } },
      ]
      const action = { kind: 'task_graph.submit', input: wrap(tasks) }
      const answer = await taken('actions', { agent_id: 'a', action })
      const annotations = {
        adapter_schema: 'adapter.v1',
        adapter: 'generic',
        action_kind: 'task_graph.submit',
        agent_id: 'a',
      }
      expect(answer.accepted).toBe(2)
      expect(answer.task_ids).toEqual([two, one])
      expect(answer.translation_trace.task_ids).toEqual([two, one])
      expect(answer.task_graph.tasks as object[]).toEqual(tasks.map((task) => ({ ...task, annotations })))
      expect(await control.ended(two)).toMatchObject({ status: 'success', annotations })
    }
  })

  test('takes a graph of 20,000 tasks', async () => {
    const ids = Array.from({ length: 20_000 }, (_, i) => `many-${i}`)
    const answer = await taken('actions', submit(ids.map((id) => ({ id, type: 'noop' }))))
    expect(answer.task_ids).toEqual(ids)
    expect(answer.translation_trace.task_ids).toEqual(ids)
    expect((await control.ended(ids.at(-1)!)).status).toBe('success')
  })

  test.each([
    [[], 'task graph is empty'],
    [[{ type: 'noop' }], 'task id is required'],
    [[{ id: 'a' }], 'task a: type is required'],
    [[{ id: 'a', type: 'noop', retry: -1 }], 'task a: retry must be a non-negative integer'],
    [
      [
        { id: 'a', type: 'noop' },
        { id: 'a', type: 'noop' },
      ],
      'duplicate task id: a',
    ],
    [[{ id: 'a', type: 'noop', depends_on: ['b'] }], 'task a depends on unknown task b'],
    [[{ id: 'a', type: 'noop', depends_on: ['a'] }], 'task a cannot depend on itself'],
    [
      [
        { id: 'a', type: 'noop', depends_on: ['b'] },
        { id: 'b', type: 'noop', depends_on: ['a'] },
      ],
      'cycle detected in task graph: a -> b -> a',
    ],
  ])('a graph that fails a check answers with that text: %j', async (tasks, text) => {
    expect(await refused(submit(tasks))).toBe(`invalid adapter action: ${text}`)
  })

  test('a type that nobody knows fails in both endpoints', async () => {
    for (const endpoint of ['translate', 'actions'] as const) {
      const response = await post(endpoint, submit([{ id: 'a', type: 'nope' }]))
      expect(response.status).toBe(400)
      const { error } = (await response.json()) as ErrorResponse
      expect(error).toMatch(
        /^invalid adapter action: unknown task type: nope \(available: .*\bos\b.*\) or a short form: /,
      )
    }
  })
})

describe('400 invalid adapter action', () => {
  test.each([
    [{}, 'action.kind is required'],
    [{ action: {} }, 'action.kind is required'],
    [{ action: { kind: 'runtime.command' } }, 'input.program is required for runtime.command'],
    [{ action: { kind: 'script', input: {} } }, 'input.script is required for runtime.script'],
    [{ action: { kind: 'mcp.call', input: {} } }, 'tool_name is required for mcp.call'],
    [{ action: { kind: 'os.http', input: {} } }, 'input.url is required for os.http'],
    [{ action: { kind: 'sleep', input: { duration_ms: -1 } } }, 'input.duration_ms: expected number from 0 to 600000'],
    [{ action_id: 'x', action: { kind: 'noop', depends_on: ['x'] } }, 'task x cannot depend on itself'],
    [{ action_id: 'x', action: { kind: 'noop', retry: -1 } }, 'task x: retry must be a non-negative integer'],
    [{ action_id: 'x', action: { kind: 'noop', retry: 0.5 } }, 'task x: retry must be a non-negative integer'],
  ])('%j', async (body, detail) => {
    expect(await refused(body)).toBe(`invalid adapter action: ${detail}`)
  })

  test('a dependency that is not in the graph, once the action is to run', async () => {
    const response = await post('actions', { action_id: 'x', action: { kind: 'noop', depends_on: ['y'] } })
    expect(response.status).toBe(400)
    expect(await response.json()).toEqual({ error: 'invalid adapter action: task x depends on unknown task y' })
  })
})

describe('400 invalid JSON', () => {
  test.each(['', '{', 'action', '{"action":{"kind":"noop"}} x'])('malformed: %j', async (body) => {
    expect(await refused(body)).toMatch(/^invalid JSON: ./)
  })

  test.each([
    ['[]', 'expected object with an action, got array'],
    ['{"action":"noop"}', 'action: expected object, got string'],
    ['{"action":{"kind":["noop"]}}', 'action.kind: expected string'],
    ['{"action":{"kind":"noop","input":"x"}}', 'action.input: expected object'],
    ['{"action":{"kind":"noop","depends_on":"a"}}', 'action.depends_on: expected array of strings'],
    ['{"metadata":{"n":1},"action":{"kind":"noop"}}', 'metadata: expected object of strings'],
    [
      JSON.stringify(submit([{ id: 'a', type: 'noop' }, { retry: 'x' }])),
      'action.input.tasks[1].retry: expected integer',
    ],
  ])('a field of the wrong type is named: %s', async (body, detail) => {
    expect(await refused(body)).toBe(`invalid JSON: ${detail}`)
  })
})

describe('as everywhere', () => {
  test.each(['text/plain', 'application/x-www-form-urlencoded', 'application/octet-stream'])(
    'a body is parsed as JSON whatever its content type: %s',
    async (contentType) => {
      const response = await post('translate', { action: { kind: 'noop' } }, { 'content-type': contentType })
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toStartWith('application/json')
    },
  )

  test.each([
    ['POST', '/adapters/tools', 'GET, HEAD'],
    ['DELETE', '/adapters/capabilities', 'GET, HEAD'],
    ['GET', '/adapters/actions', 'POST'],
    ['PUT', '/adapters/translate', 'POST'],
  ])('another method is 405 with Allow: %s %s', async (method, path, allow) => {
    const response = await control.fetch(path, { method })
    expect({ status: response.status, allow: response.headers.get('allow') }).toEqual({ status: 405, allow })
  })

  test('the trace id of the request is that of its tasks', async () => {
    const trace = `trace-${newId()}`
    const response = await post('actions', { action: { kind: 'noop' } }, { 'x-trace-id': trace })
    expect(response.headers.get('x-trace-id')).toBe(trace)
    const accepted = await until(() =>
      control.log.find(({ msg, trace_id }) => msg === 'graph accepted' && trace_id === trace),
    )
    expect(accepted).toMatchObject({ tasks: 1 })
  })

  test('a body, or a graph that outgrows it by its annotations, that is too large is 413', async () => {
    await using small = await startControl({ flags: ['--max-body-bytes', '8192'] })
    const ask = (endpoint: string, body: string) => small.fetch(`/adapters/${endpoint}`, { method: 'POST', body })
    const tasks = Array.from({ length: 10 }, (_, i) => ({ id: `t${i}`, type: 'noop' }))
    for (const endpoint of ['translate', 'actions']) {
      expect((await ask(endpoint, 'x'.repeat(8193))).status).toBe(413)
      const body = { ...submit(tasks), metadata: { note: 'x'.repeat(1_000) } }
      const response = await ask(endpoint, JSON.stringify(body))
      expect(response.status).toBe(413)
      expect(((await response.json()) as ErrorResponse).error).toContain('larger than 8192 bytes')
    }
    expect(await small.list()).toEqual([])
  })
})
