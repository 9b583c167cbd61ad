/** Pauses of several replicas on one database: all of them obey, also who starts later or adopts a graph. */
import { expect, test } from 'bun:test'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import type { Control } from '../support/control.ts'
import { answered, describeReplicas, LONG_LEASE } from '../support/replicas.ts'
import { until } from '../support/until.ts'

const noop = (id: string, more: object = {}) => ({ id, type: 'noop', ...more })

const call = async (control: Control, path: string, body: object = {}) => {
  const answer = await answered(control, path, { method: 'POST', body: JSON.stringify(body) })
  expect([path, answer.status]).toEqual([path, 200])
}

const held = (control: Control, id: string) =>
  until(
    () => control.get(id),
    ({ waiting }) => waiting?.reason === 'pause',
  )

describeReplicas('pauses', (cluster) => {
  test('of a type and of the service hold at all replicas, and at one that starts later', async () => {
    using each = await cluster()
    await using first = await each.replica(LONG_LEASE)
    await using second = await each.replica(LONG_LEASE)
    await call(first, '/pause', { why: 'all' })
    const listed = async (control: Control) => (await control.fetch('/pauses')).json()
    await until(() => listed(second), await listed(first))
    await second.submit([noop('a')])
    await using third = await each.replica(LONG_LEASE)
    await third.submit([noop('b')])
    for (const id of ['a', 'b']) await held(first, id)
    await call(third, '/pause', { type: 'noop' })
    await call(third, '/resume')
    await until(async () => ((await listed(second)) as object[]).length, 1)
    await held(second, 'a')
    await call(second, '/resume', { type: 'noop' })
    for (const id of ['a', 'b']) await first.ended(id)
  })

  test('of a graph goes with it to the replica that adopts it', async () => {
    using each = await cluster()
    await using first = await each.replica()
    await using second = await each.replica()
    const { graph_id } = await first.submit([
      { id: 'asked', type: 'approval', params: {} },
      noop('next', { depends_on: ['asked'] }),
    ])
    await until(async () => (await first.get('asked')).waiting?.reason, 'approval')
    await call(second, `/graphs/${graph_id}/pause`, { why: 'kept' }) // the owner does it
    const paused = async (control: Control) =>
      ((await (await control.fetch('/graphs?paused=true')).json()) as GraphDetails[]).map(({ pause }) => pause?.why)
    expect(await paused(second)).toEqual(['kept'])
    await first.stop('SIGKILL')
    await call(second, '/tasks/asked/approve', { who: 'ada' })
    await held(second, 'next')
    expect(await paused(second)).toEqual(['kept'])
    await call(second, `/graphs/${graph_id}/resume`)
    await second.ended('next')
  })
})
