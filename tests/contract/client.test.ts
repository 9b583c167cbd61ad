/**
 * The client as people and agents call it: the built executable against a real control service, and against servers
 * that are something else. Whatever happens, standard output is one JSON object and the exit code says which kind.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { builtProgram as binary } from '../../scripts/build.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { replicaMember } from '../support/on-database.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

let control: Control
const client = (args: readonly string[], options: Parameters<typeof runClient>[1] = {}) =>
  runClient(args, { url: control.url, ...options })
const graphOf = (...tasks: object[]) => JSON.stringify({ tasks })
const newId = () => crypto.randomUUID()

beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control[Symbol.asyncDispose]())

/** A server of the test that is not ours; every request is answered by `answer`. */
function foreignServer(answer: (request: Request) => Response | Promise<Response>): { url: string } & Disposable {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: answer })
  return { url: `http://127.0.0.1:${server.port}`, [Symbol.dispose]: () => void server.stop(true) }
}

describe('submit', () => {
  test('sends the graph on standard input; data equals the HTTP response body', async () => {
    const id = newId()
    const { exitCode, envelope } = await client(['submit'], { stdin: graphOf({ id, type: 'noop' }) })
    expect(exitCode).toBe(0)
    expect(envelope).toEqual({ ok: true, data: { accepted: 1, task_ids: [id], graph_id: expect.any(String) } })
  })

  test.each(['FILE', '-', '--file FILE', '-file FILE', '--file=FILE', '-file=FILE', '--file -'])(
    'takes the graph from %s',
    async (flags) => {
      using dir = tempDir()
      const graph = graphOf({ id: newId(), type: 'noop' })
      const file = join(dir.path, 'graph.json')
      writeFileSync(file, graph)
      const args = flags.split(' ').map((flag) => flag.replace('FILE', file))
      const { exitCode, envelope } = await client(['submit', ...args], { stdin: args.includes('-') ? graph : '' })
      expect({ exitCode, ok: envelope.ok }).toEqual({ exitCode: 0, ok: true })
    },
  )

  test('a refusal is the failure envelope with the HTTP status and response body, exit code 1', async () => {
    const { exitCode, envelope } = await client(['submit'], { stdin: '{"tasks": []}' })
    const body = JSON.stringify({ error: 'task graph is empty' })
    const message = 'task graph is empty'
    expect(envelope).toEqual({ ok: false, error: { message, status_code: 400, body } })
    expect(exitCode).toBe(1)
  })

  test('broken JSON is judged by the service', async () => {
    const { exitCode, envelope } = await client(['submit'], { stdin: '{"tasks": [' })
    expect({ exitCode, status: envelope.error?.status_code }).toEqual({ exitCode: 1, status: 400 })
    expect(envelope.error?.message).toContain('invalid JSON')
  })

  test('empty standard input is a failure that says what was expected', async () => {
    const { exitCode, envelope } = await client(['submit'])
    const message = 'standard input is empty: expected a task graph'
    expect({ exitCode, envelope }).toEqual({
      exitCode: 1,
      envelope: { ok: false, error: { message, status_code: 0, body: '' } },
    })
  })

  test('a missing file is a failure that names it, exit code 1', async () => {
    const { exitCode, envelope } = await client(['submit', '/no/such/graph.json'])
    expect({ exitCode, message: envelope.error?.message }).toEqual({
      exitCode: 1,
      message: 'cannot read /no/such/graph.json: no such file',
    })
  })
})

describe('capabilities and tools', () => {
  test.each(['capabilities', 'tools'])('%s: data equals the HTTP response body', async (subcommand) => {
    const body = (await (await control.fetch(`/adapters/${subcommand}`)).json()) as object
    const { exitCode, envelope } = await client([subcommand])
    expect({ exitCode, envelope }).toEqual({ exitCode: 0, envelope: { ok: true, data: body as never } })
    expect(body).toMatchObject({ schema_version: 'adapter.v1' })
  })
})

describe('act and translate', () => {
  const action = (action_id: string, kind = 'noop') => JSON.stringify({ action_id, action: { kind } })

  test('act sends the action on standard input and it runs; data equals the HTTP response body', async () => {
    const id = newId()
    const { exitCode, envelope } = await client(['act'], { stdin: action(id) })
    expect(exitCode).toBe(0)
    expect(envelope).toEqual({
      ok: true,
      data: {
        accepted: 1,
        task_ids: [id],
        task_graph: { tasks: [expect.objectContaining({ id, type: 'os', tool_name: 'noop' })] },
        translation_trace: expect.objectContaining({ source_kind: 'noop', normalized_kind: 'os.noop' }),
      },
    })
    expect((await client(['wait', id])).exitCode).toBe(0)
  })

  test('translate shows the same graph and stores nothing; submit takes it', async () => {
    const id = newId()
    const { exitCode, envelope } = await client(['translate'], { stdin: action(id) })
    expect({ exitCode, accepted: envelope.data?.accepted }).toEqual({ exitCode: 0, accepted: 0 })
    expect((await control.fetch(`/tasks/${id}`)).status).toBe(404)
    const { exitCode: submitted } = await client(['submit'], { stdin: JSON.stringify(envelope.data?.task_graph) })
    expect(submitted).toBe(0)
    expect((await control.ended(id)).status).toBe('success')
  })

  test('empty standard input is a failure that says what was expected', async () => {
    const { exitCode, envelope } = await client(['act'])
    expect(exitCode).toBe(1)
    expect(envelope.error?.message).toBe('standard input is empty: expected an action')
  })
})

describe('wait', () => {
  test('answers {tasks, all_terminal, deadline_rfc3339} when every task has ended, whatever came of it', async () => {
    const [good, bad] = [newId(), newId()]
    const skipped = newId()
    await control.submit([
      { id: good, type: 'sleep', params: { duration_ms: 50 } },
      { id: bad, type: 'file', params: { action: 'read', path: 'nothing' } },
      { id: skipped, type: 'noop', depends_on: [bad] },
    ])
    const before = Date.now()
    const { exitCode, envelope } = await client(['wait', good, bad, '--timeout', '20s', skipped])
    expect(exitCode).toBe(0)
    expect(envelope.data).toEqual({
      tasks: [
        { id: good, status: 'success' },
        { id: bad, status: 'failed' },
        { id: skipped, status: 'skipped' },
      ],
      all_terminal: true,
      deadline_rfc3339: expect.any(String),
    })
    const deadline = Date.parse(String(envelope.data?.deadline_rfc3339))
    expect(deadline).toBeGreaterThanOrEqual(before + 20_000)
    expect(deadline).toBeLessThanOrEqual(Date.now() + 20_000)
  })

  test('takes ids with --task-ids a,b, and odd ones as arguments', async () => {
    const odd = `a/b %2F ü? ${newId()}`
    const plain = newId()
    await control.submit([
      { id: odd, type: 'noop' },
      { id: plain, type: 'noop' },
    ])
    const { exitCode, envelope } = await client(['wait', '--task-ids', plain, odd])
    expect(exitCode).toBe(0)
    expect(envelope.data?.tasks).toEqual([
      { id: odd, status: 'success' },
      { id: plain, status: 'success' },
    ])
  })

  test.each(['.', '..'])('reaches a task of the id %s, which is a step elsewhere in paths', async (id) => {
    await control.submit([{ id, type: 'sleep', params: { duration_ms: 600_000 } }])
    const cancelled = await client(['cancel', id, '--wait'])
    expect(cancelled.envelope.data).toMatchObject({ tasks: [{ task_id: id }], all_terminal: true })
    const { exitCode, envelope } = await client(['wait', id])
    expect(exitCode).toBe(0)
    expect(envelope.data?.tasks).toEqual([{ id, status: 'cancelled' }])
    const away = await client(['wait', id], { url: `http://127.0.0.1:${await freePort()}` })
    expect(away.envelope.error?.message).toContain('connection refused')
  })

  test('running out of time prints ok: true with all_terminal: false and exits 3', async () => {
    const id = newId()
    await control.submit([{ id, type: 'sleep', params: { duration_ms: 600_000 } }])
    const { exitCode, envelope } = await client(['wait', id, '--timeout=2s'])
    expect({ exitCode, ok: envelope.ok }).toEqual({ exitCode: 3, ok: true })
    expect(envelope.data).toMatchObject({ tasks: [{ id, status: 'running' }], all_terminal: false })
  })

  test('keeps its deadline against a service that never answers', async () => {
    const { promise, resolve } = Promise.withResolvers<Response>()
    using server = foreignServer(() => promise)
    const { exitCode, envelope } = await client(['wait', 'a', '--timeout', '50ms'], { url: server.url })
    resolve(new Response())
    expect({ exitCode, ok: envelope.ok, all: envelope.data?.all_terminal }).toEqual({
      exitCode: 3,
      ok: true,
      all: false,
    })
  })

  test('an unknown id is a failure, exit code 1', async () => {
    const { exitCode, envelope } = await client(['wait', 'nobody'])
    expect({ exitCode, status: envelope.error?.status_code }).toEqual({ exitCode: 1, status: 404 })
  })

  test('asks again at the interval where the service does not hold requests', async () => {
    let looks = 0
    using server = foreignServer(() => Response.json({ id: 'a', status: ++looks < 4 ? 'running' : 'success' }))
    const { exitCode, envelope } = await client(['wait', 'a', '--interval', '5ms'], { url: server.url })
    expect({ exitCode, looks }).toEqual({ exitCode: 0, looks: 4 })
    expect(envelope.data).toMatchObject({ tasks: [{ id: 'a', status: 'success' }], all_terminal: true })
  })

  test('an interrupt still prints one JSON object', async () => {
    const id = newId()
    await control.submit([{ id, type: 'sleep', params: { duration_ms: 600_000 } }])
    const { promise: asked, resolve } = Promise.withResolvers<void>()
    using server = foreignServer(async (request) => {
      resolve()
      return fetch(control.url + new URL(request.url).pathname + new URL(request.url).search)
    })
    const child = Bun.spawn([await binary('taskmill'), 'wait', id], {
      env: testEnvironment({ SERVICE_URL: server.url }),
      stdout: 'pipe',
      stderr: 'ignore',
    })
    await asked
    child.kill('SIGINT')
    expect(JSON.parse(await new Response(child.stdout).text())).toMatchObject({
      ok: false,
      error: { message: 'interrupted by SIGINT' },
    })
    expect(await child.exited).toBe(130)
  })
})

describe('cancel', () => {
  test('data is the immediate cancel response; several ids are joined', async () => {
    const [one, two] = [newId(), newId()]
    await control.submit([one, two].map((id) => ({ id, type: 'sleep', params: { duration_ms: 600_000 } })))
    await control.reached(two, 'running')
    const { exitCode, envelope } = await client(['cancel', one, '--task-ids', two])
    expect(exitCode).toBe(0)
    const entry = (id: string) => ({
      task_id: id,
      status: 'cancelling',
      runtime: { status: 'cancelling', error: { code: 'cancelled' } },
      event: { type: 'task_cancel_requested', task_id: id },
    })
    expect(envelope.data).toEqual({ tasks: [entry(one), entry(two)] })
  })

  test('with --wait, data.wait has the wait shape and data.all_terminal equals data.wait.all_terminal', async () => {
    const id = newId()
    await control.submit([{ id, type: 'sleep', params: { duration_ms: 600_000 } }])
    const { exitCode, envelope } = await client(['cancel', '--wait', id])
    expect(exitCode).toBe(0)
    expect(envelope.data).toMatchObject({
      tasks: [{ task_id: id }],
      wait: { tasks: [{ id, status: 'cancelled' }], all_terminal: true, deadline_rfc3339: expect.any(String) },
      all_terminal: true,
    })
  })

  test('all ids are tried; one that is unknown makes the exit code 1', async () => {
    const id = newId()
    await control.submit([{ id, type: 'sleep', params: { duration_ms: 600_000 } }])
    const { exitCode, envelope } = await client(['cancel', 'nobody', id])
    expect({ exitCode, status: envelope.error?.status_code }).toEqual({ exitCode: 1, status: 404 })
    expect(envelope.data).toMatchObject({ tasks: [{ task_id: id }] })
    expect((await control.ended(id)).status).toBe('cancelled')
  })

  test('--wait that runs out of time exits 3', async () => {
    using server = foreignServer((request) =>
      request.method === 'POST'
        ? Response.json({ tasks: [{ task_id: 'a', status: 'cancelling' }] }, { status: 202 })
        : Response.json({ id: 'a', status: 'cancelling' }),
    )
    const { exitCode, envelope } = await client(['cancel', 'a', '--wait', '--timeout', '50ms'], { url: server.url })
    expect({ exitCode, all: envelope.data?.all_terminal }).toEqual({ exitCode: 3, all: false })
  })
})

describe('health', () => {
  test('data equals the HTTP response body', async () => {
    const { exitCode, envelope } = await client(['health'])
    expect(exitCode).toBe(0)
    expect(envelope).toEqual({
      ok: true,
      data: {
        status: 'ok',
        version: 'v1.0.0',
        uptime: expect.stringMatching(/^(\d+h)?(\d+m)?\d+s$/),
        ...replicaMember,
      },
    })
  })

  test('a refused connection is a failure without an HTTP answer, exit code 1', async () => {
    const { exitCode, envelope } = await client(['health'], { url: 'http://127.0.0.1:1' })
    expect(exitCode).toBe(1)
    expect(envelope.error).toEqual({ message: expect.stringContaining('connection refused'), status_code: 0, body: '' })
  })

  test('HTML from a proxy is a failure that shows it', async () => {
    const page = '<html><body>Please log in</body></html>'
    using server = foreignServer(() => new Response(page, { headers: { 'content-type': 'text/html' } }))
    const { exitCode, envelope } = await client(['health'], { url: server.url })
    expect({ exitCode, ...envelope.error }).toEqual({
      exitCode: 1,
      message: `GET ${server.url}/health answered with text/html instead of a JSON object: is this the control service?`,
      status_code: 200,
      body: page,
    })
  })

  test.each(['null', '[]', '"ok"', '{"status":'])('the answer %s is no JSON object', async (body) => {
    using server = foreignServer(() => new Response(body))
    const { exitCode, envelope } = await client(['health'], { url: server.url })
    expect({ exitCode, body: envelope.error?.body }).toEqual({ exitCode: 1, body })
  })

  test('an HTTP error of something else is a failure with its status', async () => {
    using server = foreignServer(() => new Response('bad gateway', { status: 502 }))
    const { exitCode, envelope } = await client(['health'], { url: server.url })
    expect({ exitCode, ...envelope.error }).toMatchObject({ exitCode: 1, status_code: 502, body: 'bad gateway' })
  })

  test('an endless answer is cut off', async () => {
    const chunk = new Uint8Array(1024 * 1024).fill(0x61)
    using server = foreignServer(() => new Response(new ReadableStream({ pull: (stream) => stream.enqueue(chunk) })))
    const { exitCode, envelope } = await client(['health'], { url: server.url })
    expect(exitCode).toBe(1)
    expect(envelope.error?.message).toContain('answered with more than')
    expect(envelope.error?.body.length).toBe(64 * 1024)
  })

  test('an answer that breaks off is a failure', async () => {
    const server = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data(socket) {
          socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\ncontent-type: application/json\r\n\r\n{"status":')
        },
      },
    })
    const { exitCode, envelope } = await client(['health'], { url: `http://127.0.0.1:${server.port}` })
    server.stop(true)
    expect({ exitCode, ok: envelope.ok, status: envelope.error?.status_code }).toEqual({
      exitCode: 1,
      ok: false,
      status: 0,
    })
  })

  test('SERVICE_TOKEN, where set, is sent as Authorization: Bearer', async () => {
    using server = foreignServer((request) => Response.json({ authorization: request.headers.get('authorization') }))
    const secret = await client(['health'], { url: server.url, env: { SERVICE_TOKEN: 's3cret' } })
    expect(secret.envelope.data).toEqual({ authorization: 'Bearer s3cret' })
    const open = await client(['health'], { url: server.url })
    expect(open.envelope.data).toEqual({ authorization: null })
  })

  test('a base address may have a path and a slash at its end', async () => {
    using server = foreignServer((request) => Response.json({ path: new URL(request.url).pathname }))
    const { envelope } = await client(['health'], { url: `${server.url}/under/` })
    expect(envelope.data).toEqual({ path: '/under/health' })
  })

  test('a proxy for the outside world is not asked for this machine', async () => {
    const { exitCode } = await client(['health'], {
      env: { HTTP_PROXY: 'http://127.0.0.1:1', http_proxy: 'http://127.0.0.1:1' },
    })
    expect(exitCode).toBe(0)
  })
})

describe('the command line', () => {
  test.each([
    [[], 'no subcommand (see --help)'],
    [
      ['polka'],
      'unknown subcommand "polka" (there are: run, submit, check, wait, watch, rerun, retry, patch, get, list, graphs, audit, graph, logs, files, cp, network, approve, reject, signal, pause, resume, pauses, cancel, delete, act, translate, tools, capabilities, schedule, runtimes, token, secrets, health, open, up, status, down, doctor, ensure-running, mcp, install-mcp, schema, version, help)',
    ],
    [['wiat'], 'unknown subcommand "wiat" (did you mean "wait"?)'],
    [['kill', 'a'], 'unknown subcommand "kill" (did you mean "cancel"?)'],
    [['-o=table', 'health'], 'flags come after the subcommand: taskmill SUBCOMMAND -o=table'],
    [['wait', 'a', '--tiemout', '2m'], 'unknown flag --tiemout (did you mean --timeout?)'],
    [['help', 'wiat'], 'unknown subcommand "wiat" (did you mean "wait"?)'],
    [['wait', ''], 'a task id is empty'],
    [['submit', 'graph.json', 'b'], 'unexpected argument "b" for submit (see submit --help)'],
    [['submit', 'graph.json', '--file', 'b'], 'two files: graph.json and --file b'],
    [['get'], 'no task id: give it as argument'],
    [['wait'], 'no task ids: give them as arguments or with --task-ids a,b'],
    [['delete'], 'no task ids: give them as arguments or with --task-ids a,b'],
    [
      ['wait', 'a', '--timeout', 'soon'],
      'invalid value "soon" for --timeout: expected a duration from 0s to 720h, such as 500ms, 30s or 2m',
    ],
  ])('%j is a usage error: the failure envelope and exit code 2', async (args, message) => {
    const { exitCode, envelope } = await client(args)
    expect({ exitCode, envelope }).toEqual({
      exitCode: 2,
      envelope: { ok: false, error: { message, status_code: 0, body: '' } },
    })
  })

  test.each(['127.0.0.1:8080', 'ftp://127.0.0.1'])('a malformed SERVICE_URL (%s) is a usage error', async (url) => {
    const { exitCode, envelope } = await client(['health'], { url })
    expect(exitCode).toBe(2)
    expect(envelope.error?.message).toContain('SERVICE_URL')
  })

  test.each([[['--version']], [['version']]])('%j is the one JSON object', async (args) => {
    const { exitCode, envelope } = await client(args)
    expect({ exitCode, envelope }).toEqual({
      exitCode: 0,
      envelope: {
        ok: true,
        data: {
          version: expect.stringMatching(/^\d+\.\d+\.\d+/),
          commit: expect.stringMatching(/^([0-9a-f]{12,40}(-dirty)?|unknown)$/),
          build: `${process.platform}-${process.arch}`,
          bun: Bun.version,
        },
      },
    })
  })

  test.each([[['--help']], [['wait', '--help']]])('%j goes to standard error, exit code 0', async (args) => {
    const { exitCode, stdout, stderr } = await client(args)
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' })
    expect(stderr).toContain('Usage: taskmill')
  })
})

describe('help', () => {
  test('is the text of --help as data', async () => {
    const { exitCode, envelope, stderr } = await client(['help'])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(envelope).toEqual({ ok: true, data: { help: (await client(['--help'])).stderr.trimEnd() } })
  })

  test('of a subcommand is the text of its --help', async () => {
    const { envelope } = await client(['help', 'wait'])
    expect(envelope.data?.help).toBe((await client(['wait', '--help'])).stderr.trimEnd())
  })

  test('with -o table is the text', async () => {
    const { stdout } = await client(['help', '-o', 'table'])
    expect(stdout).toBe((await client(['--help'])).stderr)
  })
})

describe('get', () => {
  test('data equals the HTTP response body', async () => {
    const id = `a/b ${newId()}`
    await control.submit([{ id, type: 'shell', params: { command: 'echo', args: ['hello'] } }])
    const record = await control.ended(id)
    const { exitCode, envelope } = await client(['get', id])
    expect({ exitCode, envelope: envelope as object }).toEqual({ exitCode: 0, envelope: { ok: true, data: record } })
  })
})

describe('list', () => {
  test('answers the tasks that the filters leave, in pages', async () => {
    const bad = { type: 'file', params: { action: 'read', path: 'nothing' } }
    const ids = [newId(), newId(), newId()]
    const { graph_id } = await control.submit([...ids.map((id) => ({ id, ...bad })), { id: newId(), type: 'noop' }])
    for (const id of ids) await control.ended(id)
    const filter = ['list', '--graph', graph_id, '--status', 'failed,skipped', '--type', 'file', '--limit', '2']
    const first = await client(filter)
    expect(first.exitCode).toBe(0)
    expect(first.envelope.data).toEqual({
      tasks: [expect.objectContaining({ id: ids[0] }), expect.objectContaining({ id: ids[1] })],
      next_cursor: expect.any(String),
    })
    const second = await client([...filter, '--cursor', String(first.envelope.data?.next_cursor)])
    expect(second.envelope.data).toEqual({ tasks: [expect.objectContaining({ id: ids[2] })] })
  })

  test('--graph lists the tasks of a graph with ids of its own, too', async () => {
    const answer = await control.post({ scope: 'graph', tasks: [{ id: 'scoped', type: 'noop' }] })
    const { graph_id } = (await answer.json()) as { graph_id: string }
    const { envelope } = await client(['list', '--graph', graph_id])
    expect(envelope.data).toEqual({ tasks: [expect.objectContaining({ id: 'scoped', graph_id })] })
  })

  test('a value that the service refuses is a failure with its words', async () => {
    const { exitCode, envelope } = await client(['list', '--status', 'faild'])
    expect({ exitCode, status: envelope.error?.status_code }).toEqual({ exitCode: 1, status: 400 })
    expect(envelope.error?.message).toContain('did you mean "failed"?')
  })

  test('something else than an array is a failure', async () => {
    using server = foreignServer(() => Response.json({ tasks: [] }))
    const { exitCode, envelope } = await client(['list'], { url: server.url })
    expect(exitCode).toBe(1)
    expect(envelope.error?.message).toContain('instead of a JSON array: is this the control service?')
  })
})

describe('delete', () => {
  test('removes the records; all ids are tried, one that is unknown makes the exit code 1', async () => {
    const [one, two] = [newId(), newId()]
    await control.submit([one, two].map((id) => ({ id, type: 'noop' })))
    for (const id of [one, two]) await control.ended(id)
    const { exitCode, envelope } = await client(['delete', one, 'nobody', '--task-ids', two])
    expect({ exitCode, status: envelope.error?.status_code }).toEqual({ exitCode: 1, status: 404 })
    expect(envelope.data).toEqual({ deleted: [one, two] })
    for (const id of [one, two]) expect((await control.fetch(`/tasks/${encodeURIComponent(id)}`)).status).toBe(404)
  })

  test('of known tasks exits 0', async () => {
    const { id } = await control.run({ type: 'noop' })
    const { exitCode, envelope } = await client(['delete', id])
    expect({ exitCode, envelope }).toEqual({ exitCode: 0, envelope: { ok: true, data: { deleted: [id] } } })
  })
})

describe('standard output', () => {
  const shell = async (pipeline: string) => {
    const child = Bun.spawn(['sh', '-c', pipeline, 'sh', await binary('taskmill')], {
      env: testEnvironment({ SERVICE_URL: control.url }),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    return { exitCode: await child.exited, stdout, stderr }
  }

  test('that is full is an error, in words', async () => {
    const { exitCode, stderr } = await shell('"$1" health > /dev/full')
    expect({ exitCode, stderr }).toEqual({
      exitCode: 1,
      stderr: expect.stringContaining('cannot write the answer to standard output'),
    })
    expect(await shell('"$1" schema > /dev/full')).toEqual({
      ...{ exitCode: 1, stdout: '' },
      stderr: expect.stringMatching(/^taskmill: cannot write the schema to standard output: ENOSPC/),
    })
  })

  test('that nobody reads any more ends the client without a trace of ours', async () => {
    const { stderr } = await shell('{ "$1" wait $(seq 1 3000 | sed s/.*/nobody/) ; "$1" health; } | true')
    expect(stderr).not.toContain('at ')
  })

  test('arrives whole through a slow pipe, however large', async () => {
    const ids = Array.from({ length: 20_000 }, (_, i) => `slow-pipe-${i}-${'x'.repeat(20)}`)
    using dir = tempDir()
    const file = join(dir.path, 'graph.json')
    writeFileSync(file, graphOf(...ids.map((id) => ({ id, type: 'noop' }))))
    const { stdout } = await shell(`"$1" submit --file ${file} | { sleep 0.2; cat; }`)
    expect(JSON.parse(stdout).data.task_ids).toEqual(ids)
  })
})
