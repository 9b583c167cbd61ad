/**
 * Rows that cannot be read, or that somebody has deleted, cost nobody but their graph. Source: docs/cluster.md, "Rows that
 * cannot be read".
 */
import { expect, test } from 'bun:test'
import { builtProgram } from '../../scripts/build.ts'
import type { Control } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { lockedRows } from '../support/locked-rows.ts'
import { connectClient } from '../support/mcp-client.ts'
import { answered, type Cluster, describeReplicas, LONG_LEASE, owns } from '../support/replicas.ts'
import { testEnvironment } from '../support/service.ts'
import { until } from '../support/until.ts'

const sleep = (id: string) => ({ id, type: 'os', tool_name: 'sleep', params: { duration_ms: 600_000 } })
const noop = (id: string) => ({ id, type: 'os', tool_name: 'noop' })

/** Damage to the rows of the graph `$1`. */
const DAMAGES: readonly (readonly [what: string, statement: string])[] = [
  ['a body that is no JSON', `update taskmill.graph set payload = '{"graph_ordinal":' where graph_id = $1`],
  ['an empty body', `update taskmill.graph set payload = '' where graph_id = $1`],
  ['a body of another form', `update taskmill.graph set payload = '{"tasks": 5}' where graph_id = $1`],
  [
    'a body without its tasks',
    `update taskmill.graph set payload = regexp_replace(payload, '"body":.*', '"body":{}}') where graph_id = $1`,
  ],
  [
    'the body of another graph',
    `update taskmill.graph set payload = (select payload from taskmill.graph where graph_id <> $1 order by ordinal limit 1) where graph_id = $1`,
  ],
  ['states that are no JSON', framed(`'[{"id":'`)],
  ['states of another form', framed(`'[5]'`)],
  ['a list of children without its task', framed(`'{"task":"none"}'`)],
  [
    'a list of more children than there can be', // it is that of bad-8
    framed(`'{"graph_ordinal":' || ordinal || ',"id":"bad-8","count":2000000000}'`),
  ],
  ['states of a task that is not there', framed(`'[{"id":"none","seq":1,"graph_ordinal":1}]'`)],
]

function framed(payload: string): string {
  return `insert into taskmill.frame (graph, number, payload) select ordinal, 1000000, ${payload} from taskmill.graph where graph_id = $1`
}

describeReplicas('rows that cannot be read', (newCluster) => {
  const run = (each: Cluster, statement: string, graphId: string) =>
    each.server.run(statement.replaceAll('$1', `'${graphId}'`), each.database)

  const unreadable = async (control: Control) =>
    (await (await control.fetch('/graphs?state=unreadable')).json()) as {
      readonly graph_id: string
      readonly error: string
    }[]

  async function check(each: Cluster) {
    const child = Bun.spawn([await builtProgram('taskmill-control'), 'database', 'check', ...each.flags.slice(0, 2)], {
      ...{ env: testEnvironment(), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
    })
    const report = JSON.parse(await new Response(child.stdout).text()) as {
      findings: { code: string; message: string }[]
    }
    return { exitCode: await child.exited, finding: report.findings.find(({ code }) => code === 'unreadable_graphs') }
  }

  test('a start sets each such graph aside, and runs the others', async () => {
    using each = await newCluster()
    const bad: string[] = []
    let good = ''
    {
      await using control = await each.replica(LONG_LEASE)
      good = (await control.submit([sleep('good')])).graph_id
      for (const i of DAMAGES.keys()) bad.push((await control.submit([sleep(`bad-${i}`)])).graph_id)
      await control.stop('SIGKILL')
    }
    await each.server.run(`update taskmill.replica set state = 'dead', epoch = epoch + 1`, each.database)
    for (const [i, [, statement]] of DAMAGES.entries()) await run(each, statement, bad[i]!)

    await using control = await each.replica(LONG_LEASE)
    await owns(control, 1)
    expect(await (await control.fetch('/tasks/good')).json()).toMatchObject({ graph_id: good })
    const listed = await unreadable(control)
    const missed = DAMAGES.filter((_, i) => !listed.some(({ graph_id }) => graph_id === bad[i]))
    expect([missed.map(([what]) => what), listed.length]).toEqual([[], bad.length])
    for (const graph of listed) {
      expect(graph).toMatchObject({ state: 'unreadable', error: expect.stringMatching(/./), task_count: 1 })
      expect(control.log).toContainEqual(
        expect.objectContaining({ msg: 'a graph is unreadable and was set aside', graph_id: graph.graph_id }),
      )
    }
    for (const msg of ['a graph is unreadable and was set aside', 'graphs adopted'])
      expect([msg, control.log.filter((line) => line.msg === msg).length]).toEqual([
        ...[msg, msg === 'graphs adopted' ? 1 : bad.length],
      ])
    expect(control.log).toContainEqual(expect.objectContaining({ msg: 'graphs adopted', graphs: 1 }))
    expect(await (await control.fetch('/graphs')).json()).toMatchObject([{ graph_id: good }])
    const first = await control.fetch('/graphs?state=unreadable&limit=1')
    const second = await control.fetch(`/graphs?state=unreadable&cursor=${first.headers.get('x-next-cursor')}`)
    expect([...((await first.json()) as object[]), ...((await second.json()) as object[])]).toEqual(listed)
    expect((await control.fetch('/graphs?state=unreadable&state=failed')).status).toBe(400)
    for (const path of [`/graphs/${bad[0]}`, '/tasks/bad-0', `/graphs/${bad[0]}/tasks`]) {
      const answer = await control.fetch(path)
      expect([answer.status, await answer.text()]).toEqual([409, expect.stringContaining('is unreadable')])
    }
    expect((await control.fetch(`/graphs/${bad[0]}/cancel`, { method: 'POST' })).status).toBe(409)
    await using mcp = await connectClient(control.url)
    expect(await mcp.call('get_graph', { graph_id: bad[0] })).toMatchObject({
      ...{ isError: true, text: expect.stringContaining(`DELETE /graphs/${bad[0]}`) },
    })
    for (const path of ['/tasks/bad-0', `/graphs/${bad[0]}/tasks/bad-0`])
      expect([path, (await control.fetch(path, { method: 'DELETE' })).status]).toEqual([path, 409])
    const taken = await control.post({ tasks: [noop('bad-0')] })
    expect([taken.status, await taken.text()]).toEqual([409, expect.stringContaining(`DELETE /graphs/${bad[0]}`)])
    const { exitCode, finding } = await check(each)
    expect([exitCode, finding?.message]).toEqual([1, expect.stringContaining('cannot be read')])

    {
      await using later = await each.replica(LONG_LEASE)
      expect(await unreadable(later)).toEqual(listed)
      expect(later.log.filter(({ msg }) => msg === 'graphs adopted')).toEqual([])
    }
    {
      await using _ = await lockedRows(each.server, each.database, `update taskmill.graph set payload = payload`)
      expect((await control.fetch(`/graphs/${bad[0]}`, { method: 'DELETE' })).status).toBe(503)
    }
    for (const id of bad) expect((await control.fetch(`/graphs/${id}`, { method: 'DELETE' })).status).toBe(204)
    expect(await unreadable(control)).toEqual([])
    expect((await control.fetch(`/graphs/${bad[0]}`)).status).toBe(404)
    expect((await control.fetch(`/graphs/${bad[0]}`, { method: 'DELETE' })).status).toBe(404)
    await control.submit([noop('bad-0')])
    await control.ended('bad-0')
    expect((await check(each)).finding).toBeUndefined()
    const left = `select (select count(*) from taskmill.frame f where not exists (select from taskmill.graph g where g.ordinal = f.graph))::int as frames`
    expect(await each.server.run(left, each.database)).toEqual([{ frames: 0 }])
  })

  test('a takeover sets it aside, and a start takes it back once its rows are repaired', async () => {
    using each = await newCluster()
    await using first = await each.replica()
    const held = await first.submit([sleep('held')])
    const { graph_id } = await first.submit([sleep('bad')])
    const keep = `create table public.kept as select payload from taskmill.graph where graph_id = $1`
    await run(each, keep, graph_id)
    await using second = await each.replica()
    await first.stop('SIGKILL')
    await run(each, DAMAGES[0]![1], graph_id)
    await owns(second, 1)
    await until(async () => (await unreadable(second)).length, 1)
    expect(await (await second.fetch('/tasks/held')).json()).toMatchObject({ graph_id: held.graph_id })
    await run(each, `update taskmill.graph set payload = k.payload from public.kept k where graph_id = $1`, graph_id)
    await using third = await each.replica()
    await owns(third, 1)
    expect(await (await answered(second, '/tasks/bad')).json()).toMatchObject({ graph_id, status: 'running' })
    expect(await unreadable(second)).toEqual([])
  })

  test('a callback, an abandoned attempt, a runtime service and an answer whose rows are damaged stop nothing', async () => {
    using each = await newCluster()
    const key = { 'idempotency-key': 'k' }
    {
      await using control = await each.replica(LONG_LEASE)
      await control.submit([sleep('held')], key)
      const entry = { name: 'gpu', url: `http://127.0.0.1:${await freePort()}`, labels: { gpu: '' } }
      const added = await control.fetch('/runtimes', { method: 'POST', body: JSON.stringify(entry) })
      expect(added.status).toBe(201)
      await control.stop('SIGKILL')
    }
    await each.server.run(`update taskmill.replica set state = 'dead', epoch = epoch + 1`, each.database)
    for (const statement of [
      `insert into taskmill.callback values ('removed-graph_ended', 'removed', 1, '{"id": 5}')`,
      `insert into taskmill.orphan values ('one', 1, '{')`,
      `update taskmill.runtime set labels = '{"gpu": 5}'`,
      `update taskmill.answer set answer = '{'`,
    ])
      await each.server.run(statement, each.database)
    await using control = await each.replica(LONG_LEASE)
    await owns(control, 1)
    expect(await (await control.fetch('/runtimes')).json()).toMatchObject({
      runtimes: [{ name: 'default' }, { name: 'gpu', labels: {} }],
    })
    const repeated = await control.post({ tasks: [sleep('held')] }, key)
    expect([repeated.status, await repeated.text()]).toEqual([409, expect.stringContaining('use another key')])
    await until(
      () => control.log.filter(({ msg }) => msg === 'a row of the database is unreadable and is left out'),
      (told) => ['callback', 'orphan', 'runtime'].every((table) => told.some((line) => line.table === table)),
    )
  })

  test('a graph whose row somebody has deleted keeps no id', async () => {
    using each = await newCluster()
    await using first = await each.replica(LONG_LEASE)
    await using second = await each.replica(LONG_LEASE)
    const { graph_id } = await first.submit([noop('a'), noop('b')])
    await first.ended('b')
    await run(each, 'delete from taskmill.graph where graph_id = $1', graph_id)
    const { graph_id: next } = await second.submit([noop('b'), noop('a'), noop('c')])
    expect(await (await second.fetch('/tasks/a?wait_ms=10000')).json()).toMatchObject({
      graph_id: next,
      status: 'success',
    })
  })
})
