/**
 * Many replicas of control on one database: any of them answers any request, and what one leaves behind others take over.
 * Source: docs/cluster.md.
 */
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { OWNER_ANSWER_MS } from '../../control/log/postgres/others.ts'
import type { Control } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { connectClient } from '../support/mcp-client.ts'
import { answered, describeReplicas, healthOf, LONG_LEASE, owns } from '../support/replicas.ts'
import { startRuntime } from '../support/runtime.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

/** An answer as it came. */
type Json = ReturnType<typeof JSON.parse>

const noop = (id: string) => ({ id, type: 'os', tool_name: 'noop' })
const sleep = (id: string) => ({ id, type: 'os', tool_name: 'sleep', params: { duration_ms: 600_000 } })
const echo = (id: string, text: string) => ({
  id,
  type: 'os',
  tool_name: 'shell',
  params: { command: 'echo', args: [text] },
})

describeReplicas('replicas', (cluster) => {
  const json = async (control: Control, path: string, init?: RequestInit): Promise<readonly [number, Json]> => {
    const response = await control.fetch(path, init)
    return [response.status, (await response.json()) as Json]
  }

  describe('any of them answers any request', () => {
    test('files of a runtime task, in parts and as tar, as the owner of its graph does', async () => {
      using each = await cluster()
      await using runtime = await startRuntime()
      const flags = [...LONG_LEASE, '--runtime-url', runtime.url]
      const [owner, other] = await Promise.all([each.replica(flags), each.replica(flags)])
      await using _ = owner
      await using __ = other
      const script = 'mkdir -p d/e; echo 0123456789 > d/a; echo x > "d/e/b ü"; chmod +x d/a; ln -s / d/root'
      const { graph_id } = await owner.submit([{ id: 'made', type: 'runtime.script', params: { script } }])
      await owner.ended('made')
      expect((await healthOf(other)).replica.graphs).toBe(0)
      const { headers } = await owner.fetch('/tasks/made/files/d/a')
      const etag = headers.get('etag')!
      const dirEtag = (await owner.fetch('/tasks/made/files/d', { method: 'HEAD' })).headers.get('etag')!
      const answerOf = async (control: Control, path: string, init?: RequestInit) => {
        const response = await control.fetch(path, init)
        const names = ['content-type', 'content-range', 'etag', 'x-file-bytes', 'x-task-attempt', 'content-disposition']
        const { status } = response
        const hash = new Bun.CryptoHasher('sha256').update(await response.bytes()).digest('hex')
        return { status, hash, headers: names.map((name) => response.headers.get(name)) }
      }
      const range = (range: string, more: Record<string, string> = {}) => ({ headers: { range, ...more } })
      for (const place of ['/tasks/made', `/graphs/${graph_id}/tasks/made`]) {
        for (const [path, status, init] of [
          ['files', 200],
          ['files?path=d/e', 200],
          ['files?path=d/a', 400],
          ['files/d/a', 200],
          ['files/d/a', 200, { method: 'HEAD' }],
          ['files/d/e/b%20%C3%BC', 200],
          ['files/d/a', 206, range('bytes=2-4')],
          ['files/d/a', 206, range('bytes=5-', { 'if-range': etag })],
          ['files/d/a', 200, range('bytes=5-', { 'if-range': '"other"' })],
          ['files/d/a', 416, range('bytes=99-')],
          ['files/d', 200],
          ['files/d', 206, range('bytes=700-1500')],
          ['files/d', 206, range('bytes=700-', { 'if-range': dirEtag })],
          ['files/d', 200, range('bytes=700-', { 'if-range': '"other"' })],
          ['files/d', 416, range('bytes=999999-')],
          ['files/d', 200, { method: 'HEAD' }],
          ['files/', 200],
          ['files/d/root', 404],
          ['files/none', 404],
          ['files/d/a?attempt=2', 404],
        ] as const) {
          const expected = await answerOf(owner, `${place}/${path}`, init)
          expect([path, expected.status]).toEqual([path, status])
          expect([path, await answerOf(other, `${place}/${path}`, init)]).toEqual([path, expected])
        }
      }
    })

    test('reads, waits, lists, logs, events, approvals, cancels and deletions', async () => {
      using each = await cluster()
      const [first, second, third] = await Promise.all([
        each.replica(LONG_LEASE),
        each.replica(LONG_LEASE),
        each.replica(LONG_LEASE),
      ])
      await using _ = first
      await using __ = second
      await using ___ = third
      const { graph_id } = await first.submit([echo('say', 'hello'), { ...sleep('held'), depends_on: ['say'] }])
      const waited = await json(second, `/tasks/say?wait_ms=10000`)
      expect(waited).toMatchObject([200, { id: 'say', status: 'success', graph_id }])
      expect(await (await third.fetch('/tasks/say/logs')).text()).toBe('hello\n')
      expect(await json(third, `/graphs/${graph_id}`)).toMatchObject([200, { graph_id, state: 'running' }])
      expect(await json(second, `/graphs/${graph_id}/tasks`)).toMatchObject([200, [{ id: 'say' }, { id: 'held' }]])
      expect(await json(second, `/tasks?graph_id=${graph_id}`)).toMatchObject([200, [{ id: 'say' }, { id: 'held' }]])
      await using mcp = await connectClient(second.url)
      expect((await mcp.call('get_task', { task_id: 'say', detail: true })).data).toMatchObject({
        id: 'say',
        status: 'success',
      })
      expect((await mcp.call('wait', { task_ids: ['say'] })).data).toMatchObject({ all_terminal: true })
      expect((await mcp.call('get_graph', { graph_id })).data).toMatchObject({ graph_id, state: 'running' })
      expect((await mcp.call('list_graphs')).data).toMatchObject({ graphs: [{ graph_id }] })
      const traced = await second.fetch('/tasks/say', { headers: { 'x-trace-id': 'mine' } })
      expect(traced.headers.get('x-trace-id')).toBe('mine')
      const events = await second.fetch(`/graphs/${graph_id}/events?until=ended`)
      expect(events.headers.get('content-type')).toStartWith('text/event-stream')
      const silent = second.fetch('/tasks/held/logs?follow=true')
      await Bun.sleep(OWNER_ANSWER_MS + 1_000) // longer than an owner may be silent
      const cancelled = await json(third, '/tasks/held/cancel', { method: 'POST' })
      expect(cancelled).toMatchObject([202, { tasks: [{ task_id: 'held' }] }])
      expect(await events.text()).toContain('graph_ended')
      const log = await silent
      expect([log.status, await log.text()]).toEqual([200, ''])
      await second.submit([{ id: 'ask', type: 'approval', params: { message: 'ok?' } }])
      const approve = { method: 'POST', body: '{"who":"ada"}' }
      await until(
        () => json(third, '/tasks/ask'),
        ([, task]) => task.waiting?.reason === 'approval',
      )
      expect(await json(first, '/tasks/ask/approve', approve)).toMatchObject([200, { status: 'success' }])
      expect((await third.fetch(`/graphs/${graph_id}`, { method: 'DELETE' })).status).toBe(204)
      for (const control of [first, second, third]) {
        expect((await control.fetch(`/graphs/${graph_id}`)).status).toBe(404)
        expect((await control.fetch('/tasks/say')).status).toBe(404)
        expect((await control.fetch('/tasks/ask')).status).toBe(200)
      }
    })

    test('with a token, and only once: what comes from a replica is not sent on', async () => {
      using each = await cluster()
      using temp = tempDir()
      const tokenFile = join(temp.path, 'token')
      await Bun.write(tokenFile, 'a-token-of-many-letters\n')
      const flags = ['--token-file', tokenFile, ...LONG_LEASE]
      const [first, second] = await Promise.all([each.replica(flags), each.replica(flags)])
      await using _ = first
      await using __ = second
      const headers = { authorization: 'Bearer a-token-of-many-letters' }
      await first.submit([noop('a')], headers)
      expect((await second.fetch('/tasks/a')).status).toBe(401)
      expect((await second.fetch('/tasks/a', { headers })).status).toBe(200)
      const hop = await second.fetch('/tasks/a', { headers: { ...headers, 'x-taskmill-hop': '9' } })
      expect([hop.status, hop.headers.get('retry-after')]).toEqual([503, '1'])
      expect((await second.fetch('/tasks/b', { headers: { ...headers, 'x-taskmill-hop': '9' } })).status).toBe(404)
    })

    test('an id is active in one of them, and free once its task has ended', async () => {
      using each = await cluster()
      const [first, second] = await Promise.all([each.replica(LONG_LEASE), each.replica(LONG_LEASE)])
      await using _ = first
      await using __ = second
      const { graph_id } = await first.submit([noop('a'), sleep('held')])
      await second.ended('a')
      const refused = await second.post({ tasks: [noop('b'), noop('held')] })
      expect([refused.status, await refused.json()]).toEqual([
        409,
        { error: expect.stringContaining('task already active: held (in graph ') },
      ])
      expect((await second.fetch('/tasks/b')).status).toBe(404)
      const { graph_id: next } = await second.submit([echo('a', 'again')])
      expect(await json(first, '/tasks/a?wait_ms=10000')).toMatchObject([200, { graph_id: next }])
      expect(await json(second, `/graphs/${graph_id}/tasks/a`)).toMatchObject([200, { graph_id }])
      expect((await first.post({ tasks: [noop('held')] })).status).toBe(409)
    })

    test('one of many requests with the same key is carried out', async () => {
      using each = await cluster()
      const [first, second] = await Promise.all([each.replica(LONG_LEASE), each.replica(LONG_LEASE)])
      await using _ = first
      await using __ = second
      const submit = (control: Control, query = '') =>
        control.fetch(`/tasks${query}`, {
          method: 'POST',
          headers: { 'idempotency-key': 'k' },
          body: JSON.stringify({ scope: 'graph', tasks: [echo('a', 'once')] }),
        })
      const answers = await Promise.all([first, second, first, second].map((control) => submit(control)))
      const texts = await Promise.all(answers.map((answer) => answer.text()))
      expect(new Set(texts).size).toBe(1)
      for (const control of [first, second]) {
        const repeated = await (await submit(control, '?wait_ms=10000')).json()
        expect(repeated).toMatchObject({ tasks: [{ id: 'a', status: 'success' }], all_terminal: true })
      }
    })
  })

  describe('lists are those of all', () => {
    test('tasks and graphs, as a whole and in pages; a replica that does not answer is named', async () => {
      using each = await cluster()
      const controls = await Promise.all([each.replica(LONG_LEASE), each.replica(LONG_LEASE), each.replica(LONG_LEASE)])
      const [first, second, third] = controls as [Control, Control, Control]
      await using _ = first
      await using __ = second
      await using ___ = third
      const ids: string[] = []
      for (let i = 0; i < 9; i++) {
        const some = [noop(`a${i}`), noop(`b${i}`)]
        ids.push(...some.map(({ id }) => id))
        await controls[i % 3]!.submit(some)
        await Bun.sleep(2) // another millisecond of creation
      }
      await controls[0]!.submit([{ id: 'last', type: 'approval', params: { message: 'ok?' } }])
      ids.push('last')
      const pages = async (path: string, idIn: (entry: Json) => string) => {
        const found: string[][] = []
        for (let cursor: string | null = ''; cursor !== null; ) {
          const answer = await second.fetch(`${path}${cursor === '' ? '' : `&cursor=${cursor}`}`)
          expect([answer.status, answer.headers.get('x-missing-replicas')]).toEqual([200, null])
          found.push(((await answer.json()) as Json[]).map(idIn))
          cursor = answer.headers.get('x-next-cursor')
        }
        return found
      }
      for (const control of controls) expect((await control.list()).map(({ id }) => id)).toEqual(ids)
      const tasks = await pages('/tasks?limit=4', ({ id }) => id)
      expect([tasks.flat(), tasks.map((page) => page.length)]).toEqual([ids, [4, 4, 4, 4, 3]])
      await until(async () => (await third.list()).filter(({ status }) => status === 'success').length, 18)
      const [, running] = await json(third, '/tasks?status=pending')
      expect(running.map(({ id }: Json) => id)).toEqual(['last'])
      const [, all] = await json(first, '/graphs')
      const byGraph = await pages('/graphs?limit=3', ({ graph_id }) => graph_id)
      expect(byGraph.flat()).toEqual(all.map(({ graph_id }: Json) => graph_id))
      expect(byGraph.flat().length).toBe(10)
      const { replica } = await healthOf(third)
      third.process.kill('SIGSTOP')
      const [, capacity] = await json(second, '/runtime')
      expect(capacity.replicas.map(({ url }: Json) => url).sort()).toEqual(controls.map(({ url }) => url).sort())
      for (const one of capacity.replicas) expect(one).toMatchObject({ state: 'live' })
      const partial = await first.fetch('/graphs')
      expect([partial.headers.get('x-missing-replicas'), ((await partial.json()) as Json[]).length]).toEqual([
        String(replica.id),
        7,
      ])
      third.process.kill('SIGCONT')
      expect((await second.fetch('/tasks?limit=4&cursor=1-1')).status).toBe(400)
    })
  })

  describe('take over', () => {
    test('graphs of one that is killed; a runtime attempt runs once', async () => {
      using each = await cluster()
      await using runtime = await startRuntime()
      using temp = tempDir()
      const [ran, go] = [join(temp.path, 'ran'), join(temp.path, 'go')]
      // Long enough to ask while nobody has taken over yet.
      const flags = ['--runtime-url', runtime.url, '--lease', '10s']
      const [first, second] = await Promise.all([each.replica(flags), each.replica(flags)])
      await using _ = first
      await using __ = second
      const script = `echo ran >> ${ran}; ${waitFor(go)}; exit 7`
      const { graph_id } = await first.submit(
        [{ id: 'remote', type: 'runtime.script', params: { script } }, noop('done'), sleep('held')],
        { 'idempotency-key': 'k' },
      )
      await first.submit([noop('other')])
      await first.ended('other')
      await until(() => Bun.file(ran).exists())
      await first.reached('held', 'running')
      await first.ended('done')
      expect((await healthOf(second)).replica.graphs).toBe(0)
      const events = (await second.fetch('/tasks/held/events')).text().catch(() => 'broken')
      const waiting = second.fetch('/tasks/held?wait_ms=60000')
      await first.stop('SIGKILL')
      expect([await events, (await waiting).status]).toEqual(['broken', 503])
      const between = await second.fetch('/tasks/held')
      expect([between.status, between.headers.get('retry-after')]).toEqual([503, '1'])
      await owns(second, 2)
      expect(await second.reached('held', 'running')).toMatchObject({ runtime: { attempt: 2 } })
      expect(await second.get('done')).toMatchObject({ status: 'success' })
      expect(await second.get('other')).toMatchObject({ status: 'success' })
      await Bun.write(go, '')
      const ended = {
        status: 'failed',
        attempt: 1,
        handle_id: `remote-${graph_id}-1`,
        error: 'task exited with code 7',
      }
      expect(await second.ended('remote')).toMatchObject(ended)
      expect(await Bun.file(ran).text()).toBe('ran\n')
      const metrics = await (await second.fetch('/metrics', { headers: { accept: 'text/plain' } })).text()
      expect(metrics).toContain('service_control_replica_adopted_graphs_total 2\n')
      expect(metrics).toContain('service_control_replica_fenced_total 1\n')
      expect(metrics).toContain('service_control_replica_owned_graphs 2\n')
    })

    test('graphs of one that hangs, which ends with 75 when it goes on, and answers nothing', async () => {
      using each = await cluster()
      const [first, second] = await Promise.all([each.replica(), each.replica()])
      await using _ = first
      await using __ = second
      await first.submit([sleep('a')])
      await first.reached('a', 'running')
      first.process.kill('SIGSTOP')
      const silent = performance.now()
      expect((await second.fetch('/tasks/a')).status).toBe(503)
      expect(performance.now() - silent).toBeLessThan(20_000)
      expect(await (await answered(second, '/tasks/a')).json()).toMatchObject({ id: 'a' })
      expect(await second.reached('a', 'running')).toMatchObject({ runtime: { attempt: 2 } })
      first.process.kill('SIGCONT')
      const late = await first.fetch('/tasks/a').catch(() => undefined)
      if (late !== undefined) expect(late.status).toBe(503)
      expect(await first.process.exited).toBe(75)
      expect(await second.get('a')).toMatchObject({ status: 'running' })
    })

    test('graphs of one that stops, at once', async () => {
      using each = await cluster()
      const flags = ['--lease', '10m']
      const [first, second, third] = await Promise.all([each.replica(flags), each.replica(flags), each.replica(flags)])
      await using _ = first
      await using __ = second
      await using ___ = third
      await first.submit([noop('done')])
      await first.ended('done')
      for (let i = 0; i < 50; i++) await first.submit([sleep(`t${i}`)])
      expect(await first.stop()).toBe(0)
      const shares = await until(
        async () => [await healthOf(second), await healthOf(third)].map(({ replica }) => replica.graphs),
        ([a = 0, b = 0]) => a + b === 51,
      )
      expect(shares[0]! + shares[1]!).toBe(51)
      for (const control of [second, third]) expect(await control.get('done')).toMatchObject({ status: 'success' })
      const running = async () => (await second.metrics()).tasks_running + (await third.metrics()).tasks_running
      await until(running, (count) => count >= 10) // the slots of one, at least
    })

    test('with --on-takeover fail, interrupted attempts fail; approvals, later tasks and runtime attempts do not', async () => {
      using each = await cluster()
      const flags = ['--on-takeover', 'fail']
      const [first, second] = await Promise.all([each.replica(flags), each.replica(flags)])
      await using _ = first
      await using __ = second
      const { replica } = await healthOf(first)
      await first.submit([
        { ...sleep('held'), retry: 3 },
        { ...noop('after'), depends_on: ['held'] },
        { id: 'ask', type: 'approval', params: { message: 'ok?' } },
        { ...noop('approved'), depends_on: ['ask'] },
      ])
      await first.reached('held', 'running')
      await until(
        () => first.get('ask'),
        (task) => task.waiting?.reason === 'approval',
      )
      await first.stop('SIGKILL')
      await owns(second, 1)
      const error = `attempt interrupted: replica ${replica.id} is gone`
      expect(await second.ended('held')).toMatchObject({
        ...{ status: 'failed', error, attempt: 1 },
        runtime: { error: { code: 'internal', message: error } },
      })
      expect(await second.ended('after')).toMatchObject({ status: 'skipped' })
      await until(
        () => second.get('ask'),
        (task) => task.waiting?.reason === 'approval',
      )
      expect((await second.fetch('/tasks/ask/approve', { method: 'POST', body: '{"who":"ada"}' })).status).toBe(200)
      expect(await second.ended('approved')).toMatchObject({ status: 'success' })
    })
  })

  test('a graph whose tasks were deleted one by one is gone: 404 at every replica, and no row', async () => {
    using each = await cluster()
    await using first = await each.replica(LONG_LEASE)
    await using second = await each.replica(LONG_LEASE)
    const { graph_id: ended } = await first.submit([noop('a'), noop('b')])
    await Promise.all([first.ended('a'), first.ended('b')])
    const { graph_id: running } = await first.submit([{ ...sleep('c'), params: { duration_ms: 5_000 } }])
    await first.reached('c', 'running')
    for (const id of ['a', 'b', 'c'])
      expect((await second.fetch(`/tasks/${id}`, { method: 'DELETE' })).status).toBe(204)
    const rows = async () => {
      const tables = ['graph', 'frame', 'task_id'].map((table) => `(select count(*) from taskmill.${table})`)
      const [row] = await each.server.run(`select (${tables.join(' + ')})::int as count`, each.database)
      return row!.count
    }
    await until(rows, (count) => count === 0)
    for (const control of [first, second]) {
      for (const id of [ended, running]) {
        expect((await control.fetch(`/graphs/${id}`, { method: 'DELETE' })).status).toBe(404)
      }
    }
    expect([await first.stop(), await second.stop()]).toEqual([0, 0])
  })

  test('a start answers 503 until it is registered, here behind a replica of an earlier version', async () => {
    using each = await cluster()
    await using first = await each.replica()
    await first.submit([noop('a')])
    await first.ended('a')
    expect(await first.stop()).toBe(0)
    await each.server.run(
      [
        "insert into taskmill.replica (address, lease_until) values ('http://earlier', clock_timestamp() + interval '1 hour')",
        'update taskmill.graph set owner = 0',
        'update taskmill.frame set ends = false, ended_at = null, tasks = null',
      ],
      each.database,
    )
    const port = await freePort()
    const starting = each.replica(['--addr', `127.0.0.1:${port}`])
    const health = () => fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined)
    const answer = await until(health, (response) => response !== undefined)
    expect([answer!.status, await answer!.json()]).toEqual([
      503,
      { error: 'starting', phase: 'waiting for the database' },
    ])
    await each.server.run("update taskmill.replica set state = 'gone'", each.database)
    await using second = await starting
    expect(await second.get('a')).toMatchObject({ status: 'success' })
    expect(await each.server.run('select ends from taskmill.frame order by ends desc limit 1', each.database)).toEqual([
      { ends: true },
    ])
  })
})
