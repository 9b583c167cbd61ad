/** What the client says to a person when something is refused: what is wrong, where, and what to do. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { startRuntime } from '../support/runtime.ts'
import { type TempDir, tempDir } from '../support/temp.ts'

let control: Control
let temp: TempDir
const client = (args: readonly string[], stdin?: string) => runClient(args, { url: control.url, stdin })
const newId = () => crypto.randomUUID()
const noop = (fields: object = {}) => ({ id: newId(), type: 'noop', ...fields })
const messageOf = async (args: readonly string[], stdin?: string) => (await client(args, stdin)).envelope.error?.message

beforeAll(async () => {
  temp = tempDir()
  control = await startControl()
})
afterAll(async () => {
  await control.dispose()
  temp[Symbol.dispose]()
})

describe('a graph in YAML', () => {
  const file = async (text: string): Promise<string> => {
    const path = join(temp.path, `${newId()}.yaml`)
    await Bun.write(path, text)
    return path
  }
  const head = 'name: n\ntasks:\n  - id: a\n    type: noop\n'

  test.each([
    ['depends_on: b', 'line 5, column 17', 'depends_on: expected array of strings, got "b"'],
    ['timeout: 30s', 'line 5, column 14', 'timeout: expected integer of milliseconds (30000), got "30s"'],
    [
      'backoff:\n      initail_ms: 3',
      'line 6, column 7',
      'backoff: unknown field "initail_ms" (did you mean "initial_ms"?)',
    ],
    [
      'backoff: {initail_ms: 3}',
      'line 5, column 15',
      'backoff: unknown field "initail_ms" (did you mean "initial_ms"?)',
    ],
    ['cache: {key: k, tll_ms: 3}', 'line 5, column 21', 'cache: unknown field "tll_ms" (did you mean "ttl_ms"?)'],
    ['secrets: {T: {nmae: s}}', 'line 5, column 19', 'secrets: unknown field "T.nmae" (did you mean "T.name"?)'],
    [
      ...(['annotations:\n      why: 7', 'line 5, column 17'] as const),
      'annotations: expected object of strings, got {"why":7}',
    ],
  ])('with a field of a wrong type (%j) names line, column, field and value', async (line, place, fault) => {
    const path = await file(`${head}    ${line}\n`)
    const expected = `${path}: ${place}: tasks[0].${fault}`
    for (const command of ['run', 'submit']) expect(await messageOf([command, path])).toBe(expected)
    const { envelope } = await client(['check', path])
    expect(envelope.data?.errors).toMatchObject([{ message: expected }])
  })

  test('with steps is told of tasks', async () => {
    const path = await file('steps:\n  - id: a\n    type: noop\ntasks: [{id: b, type: noop}]\n')
    expect(await messageOf(['run', path])).toBe('unknown field "steps" in graph (did you mean "tasks"?)')
  })

  test('with steps alone is told of tasks', async () => {
    const path = await file('steps:\n  - id: a\n    type: noop\n')
    const expected = 'task graph is empty (it has "steps": the list of tasks is "tasks")'
    expect(await messageOf(['run', path])).toBe(expected)
    expect(await messageOf(['submit', '-'], '{"steps": []}')).toBe(expected)
    expect((await client(['check', path])).envelope.data?.errors).toContainEqual({ message: expected })
  })
})

test('an id that is in use is told with its graph, and with the scope that ends the conflict', async () => {
  const held = { id: newId(), type: 'sleep', params: { duration_ms: 600_000 } }
  const { graph_id } = await control.submit([held])
  const scope = '"scope": "graph" gives the tasks of a graph ids of their own'
  const expected = `task already active: ${held.id} (in graph ${graph_id}; ${scope})`
  expect(await messageOf(['submit'], JSON.stringify({ tasks: [held] }))).toBe(expected)
  expect((await client(['cancel', held.id])).stderr).toBe('')
})

test('cancel says that a task, or a graph, had ended before', async () => {
  const task = noop()
  const { graph_id } = await control.submit([task])
  await control.ended(task.id)
  for (const id of [task.id, graph_id, `${graph_id}/${task.id}`]) {
    const { exitCode, stderr } = await client(['cancel', id])
    const line = `taskmill: ${id} had ended before (success): there was nothing to cancel\n`
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: line })
  }
})

test.each(['network', 'approve --who ada', 'reject --who ada'])('%s of a graph lists its tasks', async (command) => {
  const tasks = [noop(), noop()]
  const { graph_id } = await control.submit(tasks)
  for (const { id } of tasks) await control.ended(id)
  const { exitCode, envelope } = await client([...command.split(' '), graph_id])
  expect(exitCode).toBe(1)
  const message = `${graph_id} is a graph: name one of its tasks, such as ${graph_id}/${tasks[0]!.id}`
  expect(envelope.error).toMatchObject({ message, status_code: 404 })
  expect(envelope.data).toEqual({ graph_id, tasks: tasks.map(({ id }) => ({ id, status: 'success' })) })
})

test('a token that is wrong is called wrong, and one that is missing is asked for', async () => {
  await using locked = await startControl({ env: { SERVICE_TOKEN: 'sesame-42' } })
  const said = async (env: Record<string, string>) =>
    (await runClient(['list'], { url: locked.url, env })).envelope.error?.message
  expect(await said({ SERVICE_TOKEN: 'sesame-43' })).toBe('the token is wrong (correct SERVICE_TOKEN)')
  const needed = 'a token is needed: send Authorization: Bearer <token> (set SERVICE_TOKEN)'
  expect(await said({})).toBe(needed)
})

test('what the service says of its parameters is told in flags', async () => {
  const times = 'expected a duration before now (1h, 7d), or a time such as 2026-01-31T09:30:00Z'
  for (const name of ['since', 'until'])
    expect(await messageOf(['graphs', `--${name}`, 'yesterday'])).toBe(`invalid ${name} "yesterday": ${times}`)
  const cursor = 'invalid cursor "zzz": expected data.next_cursor of an earlier answer'
  for (const command of ['graphs', 'list']) expect(await messageOf([command, '--cursor', 'zzz'])).toBe(cursor)
  const { graph_id } = await control.submit([noop()])
  expect((await client(['wait', graph_id])).exitCode).toBe(0)
  const nothing = `nothing to run: all tasks of graph ${graph_id} succeeded (name tasks with --from)`
  expect(await messageOf(['rerun', graph_id])).toBe(nothing)
})

test('another service of ours is no control service', async () => {
  await using runtime = await startRuntime()
  const { envelope } = await runClient(['graphs'], { url: runtime.url })
  const message = `GET ${runtime.url}/graphs?limit=100 answered 404: is this the control service?`
  expect(envelope.error).toMatchObject({ message, status_code: 404 })
})

test('no request is told to a person where the service gave a reason', async () => {
  expect(await messageOf(['get', 'nobody'])).toBe('task not found: nobody')
  expect(await messageOf(['graph', 'nobody'])).toBe('graph not found: nobody')
  using server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('', { status: 404 }) })
  const url = `http://127.0.0.1:${server.port}`
  const { envelope } = await runClient(['get', 'x'], { url })
  expect(envelope.error?.message).toBe(`GET ${url}/tasks/x answered 404: is this the control service?`)
  void server.stop(true)
})

test.each([
  ['HTTP', 'http'],
  ['TLS', 'https'],
])('a port that speaks no %s is called so', async (protocol, scheme) => {
  using server = Bun.listen({
    ...{ hostname: '127.0.0.1', port: 0 },
    socket: { open: (socket) => void socket.end('SSH-2.0-OpenSSH_9.2\r\n'), data() {} },
  })
  const url = `${scheme}://127.0.0.1:${server.port}`
  const { envelope } = await runClient(['list'], { url })
  const why = `what listens there speaks no ${protocol} (check SERVICE_URL or --url)`
  expect(envelope.error?.message).toBe(`cannot reach the control service at ${url}: ${why}`)
})

test('check hints at a script that goes on after a fault', async () => {
  const tasks = [{ id: 'a', type: 'runtime.script', params: { script: 'make\ntar -cf a.tar a\n' } }]
  const hint = 'its script has 2 lines and goes on after one that fails: begin it with set -e'
  expect((await client(['check'], JSON.stringify({ tasks }))).stderr).toContain(`taskmill: task a: ${hint}\n`)
})
