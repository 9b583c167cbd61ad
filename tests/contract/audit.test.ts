/** The audit log, against the built service and client. Source: docs/security.md. */
import { expect, test } from 'bun:test'
import type { AuditRecord, AuditResponse } from '../../shared/contract/audit.ts'
import { RIGHTS } from '../../shared/contract/rights.ts'
import { runClient } from '../support/client.ts'
import { startControl } from '../support/control.ts'
import { EventStreamClient } from '../support/event-stream.ts'
import { connectClient } from '../support/mcp-client.ts'
import { tempDir } from '../support/temp.ts'
import { tokensFile } from '../support/tokens.ts'
import { until } from '../support/until.ts'

const GRAPH = { scope: 'graph', tasks: [{ id: 'a', type: 'approval' }] }

test('says who asked for what, from where, by which door, and what became of it', async () => {
  using tokens = tokensFile({
    ci: { rights: ['read', 'submit'] },
    ops: { rights: ['read', 'submit', 'answer', 'cancel', 'operate'] },
  })
  await using control = await startControl({ flags: ['--tokens-file', tokens.path], env: { SERVICE_TOKEN: 'sesame' } })
  const call = async (name: string, method: string, path: string, body?: object) => {
    const answer = await control.fetch(path, {
      ...{ method, headers: tokens.as(name) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: answer.status, body: (await answer.json().catch(() => undefined)) as { graph_id: string } }
  }
  const { graph_id } = (await call('ci', 'POST', '/tasks', GRAPH)).body
  expect((await call('ci', 'GET', '/graphs')).status).toBe(200)
  const task = `/graphs/${graph_id}/tasks/a`
  await until(
    async () => (await (await control.fetch(task, { headers: tokens.as('ci') })).json()) as { waiting?: object },
    ({ waiting }) => waiting !== undefined,
  )
  expect((await call('ci', 'POST', `${task}/approve`, { who: 'someone' })).status).toBe(403)
  expect((await call('ops', 'POST', `${task}/approve`, { who: 'someone' })).status).toBe(200)
  await using mcp = await connectClient(control.url, 'auto', tokens.as('ops'))
  await mcp.call('cancel', { graph_id })
  await mcp.call('list_graphs')

  const records = async () => (await call('ops', 'GET', '/audit')).body as unknown as { records: AuditRecord[] }
  const found = (await until(records, (page) => page.records.every(({ status }) => status !== undefined))).records
  const from = '127.0.0.1'
  expect(found).toEqual([
    expect.objectContaining({ by: 'ops', from, door: 'mcp', what: 'cancel', target: graph_id, status: 200 }),
    expect.objectContaining({ by: 'ops', door: 'http', what: 'POST /graphs/:id/tasks/:task_id/approve', status: 200 }),
    expect.objectContaining({ by: 'ci', from, target: `${task}/approve`, status: 403 }),
    expect.objectContaining({ by: 'ci', from, door: 'http', what: 'POST /tasks', graph_id, status: 202 }),
  ])
  expect(found.every(({ trace_id }) => trace_id !== '')).toBe(true)
  expect((await call('ci', 'GET', '/audit')).status).toBe(403)

  const env = { SERVICE_TOKEN: 'token-of-ops' }
  const shown = await runClient(['audit', '--since', '1d', '--limit', '1'], { url: control.url, env })
  expect(shown.envelope).toMatchObject({ ok: true, data: { records: [found[0]], next: found[0]!.id } })
  const table = await runClient(['audit', '-o', 'table'], { url: control.url, env })
  expect(table.stdout).toMatch(/WHEN +(REPLICA +)?BY +FROM +DOOR +WHAT +GRAPH OR TARGET +STATUS/)
  expect(table.stdout).toMatch(new RegExp(`ci +127.0.0.1 +http +POST /tasks +${graph_id} +202`))
})

test('deletions, drains and cancels have records, and all of them are events, also for a stream that resumes', async () => {
  using tokens = tokensFile({ ops: { rights: [...RIGHTS] }, ci: { rights: ['read', 'submit'] } })
  const flags = ['--tokens-file', tokens.path, '--runtime-url', 'http://127.0.0.1:1']
  await using control = await startControl({ flags, env: { SERVICE_TOKEN: 'sesame' } })
  const headers = tokens.as('ops')
  const call = (method: string, path: string, body?: object) =>
    control.fetch(path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
  expect((await control.fetch('/audit/events', { headers: tokens.as('ci') })).status).toBe(403)
  const url = `${control.url}/audit/events`
  await using stream = await EventStreamClient.open(url, headers)
  const { graph_id } = (await (await call('POST', '/tasks', GRAPH)).json()) as { graph_id: string }
  const { runtimes } = (await (await call('GET', '/runtimes')).json()) as { runtimes: { name: string }[] }
  expect((await call('POST', `/graphs/${graph_id}/cancel`)).status).toBe(202)
  await until(
    async () => (await (await call('GET', `/graphs/${graph_id}`)).json()) as { state: string },
    ({ state }) => state !== 'running',
  )
  const acts = [
    ['DELETE', '/graphs/:id', `/graphs/${graph_id}`],
    ['POST', '/runtimes/:name/drain', `/runtimes/${runtimes[0]!.name}/drain`],
  ] as const
  for (const [method, , path] of acts) expect([path, (await call(method, path)).ok]).toEqual([path, true])

  const kept = await until(
    async () => (await (await call('GET', '/audit')).json()) as AuditResponse,
    ({ records }) => records.every(({ status }) => status !== undefined),
  )
  const records = kept.records.toReversed()
  expect(records.map(({ by, what }) => [by, what])).toEqual([
    ['ops', 'POST /tasks'],
    ['ops', 'POST /graphs/:id/cancel'],
    ...acts.map(([method, route]) => ['ops', `${method} ${route}`]),
  ])
  const events = records.map((record) => ({ event: 'request', ...record }))
  const sorted = (got: readonly object[]) => (got as typeof events).toSorted((a, b) => (a.id < b.id ? -1 : 1))
  expect(sorted(await stream.once(({ length }) => length === events.length))).toEqual(events)
  await using resumed = await EventStreamClient.open(url, { ...headers, 'last-event-id': records[0]!.id })
  expect(sorted(await resumed.once(({ length }) => length >= events.length))).toEqual(events)
  expect((await control.fetch('/audit/events', { headers: { ...headers, 'last-event-id': '7' } })).status).toBe(400)
})

test('without callers it is kept on request, and a request is in it although the service is killed before the answer', async () => {
  using dir = tempDir()
  await using control = await startControl({ dataDir: dir.path, flags: ['--audit', 'all'] })
  const body = JSON.stringify({ tasks: [{ id: 'long', type: 'sleep', params: { duration_ms: 600_000 } }] })
  void control.fetch('/tasks?wait_ms=60000', { method: 'POST', body }).catch(() => {})
  await until(
    () => control.fetch('/tasks/long'),
    ({ status }) => status === 200,
  )
  await control.stop('SIGKILL')
  await using again = await startControl({ dataDir: dir.path, flags: ['--audit', 'all'] })
  const { records } = (await (await again.fetch('/audit')).json()) as { records: AuditRecord[] }
  expect(records).toEqual([expect.objectContaining({ what: 'POST /tasks', target: '/tasks?wait_ms=60000' })])
  expect(records[0]).not.toHaveProperty('status')
  expect(JSON.stringify(records)).not.toContain('600000')
})

test.each([0, 1_001])('a page of %d records is refused', async (limit) => {
  await using control = await startControl({ flags: ['--audit', 'all'] })
  expect((await control.fetch(`/audit?limit=${limit}`)).status).toBe(400)
  expect((await control.fetch('/audit?since=yesterday')).status).toBe(400)
})

test('is not kept without callers, and the answer says how to', async () => {
  await using control = await startControl()
  const answer = await control.fetch('/audit')
  expect([answer.status, await answer.json()]).toEqual([
    400,
    { error: 'this service keeps no audit log (start it with --audit all, or --tokens-file)' },
  ])
})
