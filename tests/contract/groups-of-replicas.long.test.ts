/**
 * `concurrency` over many replicas of control on one database: the same promises as in `graph-groups.test.ts`, which also runs
 * with a database. Method: approvals, which hold the places of their graphs until they are answered, at whichever replica.
 */
import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Control } from '../support/control.ts'
import { answered, describeReplicas, LONG_LEASE } from '../support/replicas.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

/** An answer as it came. */
type Json = ReturnType<typeof JSON.parse>

const ask = (id: string) => ({ id, type: 'approval', params: { message: 'go on?' } })
const deploy = (more: object = {}) => ({ group: 'deploy', ...more })

async function submit(control: Control, tasks: readonly object[], concurrency: object): Promise<string> {
  const response = await control.post({ tasks, concurrency })
  expect(response.status).toBe(202)
  return ((await response.json()) as { graph_id: string }).graph_id
}

const taskAt = async (control: Control, id: string): Promise<Json> => (await answered(control, `/tasks/${id}`)).json()

/** Waits until the approval `id` waits for `reason`, and returns the whole reason. */
const waits = async (control: Control, id: string, reason: 'approval' | 'group'): Promise<Json> =>
  (
    await until(
      () => taskAt(control, id),
      ({ waiting }) => waiting?.reason === reason,
      { patienceMs: 50_000 },
    )
  ).waiting

const approve = async (control: Control, id: string) =>
  expect((await answered(control, `/tasks/${id}/approve`, { method: 'POST', body: '{"who":"ada"}' })).status).toBe(200)

describeReplicas('groups of graphs over replicas', (cluster) => {
  test('one order, whoever accepted a graph; none overtakes, also over a kill and a stop of replicas', async () => {
    using each = await cluster()
    await using second = await each.replica()
    {
      await using first = await each.replica()
      await using third = await each.replica()
      const a = await submit(first, [ask('a')], deploy())
      await submit(second, [ask('b')], deploy())
      await submit(third, [ask('c')], deploy())
      await submit(first, [ask('d')], deploy())
      await submit(second, [ask('other')], { group: 'other' })
      await waits(first, 'other', 'approval')
      await waits(second, 'a', 'approval')
      const waiting = { reason: 'group', group: 'deploy', graphs: [a] }
      for (const id of ['b', 'c', 'd']) expect(await waits(second, id, 'group')).toEqual(waiting)
      await first.stop('SIGKILL')
      await third.stop('SIGTERM')
    }
    await waits(second, 'a', 'approval')
    await waits(second, 'd', 'group')
    await using fourth = await each.replica()
    await submit(fourth, [ask('e')], deploy({ limit: 9 }))
    for (const [id, next] of ['ab', 'bc', 'cd']) {
      await waits(second, next!, 'group')
      await waits(second, 'e', 'group')
      await approve(fourth, id!)
      await waits(fourth, next!, 'approval')
    }
    await waits(second, 'e', 'approval') // its own limit allows that
  })

  test('one that must not wait is refused for a graph of another replica, and nothing of it is stored', async () => {
    using each = await cluster()
    await using first = await each.replica(LONG_LEASE)
    await using second = await each.replica(LONG_LEASE)
    const holder = await submit(first, [ask('a')], deploy({ on_full: 'refuse' }))
    const graph = { tasks: [ask('b')], concurrency: deploy({ on_full: 'refuse' }) }
    const error = `concurrency: group "deploy" is full (limit 1): graph ${holder} has not ended`
    for (let i = 0; i < 2; i++) {
      const refused = await second.post(graph, { 'Idempotency-Key': 'k' })
      expect([refused.status, await refused.json()]).toEqual([409, expect.objectContaining({ error })])
    }
    const dryRun = await second.fetch('/tasks?dry_run=true', { method: 'POST', body: JSON.stringify(graph) })
    expect(await dryRun.json()).toMatchObject({ valid: false, errors: [{ message: error }] })
    for (const control of [first, second]) expect((await control.fetch('/tasks/b')).status).toBe(404)
    const left = await each.server.run('select count(*)::int as count from taskmill.graph', each.database)
    expect(left).toEqual([{ count: 1 }])
    await approve(second, 'a')
    await until(async () => (await second.post(graph, { 'Idempotency-Key': 'k' })).status, 202)
    await waits(first, 'b', 'approval')
    await approve(second, 'b')
  })

  test('one cancels the oldest graphs wherever they are, and starts once they have ended', async () => {
    using each = await cluster()
    await using first = await each.replica(LONG_LEASE)
    await using second = await each.replica(LONG_LEASE)
    await submit(first, [ask('a')], deploy())
    await submit(second, [ask('b')], deploy())
    await submit(first, [ask('c')], deploy({ limit: 2 }))
    await waits(second, 'c', 'group')
    const by = await submit(second, [ask('d')], deploy({ limit: 2, on_full: 'cancel_oldest' }))
    const error = `task cancelled: graph ${by} takes its place in group "deploy"`
    for (const id of ['a', 'b']) {
      const response = await second.fetch(`/tasks/${id}?wait_ms=20000`)
      expect(await response.json()).toMatchObject({ status: 'cancelled', error })
    }
    for (const id of ['c', 'd']) {
      await waits(first, id, 'approval')
      await approve(first, id)
    }
  })

  test('no more run than the limit, whoever submits how many at a time, and all of them end', async () => {
    using each = await cluster()
    using temp = tempDir()
    const notes = join(temp.path, 'notes')
    writeFileSync(notes, '')
    const env = { SERVICE_SHELL_POLICY: 'open' }
    await using first = await each.replica(LONG_LEASE, env)
    await using second = await each.replica(LONG_LEASE, env)
    const script = `echo + >> ${notes}; sleep 0.01; echo - >> ${notes}`
    const work = (i: number) => [{ id: `w${i}`, type: 'shell', params: { script } }]
    const replicas = [first, second]
    await Promise.all(Array.from({ length: 60 }, (_, i) => submit(replicas[i % 2]!, work(i), deploy({ limit: 2 }))))
    for (let i = 0; i < 60; i++) expect(await first.ended(`w${i}`)).toMatchObject({ status: 'success' })
    const lines = readFileSync(notes, 'utf8').trim().split('\n')
    expect(lines).toHaveLength(120)
    let running = 0
    for (const line of lines) {
      running += line === '+' ? 1 : -1
      expect(running).toBeLessThanOrEqual(2)
    }
  })
})
