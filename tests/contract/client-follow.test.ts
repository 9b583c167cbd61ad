/**
 * `taskmill run` and `taskmill watch`: against a real service, through its restart, and against services of the test that
 * drop connections or have no events.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { builtProgram as binary } from '../../scripts/build.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { reading } from '../support/reading.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { startInTerminal } from '../support/terminal.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

let control: Control
const client = (args: readonly string[], options: Parameters<typeof runClient>[1] = {}) =>
  runClient(args, { url: control.url, ...options })

beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control[Symbol.asyncDispose]())

const bad = { type: 'file', params: { action: 'read', path: 'nothing' } }
const sleeping = { type: 'sleep', params: { duration_ms: 600_000 } }
const graphOf = (...tasks: object[]) => JSON.stringify({ tasks })

describe('run', () => {
  test('submits a file, shows each change on standard error, prints one object at the end', async () => {
    using dir = tempDir()
    const file = join(dir.path, 'graph.json')
    writeFileSync(file, graphOf({ id: 'first', type: 'noop' }, { id: 'second', type: 'noop', depends_on: ['first'] }))
    const { exitCode, envelope, stderr } = await client(['run', file])
    const graphId = envelope.data?.graph_id
    expect({ exitCode, envelope: envelope as object }).toEqual({
      exitCode: 0,
      envelope: {
        ok: true,
        data: {
          graph_id: expect.any(String),
          state: 'success',
          tasks: [
            { id: 'first', status: 'success', duration_ms: expect.any(Number) },
            { id: 'second', status: 'success', duration_ms: expect.any(Number) },
          ],
        },
      },
    })
    expect(stderr).toStartWith(` taskmill  runs the 2 tasks of ${file} on ${control.url}\n`)
    expect(stderr).toMatch(/\n +\d+\.\d\ds {2}second: success\n$/)
    expect(((await (await control.fetch(`/graphs/${graphId}`)).json()) as GraphDetails).state).toBe('success')
  })

  test('the same file runs again, also at the same time', async () => {
    const graph = graphOf({ id: 'same', ...sleeping })
    const runs = [1, 2].map(() => client(['run', '--timeout', '2500ms'], { stdin: graph }))
    const [one, two] = await Promise.all(runs)
    expect([one?.exitCode, two?.exitCode]).toEqual([3, 3])
    expect(one?.envelope.data).toMatchObject({ state: 'running', tasks: [{ id: 'same', status: 'running' }] })
    expect(one?.envelope.data?.graph_id).not.toBe(two?.envelope.data?.graph_id)
  })

  test('a service that knows no dry run and no scope gets the graph as it is', async () => {
    const bodies: string[] = []
    using server = foreignServer(async (request) => {
      if (request.method === 'GET') return Response.json({ ...endedGraph, tasks: [] })
      if (new URL(request.url).search !== '')
        return Response.json({ error: 'unknown query parameter "dry_run"' }, { status: 400 })
      bodies.push(await request.text())
      if (bodies.length > 1) return Response.json({ accepted: 1, task_ids: ['a'], graph_id: 'g' }, { status: 202 })
      return Response.json({ error: 'unknown field "scope" in graph' }, { status: 400 })
    })
    const graph = graphOf({ id: 'a', type: 'noop' })
    const { exitCode, envelope } = await client(['run'], { stdin: graph, url: server.url })
    expect({ exitCode, data: envelope.data }).toMatchObject({ exitCode: 0, data: { graph_id: 'g', state: 'success' } })
    expect(bodies).toEqual([graph.replace('{', '{"scope": "graph", '), graph])
  })

  test('exits 1 if a task failed, with its error', async () => {
    const { exitCode, envelope } = await client(['run'], {
      stdin: graphOf({ id: 'a', ...bad }, { id: 'b', type: 'noop', depends_on: ['a'] }),
    })
    expect({ exitCode, ok: envelope.ok }).toEqual({ exitCode: 1, ok: true })
    expect(envelope.data).toMatchObject({
      state: 'failed',
      tasks: [
        { id: 'a', status: 'failed', error: expect.stringContaining('nothing') },
        { id: 'b', status: 'skipped', error: 'dependency a failed' },
      ],
    })
  })

  test('exits 1 if the graph is cancelled meanwhile', async () => {
    const running = client(['run'], { stdin: JSON.stringify({ name: 'to-cancel', tasks: [{ id: 'a', ...sleeping }] }) })
    const [graph] = await until(
      async () => (await (await control.fetch('/graphs?name=to-cancel')).json()) as { graph_id: string }[],
      (graphs) => graphs.length === 1,
    )
    const cancelled = await client(['cancel', graph!.graph_id])
    expect({ exitCode: cancelled.exitCode, tasks: cancelled.envelope.data?.tasks }).toMatchObject({
      exitCode: 0,
      tasks: [{ task_id: 'a' }],
    })
    const { exitCode, envelope } = await running
    expect({ exitCode, data: envelope.data }).toMatchObject({ exitCode: 1, data: { state: 'cancelled' } })
  })

  test('tells what the service refuses, and what it warns of', async () => {
    const refused = await client(['run'], { stdin: '{"tasks": []}' })
    expect({ exitCode: refused.exitCode, message: refused.envelope.error?.message }).toEqual({
      exitCode: 1,
      message: 'task graph is empty',
    })
    const tolerated = { id: 'a', type: 'shell', params: {}, continue_on_error: true }
    const warned = await client(['run'], { stdin: graphOf(tolerated) })
    expect(warned.exitCode).toBe(0)
    expect(warned.stderr).toContain('taskmill: task a will fail: ')
  })

  describe('a graph that is certain to fail', () => {
    const denied = (id: string, more: object = {}) => ({ id, type: 'shell', params: { command: 'rm' }, ...more })
    const named = async (name: string) => (await control.fetch(`/graphs?name=${name}`)).json()

    test('is refused with what check says, and submitted with --force', async () => {
      const graph = {
        name: 'doomed',
        tasks: [denied('a'), { id: 'b', type: 'sleep', params: { duration_ms: 'long' } }],
      }
      const stdin = JSON.stringify(graph)
      const checked = await client(['check'], { stdin })
      expect([checked.exitCode, checked.envelope.data]).toMatchObject([
        1,
        { valid: false, errors: ['a', 'b'].map((task_id) => ({ task_id, fails: true })) },
      ])
      const refused = await client(['run'], { stdin })
      const { errors } = checked.envelope.data as { errors: { message: string }[] }
      expect([refused.exitCode, refused.envelope]).toEqual([
        1,
        {
          ok: false,
          error: {
            message: `nothing was submitted, because the graph is certain to fail: ${errors[0]!.message} (and 1 more): correct it, or submit it as it is with --force`,
            ...{ status_code: 0, body: '' },
          },
          data: { errors },
        },
      ])
      expect(await named('doomed')).toEqual([])
      const forced = await client(['run', '--force'], { stdin })
      expect([forced.exitCode, forced.envelope.data?.state]).toEqual([1, 'failed'])
      expect(forced.stderr).toContain('taskmill: task a will fail: ')
      expect(await named('doomed')).toHaveLength(1)
    })

    test('is run if its file says that it is meant to fail', async () => {
      const stdin = graphOf(denied('a', { annotations: { expect: 'failed' } }))
      const checked = await client(['check'], { stdin })
      expect([checked.exitCode, checked.envelope.data]).toMatchObject([
        0,
        { valid: true, errors: [], warnings: [{ task_id: 'a', message: expect.stringContaining('rm') }] },
      ])
      const { exitCode, envelope } = await client(['run'], { stdin })
      expect([exitCode, envelope.data?.state]).toEqual([0, 'failed'])
    })

    test('is run if its file says that another failure skips the task', async () => {
      const stdin = graphOf(
        denied('a', { annotations: { expect: 'failed' } }),
        denied('b', { depends_on: ['a'], annotations: { expect: 'skipped' } }),
      )
      const checked = await client(['check'], { stdin })
      expect([checked.exitCode, checked.envelope.data?.errors]).toEqual([0, []])
      const { exitCode, envelope } = await client(['run'], { stdin })
      expect([exitCode, envelope.data?.tasks]).toMatchObject([0, [{ status: 'failed' }, { status: 'skipped' }]])
    })
  })
})

describe('watch', () => {
  test('knows what the annotations say, as run does', async () => {
    const annotations = { title: 'Reads what is not there', expect: 'failed' }
    const [meant, after] = [crypto.randomUUID(), crypto.randomUUID()]
    const { graph_id } = await control.submit([
      { id: meant, ...bad, annotations },
      { id: after, type: 'noop', depends_on: [meant] },
    ])
    const { exitCode, envelope } = await client(['watch', graph_id])
    expect({ exitCode, data: envelope.data }).toMatchObject({ exitCode: 0, data: { state: 'failed' } })
    const run = await startInTerminal(['watch', graph_id], { url: control.url, columns: 200 })
    expect(await run.exited).toBe(0)
    expect(run.output()).toContain('1 failed on purpose')
    const { graph_id: surprise } = await control.submit([{ id: crypto.randomUUID(), ...bad }])
    expect((await client(['watch', surprise])).exitCode).toBe(1)
  })

  test('follows a graph that was submitted before', async () => {
    const id = crypto.randomUUID()
    const { graph_id } = await control.submit([{ id, type: 'sleep', params: { duration_ms: 300 } }])
    const { exitCode, envelope, stderr } = await client(['watch', graph_id])
    expect({ exitCode, data: envelope.data }).toMatchObject({
      exitCode: 0,
      data: { graph_id, state: 'success', tasks: [{ id, status: 'success' }] },
    })
    expect(stderr).toContain(`  ${id}: success\n`)
  })

  test('of an unknown graph is a failure', async () => {
    const { exitCode, envelope, stderr } = await client(['watch', 'nobody'])
    expect({ exitCode, status: envelope.error?.status_code }).toEqual({ exitCode: 1, status: 404 })
    expect(envelope).not.toHaveProperty('data')
    expect(stderr).not.toContain('goes on')
  })

  test('goes on through a restart of the service', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const flags = ['--addr', `127.0.0.1:${await freePort()}`]
    await using before = await startControl({ dataDir, flags })
    using gate = new Gate()
    const { graph_id } = await before.submit([gate.task('a'), { id: 'b', type: 'noop', depends_on: ['a'] }])
    const child = Bun.spawn([await binary('taskmill'), 'watch', graph_id], {
      env: testEnvironment({ SERVICE_URL: before.url }),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const shown = reading(new Response(child.stderr))
    await until(
      () => shown.state.received,
      (text) => text.includes('a: running'),
    )
    await before.stop('SIGKILL')
    await using _after = await startControl({ dataDir, flags })
    gate.open()
    const { data } = JSON.parse(await new Response(child.stdout).text())
    expect({ exitCode: await child.exited, data }).toMatchObject({
      exitCode: 0,
      data: {
        state: 'success',
        tasks: [
          { id: 'a', status: 'success' },
          { id: 'b', status: 'success' },
        ],
      },
    })
  })
})

/** A server of the test that is not ours. */
function foreignServer(answer: (request: Request) => Response | Promise<Response>): { url: string } & Disposable {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: answer })
  return { url: `http://127.0.0.1:${server.port}`, [Symbol.dispose]: () => void server.stop(true) }
}

const endedGraph = { graph_id: 'g', state: 'success', task_count: 1, created_at: new Date().toISOString() }

/** A service of the test with one graph of one task. `events` answers the n-th request for its events. */
function scriptedService(events: (request: Request, n: number) => Response) {
  const asked: string[] = []
  let streams = 0
  let hasEnded = false
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const { pathname, search } = new URL(request.url)
      asked.push(`${pathname}${search} ${request.headers.get('last-event-id') ?? ''}`.trim())
      if (pathname.endsWith('/events')) return events(request, streams++)
      const status = hasEnded ? 'success' : 'running'
      const tasks = [{ id: 'a', type: 'os', status, attempt: 1 }]
      const graph = { graph_id: 'g', state: status, task_count: 1, created_at: new Date().toISOString(), tasks }
      return Response.json(graph, { headers: { 'x-event-seq': '7' } })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    asked,
    end: () => {
      hasEnded = true
    },
    [Symbol.dispose]: () => void server.stop(true),
  }
}

const sse = (...events: [id: number, kind: string, data: object][]) =>
  new Response(
    `: open\n\n${events.map(([id, kind, data]) => `id: ${id}\nevent: ${kind}\ndata: ${JSON.stringify(data)}\n\n`).join('')}`,
    { headers: { 'content-type': 'text/event-stream' } },
  )

describe('a lost connection', () => {
  test('is resumed after the last event', async () => {
    const changed = { task_id: 'a', type: 'os', status: 'running', run_status: 'running', attempt: 2 }
    using service = scriptedService((_, n) => {
      if (n === 0) return sse([8, 'task_changed', changed], [9, 'lagging', {}])
      if (n === 1) return new Response('restarting', { status: 503 })
      return sse([11, 'task_changed', { ...changed, status: 'success' }], [12, 'graph_ended', { state: 'success' }])
    })
    const { exitCode, envelope, stderr } = await client(['watch', 'g'], { url: service.url })
    expect({ exitCode, tasks: envelope.data?.tasks }).toEqual({
      exitCode: 0,
      tasks: [{ id: 'a', status: 'success', duration_ms: 0 }],
    })
    expect(service.asked).toEqual([
      '/graphs/g',
      '/graphs/g/events?until=ended&after=7',
      '/graphs/g/events?until=ended 9',
      '/graphs/g',
      '/graphs/g/events?until=ended&after=7',
    ])
    expect(stderr).toContain('a: running (attempt 2)\n')
    expect(stderr).toContain('connection lost, trying again: ')
  })

  test('does not lose the graph that was removed', async () => {
    using service = scriptedService(() => sse([8, 'graph_removed', {}]))
    const { exitCode, envelope, stderr } = await client(['watch', 'g'], { url: service.url })
    expect({ exitCode, message: envelope.error?.message, data: envelope.data }).toMatchObject({
      exitCode: 1,
      message: 'graph g was removed',
      data: { graph_id: 'g' },
    })
    expect(stderr).not.toContain('goes on')
  })
})

test('a service without events is asked until the graph has ended', async () => {
  using service = scriptedService(() => Response.json({ error: 'no such route' }, { status: 404 }))
  const watching = client(['watch', 'g'], { url: service.url })
  await until(
    () => service.asked,
    (asked) => asked.filter((path) => path === '/graphs/g?wait_ms=500').length >= 2,
  )
  service.end()
  const { exitCode, envelope } = await watching
  expect({ exitCode, state: envelope.data?.state }).toEqual({ exitCode: 0, state: 'success' })
})

describe('an interrupt', () => {
  test('leaves the graph running and says how to come back', async () => {
    const id = crypto.randomUUID()
    const { graph_id } = await control.submit([{ id, ...sleeping }])
    const child = Bun.spawn([await binary('taskmill'), 'watch', graph_id], {
      env: testEnvironment({ SERVICE_URL: control.url }),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    await control.reached(id, 'running')
    const reader = child.stderr.getReader()
    let stderr = new TextDecoder().decode((await reader.read()).value)
    child.kill('SIGINT')
    const stdout = await new Response(child.stdout).text()
    for (let part = await reader.read(); !part.done; part = await reader.read())
      stderr += new TextDecoder().decode(part.value)
    expect(await child.exited).toBe(130)
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      error: { message: 'interrupted by SIGINT', status_code: 0, body: '' },
      data: { graph_id, state: 'running' },
    })
    const program = await binary('taskmill')
    expect(stderr).toEndWith(
      [
        'The graph goes on.',
        `To follow it: ${program} watch ${graph_id} --url ${control.url}`,
        `To stop it:   ${program} cancel ${graph_id} --url ${control.url}\n`,
      ].join('\n'),
    )
    expect((await control.get(id)).status).toBe('running')
  })
})

test('a shell runs the commands that are printed, with the token of its environment', async () => {
  const token = "se'same$x"
  await using own = await startControl({ env: { SERVICE_TOKEN: token } })
  const answer = await own.post({ tasks: [{ id: 'a', ...sleeping }] }, { authorization: `Bearer ${token}` })
  const { graph_id } = (await answer.json()) as { graph_id: string }
  const env = { SERVICE_TOKEN: token, PATH: `${dirname(await binary('taskmill'))}:${process.env.PATH}` }
  const { stderr } = await runClient(['watch', graph_id, '--url', own.url, '--timeout', '100ms'], { env })
  expect(stderr).not.toContain(token)
  const line = /^To stop it: +(.*)$/m.exec(stderr)?.[1] ?? ''
  expect(line).toBe(`SERVICE_TOKEN="$SERVICE_TOKEN" taskmill cancel ${graph_id} --url ${own.url}`)
  const shell = Bun.spawn(['sh', '-c', line], { env: testEnvironment(env), stdout: 'pipe' })
  expect(JSON.parse(await new Response(shell.stdout).text())).toMatchObject({ ok: true, data: { tasks: [{}] } })
})

describe('on a terminal', () => {
  test('draws frames in place, gives the cursor back, and prints the object at the end', async () => {
    const id = crypto.randomUUID()
    const { graph_id } = await control.submit([{ id, type: 'sleep', params: { duration_ms: 500 } }])
    const run = await startInTerminal(['watch', graph_id], { url: control.url })
    expect(await run.exited).toBe(0)
    const output = run.output()
    expect(output).toContain('\x1b[?2026h')
    expect(output).toContain('━')
    const [frames, object] = output.split('\x1b[?25h')
    expect(frames).toContain('✓')
    expect(JSON.parse(object!)).toMatchObject({ ok: true, data: { graph_id, state: 'success' } })
  })

  test('Ctrl-C detaches', async () => {
    const id = crypto.randomUUID()
    const { graph_id } = await control.submit([{ id, ...sleeping }])
    const run = await startInTerminal(['watch', graph_id], { url: control.url })
    await until(run.output, (output) => output.includes('1 running'))
    run.type('\x03')
    expect(await run.exited).toBe(130)
    expect(run.output()).toContain(`taskmill watch ${graph_id}`)
    expect((await control.get(id)).status).toBe('running')
  })

  test('obeys nothing that comes from a task', async () => {
    const id = `\x1b[2J\x1b]0;owned\x07${crypto.randomUUID()}`
    const { graph_id } = await control.submit([{ id, type: 'file', params: { action: 'read', path: 'x\x1b[31m' } }])
    const run = await startInTerminal(['watch', graph_id], { url: control.url, columns: 150 })
    expect(await run.exited).toBe(1)
    expect(run.output()).toContain('\\e[2J\\e]0;owned')
    expect(run.output()).not.toContain('\x1b[2J')
    expect(run.output()).not.toContain('\x1b]0;')
    expect(run.output()).not.toContain('x\x1b[31m')
  })
})
