/** The audit log of a cluster: any replica shows who asked any of them for what. Source: docs/security.md. */
import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { AuditRecord, AuditResponse } from '../../shared/contract/audit.ts'
import { runClient } from '../support/client.ts'
import type { Control } from '../support/control.ts'
import { EventStreamClient } from '../support/event-stream.ts'
import { describeReplicas, healthOf } from '../support/replicas.ts'
import { until } from '../support/until.ts'

/** In the order of the records: events come in that of the answers. */
const idsIn = (events: readonly object[]) =>
  (events as ({ event: string } & AuditRecord)[]).map(({ event, id }) => `${event} ${id}`).sort()

describeReplicas('the audit log of replicas', (newCluster) => {
  const auditOf = async (control: Control) => (await (await control.fetch('/audit')).json()) as AuditResponse
  const submit = async (control: Control) => {
    const answer = await control.post({ scope: 'graph', tasks: [{ id: 'a', type: 'approval' }] })
    return ((await answer.json()) as { graph_id: string }).graph_id
  }

  test('has the requests to all of them, also to one that is gone', async () => {
    using cluster = await newCluster()
    const start = () => cluster.replica(['--audit', 'all'])
    await using first = await start()
    await using second = await start()
    await using stream = await EventStreamClient.open(`${second.url}/audit/events`)
    const replicas = [await healthOf(first), await healthOf(second)].map(({ replica }) => replica.id)
    const graphs = [await submit(first), await submit(second)] as const
    const path = `/graphs/${graphs[1]}/cancel`
    expect((await first.fetch(path, { method: 'POST' })).status).toBe(202)
    const whole = await until(
      () => auditOf(second),
      ({ records }) => records.length === 4 && records.every(({ status }) => status !== undefined),
    )
    const [one, two] = replicas
    expect(whole.records.toReversed()).toEqual([
      expect.objectContaining({ replica: one, what: 'POST /tasks', graph_id: graphs[0], status: 202 }),
      expect.objectContaining({ replica: two, what: 'POST /tasks', graph_id: graphs[1], status: 202 }),
      expect.objectContaining({ replica: one, target: path, status: 202 }),
      expect.objectContaining({ replica: two, target: path, status: 202 }),
    ])
    expect(whole.records[0]!.trace_id).toBe(whole.records[1]!.trace_id)
    expect(await auditOf(first)).toEqual(whole)
    const events = await stream.once(({ length }) => length >= whole.records.length)
    expect(idsIn(events)).toEqual(whole.records.map(({ id }) => `request ${id}`).sort())
    expect(existsSync(join(first.dataDir, 'audit.ndjson'))).toBe(false)

    const body = JSON.stringify({ tasks: [{ id: 'long', type: 'sleep', params: { duration_ms: 600_000 } }] })
    void first.fetch('/tasks?wait_ms=60000', { method: 'POST', body }).catch(() => {})
    await until(
      () => second.fetch('/tasks/long'),
      ({ status }) => status === 200,
    )
    await first.stop('SIGKILL')
    const [last, ...earlier] = (await auditOf(second)).records
    expect(last).toMatchObject({ replica: one, target: '/tasks?wait_ms=60000' })
    expect(last).not.toHaveProperty('status')
    expect(earlier).toEqual(whole.records)

    const page = await runClient(['audit', '--limit', '2', '--before', last!.id], { url: second.url })
    expect(page.envelope).toMatchObject({ data: { records: whole.records.slice(0, 2), next: whole.records[1]!.id } })
    const table = await runClient(['audit', '-o', 'table'], { url: second.url })
    expect(table.stdout).toMatch(/WHEN +REPLICA +FROM/)
  })
})
