/** Patches where several replicas share a database: ids are those of all, and whoever adopts a graph has it as it was patched. */
import { expect, test } from 'bun:test'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import type { PatchResponse } from '../../shared/contract/patch.ts'
import type { Control } from '../support/control.ts'
import { EventStreamClient } from '../support/event-stream.ts'
import { answered, describeReplicas, LONG_LEASE } from '../support/replicas.ts'
import { ended } from '../support/scoped-graphs.ts'
import { tokensFile } from '../support/tokens.ts'
import { until } from '../support/until.ts'

const noop = (id: string, ...depends_on: string[]) => ({ id, type: 'noop', depends_on })
/** Runs until it is approved. */
const gate = (id: string) => ({ id, type: 'approval', params: { message: 'go?' } })

async function patch(control: Control, id: string, body: object, headers: Record<string, string> = {}) {
  const init = { method: 'PATCH', body: JSON.stringify(body), headers }
  const answer = await answered(control, `/graphs/${id}`, init)
  return { status: answer.status, body: (await answer.json()) as PatchResponse & { readonly error?: string } }
}

const graphAt = async (control: Control, id: string, headers: Record<string, string> = {}) =>
  (await (await answered(control, `/graphs/${id}`, { headers })).json()) as GraphDetails

describeReplicas('patches', (cluster) => {
  test('go to the replica that has the graph, and take ids that no other replica has', async () => {
    using each = await cluster()
    await using first = await each.replica(LONG_LEASE)
    await using second = await each.replica(LONG_LEASE)
    const { graph_id } = await first.submit([gate('gate'), noop('last', 'gate')])
    await second.submit([gate('busy')])
    await second.submit([noop('done')])
    await second.ended('done')
    expect(await patch(second, graph_id, { add: [noop('new', 'gate')] })).toMatchObject({ status: 200 })
    const taken = await patch(second, graph_id, { add: [noop('free', 'gate'), noop('busy', 'gate')] })
    expect(taken).toEqual({
      status: 409,
      body: { error: expect.stringContaining('task already active: busy') },
    } as never)
    await second.submit([noop('free')]) // the refused patch has no id
    expect(await patch(second, graph_id, { add: [noop('done', 'gate')] })).toMatchObject({ status: 200 })
    expect((await second.get('done')).status).toBe('pending') // that of the patch
    expect((await second.post({ tasks: [noop('new')] })).status).toBe(409)
    expect(await patch(first, graph_id, { remove: ['new'] })).toMatchObject({ status: 200 })
    await second.submit([noop('new')])
    await second.ended('new')
    await until(async () => (await first.get('gate')).waiting?.reason, 'approval')
    await answered(second, '/tasks/gate/approve', { method: 'POST', body: '{"who":"ada"}' })
    expect(await ended(second, graph_id)).toMatchObject({ state: 'success', task_count: 3, revision: 3 })
  })

  test('take ids of ended tasks of the same replica, and give them up with their tasks', async () => {
    using each = await cluster()
    await using first = await each.replica(LONG_LEASE)
    await using second = await each.replica(LONG_LEASE)
    await first.submit([noop('x')])
    await first.ended('x')
    const { graph_id } = await first.submit([gate('gate')])
    expect(await patch(first, graph_id, { add: [noop('x', 'gate')] })).toMatchObject({ status: 200 })
    expect((await second.post({ tasks: [noop('x')] })).status).toBe(409)
    await patch(first, graph_id, { remove: ['x'] })
    await second.submit([noop('x')])
  })

  test('are in the graph that another replica adopts, in order, with who made them, their keys and events', async () => {
    using each = await cluster()
    using tokens = tokensFile({ ada: { rights: ['read', 'submit', 'answer', 'cancel'] } })
    const flags = ['--tokens-file', tokens.path]
    const env = { SERVICE_TOKEN: 'sesame' }
    await using first = await each.replica(flags, env)
    await using second = await each.replica(flags, env)
    const [ada, service] = [tokens.as('ada'), { authorization: 'Bearer sesame' }]
    const tasks = [gate('gate'), noop('a', 'gate'), noop('b', 'gate'), noop('c', 'gate')]
    const { graph_id } = await first.submit(tasks, service)
    await patch(first, graph_id, { add: [noop('d', 'a')], remove: ['b'] }, service)
    const keyed = { add: [noop('e', 'd')], replace: [noop('a')], remove: ['c'] }
    const answer = await patch(second, graph_id, keyed, { ...ada, 'idempotency-key': 'k' })
    expect(answer).toMatchObject({ status: 200, body: { revision: 2 } })
    await patch(second, graph_id, { add: [noop('b', 'gate')] }, service)
    const shown = ({ tasks, revision, patched_by }: GraphDetails) => ({
      tasks: tasks.map(({ id, depends_on, status }) => [id, depends_on, status]),
      ...{ revision, patched_by },
    })
    const before = await until(
      async () => shown(await graphAt(first, graph_id, service)),
      ({ tasks }) => tasks.every(([id, , status]) => (status === 'success') === ['a', 'd', 'e'].includes(id as string)),
    )
    expect(before).toMatchObject({ revision: 3, patched_by: ['ada'] })
    await first.stop('SIGKILL')
    expect(shown(await graphAt(second, graph_id, service))).toEqual(before)
    expect(await patch(second, graph_id, keyed, { ...ada, 'idempotency-key': 'k' })).toEqual(answer)
    expect(await patch(second, graph_id, { remove: ['b'] }, service)).toMatchObject({ body: { revision: 4 } })
    await using stream = await EventStreamClient.open(`${second.url}/graphs/${graph_id}/events?after=0`, service)
    const changes = await stream.once((all) => all.filter(({ event }) => event === 'graph_changed').length === 4)
    expect(changes.filter(({ event }) => event === 'graph_changed')).toMatchObject([
      { revision: 1, added: ['d'], removed: ['b'] },
      { revision: 2, added: ['e'], removed: ['c'], replaced: ['a'], by: 'ada' },
      { revision: 3, added: ['b'] },
      { revision: 4, removed: ['b'] },
    ])
  })

  test('leave no id taken whose task a kill has kept them from adding', async () => {
    using each = await cluster()
    await using first = await each.replica()
    const { graph_id } = await first.submit([gate('gate')])
    const ofStray = `from taskmill.task_id where id = 'stray'`
    await each.server.run(
      `insert into taskmill.task_id select 'stray', ordinal from taskmill.graph where graph_id = '${graph_id}'`,
      each.database,
    )
    await first.stop('SIGKILL')
    await using second = await each.replica()
    await until(
      () => each.server.run(`select * ${ofStray}`, each.database),
      (rows) => rows.length === 0,
      { patienceMs: 50_000 },
    )
    expect(await patch(second, graph_id, { add: [noop('stray', 'gate')] })).toMatchObject({ status: 200 })
  })
})
