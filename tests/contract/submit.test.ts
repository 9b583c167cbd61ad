/** POST /tasks: the seven checks, their order and their texts, and what comes after them. Source: spec, Endpoints A. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { ErrorResponse } from '../../shared/contract/control.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { MAX_TASK_ID_BYTES } from '../../shared/contract/submission.ts'
import { type Control, startControl } from '../support/control.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'
import { RawClient } from './raw-client.ts'

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

const noop = (id: string, more: object = {}) => ({ id, type: 'noop', ...more })

/** The error text of a body that must be answered 400. */
async function refused(body: unknown): Promise<string> {
  const response = await control.post(body)
  const answer = (await response.json()) as ErrorResponse
  expect({ status: response.status, keys: Object.keys(answer) }).toEqual({ status: 400, keys: ['error'] })
  return answer.error
}

describe('a graph that passes all checks', () => {
  test('is answered 202 with accepted, task_ids in the order of the graph, and graph_id', async () => {
    const response = await control.post({ tasks: [noop('second', { depends_on: ['first'] }), noop('first')] })
    expect(response.status).toBe(202)
    expect(response.headers.get('content-type')).toStartWith('application/json')
    const answer = (await response.json()) as SubmitResponse
    expect(answer).toEqual({ accepted: 2, task_ids: ['second', 'first'], graph_id: expect.any(String) })
    expect(answer.graph_id).not.toBe('')
  })

  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/octet-stream',
    'no/such-thing',
  ])('is parsed as JSON whatever its content type: %s', async (contentType) => {
    const id = `typed as ${contentType}`
    const response = await control.post({ tasks: [noop(id)] }, { 'content-type': contentType })
    expect(response.status).toBe(202)
    expect((await control.ended(id)).status).toBe('success')
  })

  test('is parsed as JSON without any content type', async () => {
    const body = new TextEncoder().encode(JSON.stringify({ tasks: [noop('untyped')] }))
    const request = new Request(`${control.url}/tasks`, { method: 'POST', body })
    expect(request.headers.get('content-type')).toBeNull()
    expect((await fetch(request)).status).toBe(202)
  })

  test('may have fields of the caller, and those that the service sets: they are ignored', async () => {
    const own = { 'x-priority': [1], x_group: 'a', metadata: { a: 1 }, status: 'failed', attempts: [] }
    const response = await control.post({ tasks: [noop('extra', own)], 'x-name': 'x', metadata: {}, annotations: 1 })
    expect(response.status).toBe(202)
    const task = await control.ended('extra')
    expect(task.status).toBe('success')
    for (const field of ['x-priority', 'x_group', 'metadata', 'attempts']) expect(task).not.toHaveProperty(field)
  })

  test('may be a task as GET /tasks/{id} shows it', async () => {
    const task = await control.run({
      type: 'shell',
      params: { command: 'echo', args: ['again'] },
      annotations: { a: 'b' },
    })
    expect(await control.run({ ...task, id: 'again' })).toMatchObject({ status: 'success', annotations: { a: 'b' } })
  })

  test('may have null in an optional field: it means absent', async () => {
    const optional = { params: null, input: null, depends_on: null, retry: null, timeout: null, tool_name: null }
    await control.submit([noop('nulls', optional)])
    const task = await control.ended('nulls')
    expect(task.status).toBe('success')
    expect(task.retry).toBe(0)
    for (const field of ['params', 'input', 'depends_on', 'timeout']) expect(task).not.toHaveProperty(field)
    expect(Object.values(task)).not.toContain(null)
  })

  test('may name a dependency twice and in any order of tasks', async () => {
    await control.submit([noop('twice-b', { depends_on: ['twice-a', 'twice-a'] }), noop('twice-a')])
    expect((await control.ended('twice-b')).status).toBe('success')
  })
})

describe('check 1: the body must be valid JSON', () => {
  test.each(['', '{"tasks": [', '{"tasks": []} x'])(
    'malformed JSON answers `invalid JSON` and the detail: %j',
    async (body) => {
      expect(await refused(body)).toMatch(/^invalid JSON: ./)
    },
  )

  test('bytes that are not UTF-8 are malformed JSON', async () => {
    const body = Buffer.concat([
      Buffer.from('{"tasks":[{"id":"'),
      Buffer.from([0xff]),
      Buffer.from('","type":"noop"}]}'),
    ])
    const response = await control.fetch('/tasks', { method: 'POST', body })
    expect(response.status).toBe(400)
    expect(((await response.json()) as ErrorResponse).error).toMatch(/^invalid JSON: ./)
  })

  test('bytes that are not UTF-8 are malformed JSON for POST /mcp, too', async () => {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const body = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"?"}}')
    body[body.indexOf('?')] = 0xff
    const response = await control.fetch('/mcp', { method: 'POST', headers, body })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ id: null, error: { code: -32_700 } })
  })

  test.each(['[]', '7'])('a body that is not an object: %s', async (body) => {
    expect(await refused(body)).toMatch(/^invalid JSON: ./)
  })

  test.each([
    [{ tasks: {} }, 'tasks: expected array'],
    [{ tasks: [{ id: 7, type: 'noop' }] }, 'tasks[0].id: expected string'],
    [{ tasks: [{ id: 'a', type: 'os', tool_name: 7 }] }, 'tasks[0].tool_name: expected string'],
    [{ tasks: [noop('a', { retry: '1' })] }, 'tasks[0].retry: expected integer'],
    ['{"tasks":[{"id":"a","type":"noop","params":1e400}]}', 'tasks[0].params: a number is out of range'],
    ['{"tasks":[{"id":"a","type":"mcp","input":{"a":[-1e400]}}]}', 'tasks[0].input: a number is out of range'],
    ['{"params":{"a":1e999},"tasks":[{"id":"a","type":"noop"}]}', 'params: a number is out of range'],
    [
      { tasks: [noop('a'), noop('b'), noop('c'), noop('d', { depends_on: 'a' })] },
      'tasks[3].depends_on: expected array of strings',
    ],
  ])('a field of the wrong JSON type is named: %j', async (body, detail) => {
    expect(await refused(body)).toStartWith(`invalid JSON: ${detail}`)
  })

  test('a timeout is an int64, also in the record', async () => {
    for (const timeout of ['9223372036854775807', '-9223372036854775808']) {
      const body = `{"tasks":[{"id":"int64","type":"noop","timeout":${timeout}}]}`
      const { status } = await control.fetch('/tasks', { method: 'POST', body })
      expect(status).toBe(202)
      await control.ended('int64')
      const record = await (await control.fetch('/tasks/int64')).text()
      const shown = BigInt(/"timeout":(-?\d+)/.exec(record)![1]!)
      expect(shown).toBe(BigInt.asIntN(64, shown))
    }
    expect(await refused('{"tasks":[{"id":"a","type":"noop","timeout":9223372036854779904}]}')).toBe(
      'invalid JSON: tasks[0].timeout: expected integer of milliseconds (30000)',
    )
  })
})

describe('check 2: tasks must be non-empty', () => {
  test.each(['null', '{"tasks": []}'])('%s is an empty graph', async (body) => {
    expect(await refused(body)).toContain('task graph is empty')
  })
})

describe('check 3: every task needs a non-empty id and type', () => {
  test('an id that no path can hold, as it is no Unicode, is refused', async () => {
    const error = 'task a\ud800: id has half of a character (a lone surrogate)'
    expect(await refused('{"tasks": [{"id": "a\\ud800", "type": "noop"}]}')).toContain(error)
    expect(await refused({ tasks: [noop('a\ud800')] })).toContain(error)
  })

  test('an id longer than MAX_TASK_ID_BYTES is refused, and its length told', async () => {
    const longest = Array.from({ length: MAX_TASK_ID_BYTES / 4 }, (_, i) => String.fromCodePoint(0x1_0000 + i)).join('')
    const text = `id has ${MAX_TASK_ID_BYTES + 1} bytes, at most ${MAX_TASK_ID_BYTES} are allowed`
    expect(await refused({ tasks: [noop(`${longest}x`)] })).toContain(text)
    const accepted = await control.post({ tasks: [noop(longest)] })
    expect([accepted.status, await accepted.json()]).toMatchObject([202, { task_ids: [longest] }])
  })

  test('a retry of 1.0 is an integer', async () => {
    expect((await control.post('{"tasks":[{"id":"one-point-zero","type":"noop","retry":1.0}]}')).status).toBe(202)
  })
})

describe('check 4: ids must be unique', () => {
  test('ids differ by case and by every character', async () => {
    await control.submit([noop('case'), noop('Case'), noop('case ')])
    expect((await control.ended('Case')).status).toBe('success')
  })
})

describe('check 5: every dependency must exist and must not be the task itself', () => {
  test('a task of an earlier graph is unknown to this one', async () => {
    await control.submit([noop('earlier')])
    expect(await refused({ tasks: [noop('later', { depends_on: ['earlier'] })] })).toContain(
      'task later depends on unknown task earlier',
    )
  })
})

describe('order of checks', () => {
  test('check 1 comes before check 2', async () => {
    expect(await refused('{"tasks": []')).toStartWith('invalid JSON: ')
  })

  test('nothing of a refused graph is stored', async () => {
    await refused({ tasks: [noop('unstored'), noop('unstored-too', { depends_on: ['ghost'] })] })
    expect((await control.fetch('/tasks/unstored')).status).toBe(404)
    expect((await control.list()).map((task) => task.id)).not.toContain('unstored')
  })
})

describe('an id that is in use', () => {
  test('answers 409 while its task is not terminal, after the seven checks, and nothing of that graph is stored', async () => {
    const first = await control.submit([gate.task('held'), noop('waiting', { depends_on: ['held'] })])
    await control.reached('held', 'running')
    for (const id of ['held', 'waiting']) {
      const response = await control.post({ tasks: [noop('bystander'), noop(id)] })
      expect(response.status).toBe(409)
      expect(await response.json()).toEqual({ error: expect.stringContaining(`task already active: ${id} (in graph `) })
    }
    expect(await refused({ tasks: [noop('held'), { id: 'bystander', type: 'nope' }] })).toContain('unknown task type')
    expect((await control.fetch('/tasks/bystander')).status).toBe(404)
    expect((await control.get('held')).graph_id).toBe(first.graph_id)

    gate.open()
    expect((await control.ended('waiting')).status).toBe('success')
    expect((await control.post({ tasks: [noop('held')] })).status).toBe(202)
  })

  test('is replaced where its stored task is terminal', async () => {
    const first = await control.submit([{ id: 'again', type: 'noop', params: { message: 'first' } }])
    await control.ended('again')
    const second = await control.submit([{ id: 'again', type: 'noop', params: { message: 'second' } }])
    expect(second.graph_id).not.toBe(first.graph_id)
    const task = await control.ended('again')
    expect(task).toMatchObject({ graph_id: second.graph_id, attempt: 1, result: { message: 'second' } })
    expect((await control.list()).filter((listed) => listed.id === 'again')).toEqual([task])
  })

  test('may be that of a task that failed or was skipped', async () => {
    const failing = { id: 'lost-before', type: 'os', tool_name: 'no-such-tool' }
    await control.submit([failing, noop('skipped-before', { depends_on: ['lost-before'] })])
    expect((await control.ended('skipped-before')).status).toBe('skipped')
    await control.submit([noop('lost-before'), noop('skipped-before', { depends_on: ['lost-before'] })])
    const task = await control.ended('skipped-before')
    expect(task.status).toBe('success')
    expect(task).not.toHaveProperty('error')
  })
})

describe('body too large', () => {
  const limit = 2048
  const graphOf = (bytes: number) => {
    const frame = JSON.stringify({ tasks: [noop('big', { params: { message: '' } })] })
    return JSON.stringify({ tasks: [noop('big', { params: { message: 'x'.repeat(bytes - frame.length) } })] })
  }
  const chunked = (text: string) =>
    new ReadableStream({
      start(controller) {
        for (let at = 0; at < text.length; at += 100) controller.enqueue(Buffer.from(text.slice(at, at + 100)))
        controller.close()
      },
    })

  let small: Control
  beforeAll(async () => {
    small = await startControl({ flags: ['--max-body-bytes', `${limit}`] })
  })
  afterAll(() => small.dispose())

  test.each(['content-length', 'chunked'])(
    '413, sent with %s; a body of exactly --max-body-bytes is not',
    async (how) => {
      const send = (bytes: number) => {
        const text = graphOf(bytes)
        return small.fetch('/tasks', { method: 'POST', body: how === 'chunked' ? chunked(text) : text })
      }
      expect((await send(limit)).status).toBe(202)
      await small.allEnded()
      const response = await send(limit + 1)
      expect(response.status).toBe(413)
      expect(response.headers.get('content-type')).toStartWith('application/json')
      expect(await response.json()).toEqual({ error: expect.any(String) })
    },
  )

  test('413 comes without waiting for the body, which may be 64 MiB by default', async () => {
    using client = await RawClient.connect(control)
    client.send(`POST /tasks HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${64 * 1024 * 1024 + 1}\r\n\r\n`)
    await until(
      () => client.received,
      (received) => received.startsWith('HTTP/1.1 413 ') && received.includes('{"error":'),
    )
    expect((await control.fetch('/health')).status).toBe(200)
  })
})
