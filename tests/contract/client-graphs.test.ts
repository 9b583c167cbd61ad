/** What the client does with whole graphs: list them, look at one, wait for one. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'

let control: Control
const client = (args: readonly string[]) => runClient(args, { url: control.url })
const newId = () => crypto.randomUUID()

beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control[Symbol.asyncDispose]())

/** Submits a graph with a name and labels. */
async function submit(graph: { tasks: readonly object[]; name?: string; labels?: Record<string, string> }) {
  const response = await control.post(graph)
  expect(response.status).toBe(202)
  return (await response.json()) as { graph_id: string; task_ids: string[] }
}

const noop = () => ({ id: newId(), type: 'noop' })
const failing = () => ({ id: newId(), type: 'file', params: { action: 'read', path: 'nothing' } })
const sleeping = () => ({ id: newId(), type: 'sleep', params: { duration_ms: 600_000 } })

describe('graphs', () => {
  test('answers the graphs that the filters leave, the newest first, in pages', async () => {
    const labels = { run: newId(), kind: 'a=b' }
    const ids: string[] = []
    for (const name of ['one', 'two', 'three']) {
      ids.unshift((await submit({ name, labels, tasks: [noop()] })).graph_id)
      expect((await client(['wait', ids[0]!])).exitCode).toBe(0)
    }
    const filter = [
      'graphs',
      '--label',
      `run=${labels.run}`,
      '--label',
      'kind=a=b',
      '--state',
      'success',
      '--since',
      '1h',
    ]
    const first = await client([...filter, '--limit', '2'])
    expect(first.exitCode).toBe(0)
    expect(first.envelope.data).toEqual({
      graphs: [
        expect.objectContaining({ graph_id: ids[0], name: 'three' }),
        expect.objectContaining({ graph_id: ids[1] }),
      ],
      next_cursor: expect.any(String),
    })
    const second = await client([...filter, '--cursor', String(first.envelope.data?.next_cursor)])
    expect(second.envelope.data).toEqual({ graphs: [expect.objectContaining({ graph_id: ids[2] })] })
    const named = await client([...filter, '--name', 'two'])
    expect(named.envelope.data).toEqual({ graphs: [expect.objectContaining({ graph_id: ids[1] })] })
    expect((await client([...filter, '--until', '1h'])).envelope.data).toEqual({ graphs: [] })
  })

  test('--label takes values with commas, and several labels in one flag', async () => {
    const labels = { run: newId(), of: 'a,b', list: 'c,d=e' }
    const { graph_id } = await submit({ labels, tasks: [noop()] })
    const found = async (...given: string[]) => {
      const { envelope } = await client(['graphs', ...given.flatMap((label) => ['--label', label])])
      return (envelope.data!.graphs as { graph_id: string }[]).map((graph) => graph.graph_id)
    }
    expect(await found(`run=${labels.run}`, 'of=a,b', 'list=c\\,d=e')).toEqual([graph_id])
    expect(await found(`run=${labels.run},of=a,b`)).toEqual([graph_id])
    expect(await found(`run=${labels.run},of=a`)).toEqual([])
  })

  test('-o table has a line for each', async () => {
    const name = `nightly ${newId()}`
    const { graph_id } = await submit({ name, tasks: [noop(), failing()] })
    await client(['wait', graph_id])
    const { stdout } = await client(['graphs', '--name', name, '-o', 'table'])
    expect(stdout).toMatch(
      new RegExp(`^GRAPH +STATE +NAME +TASKS +TOOK +CREATED\n${graph_id}  failed +${name}  1 success, 1 failed`),
    )
  })
})

describe('graph', () => {
  test('data equals the HTTP response body; get takes the id, too', async () => {
    const { graph_id } = await submit({ tasks: [noop(), failing()] })
    await client(['wait', graph_id])
    const body = await (await control.fetch(`/graphs/${graph_id}`)).json()
    for (const subcommand of ['graph', 'get']) {
      const { exitCode, envelope } = await client([subcommand, graph_id])
      expect({ exitCode, envelope: envelope as object }).toEqual({ exitCode: 0, envelope: { ok: true, data: body } })
    }
  })

  test('-o table shows its tasks and why it failed', async () => {
    const bad = failing()
    const after = { ...noop(), depends_on: [bad.id] }
    const { graph_id } = await submit({ name: 'broken', tasks: [bad, after] })
    await client(['wait', graph_id])
    const { stdout } = await client(['graph', graph_id, '-o', 'table'])
    expect(stdout).toStartWith(`graph    ${graph_id}\nname     broken\nstate    failed\ntasks    1 failed, 1 skipped\n`)
    expect(stdout).toMatch(new RegExp(`\n${after.id}  skipped +os.noop +dependency ${bad.id} failed\n`))
    expect(stdout).toContain(`\n${bad.id} failed first: `)
    expect(stdout).toContain('; 1 skipped because of it\n')
  })

  test('the commands that -o table suggests reach the same service from any shell', async () => {
    const bad = failing()
    const { graph_id } = await submit({ scope: 'graph', tasks: [bad] } as never)
    await client(['wait', graph_id])
    const { stdout } = await client(['graph', graph_id, '-o', 'table'])
    const commands = [...stdout.matchAll(/^try: (.*)$/gm)].map(([, command]) => command!)
    expect(commands.map((command) => command.split(' ')[1])).toEqual(['logs', 'get', 'graph'])
    for (const command of commands) {
      const shell = Bun.spawn(['sh', '-c', command], { env: { PATH: '/usr/bin:/bin' }, stdout: 'pipe', stderr: 'pipe' })
      expect(JSON.parse(await new Response(shell.stdout).text())).toMatchObject({ ok: true })
    }
  })

  test('-o table says why tasks wait, and what their rules are', async () => {
    const [first, second] = [sleeping(), { ...noop(), run_if: 'always', continue_on_error: true }]
    const { graph_id } = await submit({ tasks: [first, { ...second, depends_on: [first.id] }] } as never)
    const graph = await client(['graph', graph_id, '-o', 'table'])
    expect(graph.stdout).toMatch(/^ID +STATUS +TYPE +TOOK +WHY$/m)
    expect(graph.stdout).toMatch(new RegExp(`^${second.id}  pending +os.noop +after ${first.id}$`, 'm'))
    const record = await client(['get', second.id, '-o', 'table'])
    expect(record.stdout).toMatch(
      new RegExp(`^after +${first.id}\nrun if +always\nfailure +tolerated\nwaiting +after ${first.id}$`, 'm'),
    )
    await client(['cancel', graph_id])
  })

  test('-o table of a task shows its condition, and that it was not met', async () => {
    const first = noop()
    const branch = { ...noop(), depends_on: [first.id], when: { $from: first.id, path: '/status', equals: 'failed' } }
    const { graph_id } = await submit({ tasks: [first, branch] } as never)
    expect((await client(['wait', graph_id, '--fail'])).exitCode).toBe(0)
    const { stdout } = await client(['get', branch.id, '-o', 'table'])
    expect(stdout).toMatch(/^when +\{"\$from":".*","path":"\/status","equals":"failed"\}$/m)
    expect(stdout).toMatch(/^error +condition not met: /m)
  })
})

describe('wait', () => {
  test('for a graph lists its tasks once all have ended', async () => {
    const [good, bad] = [{ id: newId(), type: 'sleep', params: { duration_ms: 50 } }, failing()]
    const { graph_id } = await submit({ tasks: [good, bad] })
    const { exitCode, envelope } = await client(['wait', graph_id])
    expect({ exitCode, data: envelope.data }).toEqual({
      exitCode: 0,
      data: {
        tasks: [
          { id: good.id, status: 'success', graph_id },
          { id: bad.id, status: 'failed', graph_id },
        ],
        all_terminal: true,
        deadline_rfc3339: expect.any(String),
      },
    })
  })

  test('for a graph that does not end in time exits 3', async () => {
    const task = sleeping()
    const { graph_id } = await submit({ tasks: [task] })
    const { exitCode, envelope } = await client(['wait', graph_id, '--timeout', '2s', '--fail'])
    expect({ exitCode, ok: envelope.ok }).toEqual({ exitCode: 3, ok: true })
    expect(envelope.data).toMatchObject({ tasks: [{ id: task.id, status: 'running' }], all_terminal: false })
  })

  test('a task goes before a graph of the same id', async () => {
    const { graph_id } = await submit({ tasks: [sleeping()] })
    await submit({ tasks: [{ id: graph_id, type: 'noop' }] })
    const { exitCode, envelope } = await client(['wait', graph_id])
    expect({ exitCode, tasks: envelope.data?.tasks }).toEqual({
      exitCode: 0,
      tasks: [{ id: graph_id, status: 'success' }],
    })
  })

  test.each([
    [noop, 0],
    [failing, 1],
  ])('--fail: %p exits %d', async (task, expected) => {
    const { graph_id, task_ids } = await submit({ tasks: [task()] })
    expect((await client(['wait', graph_id, '--fail'])).exitCode).toBe(expected)
    expect((await client(['wait', task_ids[0]!, '--fail'])).exitCode).toBe(expected)
    expect((await client(['wait', graph_id])).exitCode).toBe(0)
  })

  test('--fail tells of a failure that the answer has no room for', async () => {
    const tasks = [{ id: 'a', type: 'os', status: 'success' }]
    const graph = { graph_id: 'g', state: 'failed', task_count: 20_000, tasks, truncated: true }
    const server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: ({ url }) =>
        Response.json(url.includes('/graphs/') ? graph : {}, { status: url.includes('/graphs/') ? 200 : 404 }),
    })
    const { exitCode, envelope } = await runClient(['wait', 'g', '--fail'], { url: `http://127.0.0.1:${server.port}` })
    await server.stop(true)
    expect({ exitCode, all: envelope.data?.all_terminal }).toEqual({ exitCode: 1, all: true })
  })

  test('an argument that names nothing is the 404 of the task', async () => {
    const { exitCode, envelope } = await client(['wait', 'some/thing'])
    expect({ exitCode, message: envelope.error?.message }).toEqual({
      exitCode: 1,
      message: 'task not found: some/thing',
    })
  })
})

describe('cancel and delete', () => {
  test('take a graph: a live one is cancelled, then deleted', async () => {
    const tasks = [sleeping(), sleeping()]
    const { graph_id } = await submit({ tasks })
    const live = await client(['delete', graph_id])
    expect({ exitCode: live.exitCode, status: live.envelope.error?.status_code }).toEqual({ exitCode: 1, status: 409 })
    const cancelled = await client(['cancel', graph_id, '--wait'])
    expect(cancelled.exitCode).toBe(0)
    expect(cancelled.envelope.data).toMatchObject({
      tasks: tasks.map(({ id }) => ({ task_id: id })),
      wait: { tasks: tasks.map(({ id }) => ({ id, status: 'cancelled', graph_id })) },
      all_terminal: true,
    })
    expect((await client(['delete', graph_id])).envelope.data).toEqual({ deleted: [graph_id] })
    expect((await client(['graph', graph_id])).envelope.error?.status_code).toBe(404)
  })

  test('GRAPH_ID/TASK_ID names a task of a graph with ids of its own', async () => {
    const answer = await control.post({ scope: 'graph', tasks: [{ ...sleeping(), id: 'scoped' }, noop()] })
    const { graph_id } = (await answer.json()) as { graph_id: string }
    const { exitCode, envelope } = await client(['cancel', `${graph_id}/scoped`, '--wait'])
    expect({ exitCode, wait: envelope.data?.wait }).toMatchObject({
      exitCode: 0,
      wait: { tasks: [{ id: `${graph_id}/scoped`, status: 'cancelled' }] },
    })
  })
})
