/** Schedules of a real service: what is accepted, when graphs are submitted, and what a restart leaves. */
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { GraphSummary } from '../../shared/contract/graphs.ts'
import { MAX_JITTER_MS, MAX_KEPT_RUNS } from '../../shared/contract/schedule-words.ts'
import { MAX_CRON_CHARACTERS, Schedule, type ScheduleSummary } from '../../shared/contract/schedules.ts'
import { checkedAnswer } from '../support/answer-check.ts'
import { errorOf } from '../support/answers.ts'
import { type Control, startControl } from '../support/control.ts'
import { type Received, startReceiver } from '../support/receiver.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const GRAPH = { tasks: [{ id: 'a', type: 'noop' }] }
const HELD = { tasks: [{ id: 'a', type: 'approval', params: {} }] }
const FAILING = { tasks: [{ id: 'a', type: 'shell', params: { command: 'false' } }] }
const NEVER = { cron: '0 0 1 1 *' }

const put = (control: Control, name: string, body: object) =>
  control.fetch(`/schedules/${name}`, { method: 'PUT', body: JSON.stringify(body) })

async function accepted(control: Control, name: string, body: object): Promise<Schedule> {
  const response = await put(control, name, body)
  if (!response.ok) throw new Error(`not accepted: ${response.status} ${await response.text()}`)
  return checkedAnswer(Schedule, await response.json())
}

const get = async (control: Control, name: string): Promise<Schedule> =>
  checkedAnswer(Schedule, await (await control.fetch(`/schedules/${name}`)).json())

const shown = (control: Control, name: string, isSo: (schedule: Schedule) => boolean) =>
  until(() => get(control, name), isSo)

const call = (control: Control, name: string, verb: string) =>
  control.fetch(`/schedules/${name}/${verb}`, { method: 'POST' })

const graphsOf = async (control: Control, name: string): Promise<GraphSummary[]> =>
  (await (await control.fetch(`/graphs?label=schedule=${name}`)).json()) as GraphSummary[]

test('a schedule is put, shown, listed and deleted', async () => {
  await using control = await startControl()
  const first = await put(control, 'b', { ...NEVER, timezone: 'Europe/Berlin', graph: GRAPH, jitter: null })
  expect(first.status).toBe(201)
  expect(checkedAnswer(Schedule, await first.json())).toMatchObject({
    ...{ name: 'b', cron: '0 0 1 1 *', timezone: 'Europe/Berlin', overlap: 'skip', catch_up: 'none', paused: false },
    ...{ graph: GRAPH, runs: [], missed: 0, skipped: 0, running: 0, waiting: 0 },
  })
  const again = await put(control, 'b', { ...NEVER, timezone: 'Europe/Berlin', graph: GRAPH })
  expect(again.status).toBe(200)
  const { next } = await get(control, 'b')
  expect(next).toHaveLength(5)
  expect(next[0]).toEndWith('-12-31T23:00:00.000Z')
  await accepted(control, 'a', { every: 3_600_000, graph: GRAPH, paused: true })
  const listed = (await (await control.fetch('/schedules')).json()) as ScheduleSummary[]
  expect(listed.map(({ name }) => name)).toEqual(['a', 'b'])
  for (const each of listed) expect(each).not.toHaveProperty('graph')
  expect(listed[0]?.next).toEqual([])
  expect(listed[1]?.next).toEqual(next.slice(0, 1))
  expect((await control.fetch('/schedules/b', { method: 'DELETE' })).status).toBe(204)
  expect(await errorOf(await control.fetch('/schedules/b'))).toBe('404 schedule not found: b')
  expect(await errorOf(await call(control, 'b', 'trigger'))).toBe('404 schedule not found: b')
})

test('a dry run answers what a schedule would be, and keeps nothing', async () => {
  await using control = await startControl({ flags: ['--max-schedules', '1'] })
  const check = (name: string, body: object) =>
    control.fetch(`/schedules/${name}?dry_run=true`, { method: 'PUT', body: JSON.stringify(body) })
  const would = await check('a', { ...NEVER, timezone: 'Europe/Berlin', graph: GRAPH })
  expect(would.status).toBe(200)
  const { next, created_at, updated_at }: Schedule = checkedAnswer(Schedule, await would.json())
  expect([next.length, created_at]).toEqual([5, updated_at])
  expect(await (await control.fetch('/schedules')).json()).toEqual([])
  const kept = await accepted(control, 'a', { every: 3_600_000, graph: GRAPH })
  const changed = await check('a', { every: 60_000, graph: GRAPH, paused: true })
  expect(checkedAnswer(Schedule, await changed.json())).toMatchObject({ every: 60_000, created_at: kept.created_at })
  expect(await get(control, 'a')).toEqual(kept)
  expect(await errorOf(await check('b', { ...NEVER, graph: GRAPH }))).toStartWith('409 there are 1 schedules already')
  // A faulty rule is told before a faulty graph.
  expect(await errorOf(await check('a', { cron: '99 * * * *', graph: { tasks: [] } }))).toStartWith('400 cron: ')
  expect(await errorOf(await check('a', { ...NEVER, graph: { tasks: [] } }))).toStartWith('400 graph: ')
})

describe('a faulty schedule is refused with the field and the remedy', () => {
  test('all of them', async () => {
    await using control = await startControl({ flags: ['--max-schedules', '1'] })
    const cases: [object, string][] = [
      [{ graph: GRAPH }, 'expected one of cron, every and at, got none'],
      [{ graph: GRAPH, every: 1000, cron: '* * * * *' }, 'expected one of cron, every and at, got cron and every'],
      [{ cron: '* * * * *' }, 'invalid JSON: graph: expected object with a list of tasks, got undefined'],
      [
        { graph: GRAPH, cron: '*'.repeat(MAX_CRON_CHARACTERS + 1) },
        'invalid JSON: cron: expected string of 1 to 256 characters, such as "0 3 * * *"',
      ],
      [
        { graph: GRAPH, ...NEVER, jitter: MAX_JITTER_MS + 1 },
        'invalid JSON: jitter: expected integer of milliseconds from 0 to 86400000',
      ],
      [{ graph: GRAPH, ...NEVER, keep: MAX_KEPT_RUNS + 1 }, 'invalid JSON: keep: expected integer from 1 to 100'],
      [{ graph: GRAPH, every: 10 }, 'invalid JSON: every: expected integer of milliseconds from 1000 to 31536000000'],
      [
        { graph: GRAPH, ...NEVER, overlap: 'skp' },
        'invalid JSON: overlap: expected "skip", "queue", "cancel", "allow"',
      ],
      [{ graph: GRAPH, ...NEVER, overlapp: 'skip' }, 'unknown field "overlapp" (did you mean "overlap"?)'],
      [{ graph: GRAPH, cron: '0 0 30 2 *' }, 'cron: "0 0 30 2 *" is never due (no such date exists)'],
      [
        { graph: GRAPH, at: '2020-01-01T00:00:00Z' },
        'at: 2020-01-01T00:00:00Z is over, or not between start and end (give a time to come)',
      ],
      [{ graph: GRAPH, at: '2030-02-30T00:00:00Z' }, 'at: there is no 2030-02-30T00:00:00Z (the month has fewer days)'],
      [
        { graph: GRAPH, every: 1000, timezone: 'UTC' },
        'timezone: belongs to cron (leave it out: every, at, start and end need none)',
      ],
      [
        { graph: GRAPH, ...NEVER, timezone: 'Mars' },
        'timezone: there is no "Mars" (expected a name such as "Europe/Berlin" or "UTC")',
      ],
      [
        { graph: GRAPH, ...NEVER, end: '2020-01-01T00:00:00Z' },
        'end: nothing is due before 2020-01-01T00:00:00Z (give a later time)',
      ],
      [
        { graph: GRAPH, ...NEVER, catch_up: 'all' },
        'catch_up: "all" requires overlap "queue" or "allow" (with "skip", one of the missed graphs would remain)',
      ],
      [
        { graph: { ...GRAPH, labels: { schedule: 'x' } }, ...NEVER },
        'graph: labels: the service sets the label schedule (leave it out)',
      ],
      [
        { graph: { tasks: [{ id: 'a', type: 'noop', depends_on: ['b'] }] }, ...NEVER },
        'graph: task a depends on unknown task b',
      ],
      [{ graph: { ...GRAPH, params: { day: null } }, ...NEVER }, 'graph: graph needs parameter day'],
      [
        { graph: GRAPH, ...NEVER, on_failure: 'http://a.example' },
        'invalid JSON: on_failure: expected object with a url (an http: or https: address), and optionally headers',
      ],
      [
        { graph: GRAPH, ...NEVER, on_failure: { url: 'http://a.example', headers: { B: { $secret: 'none' } } } },
        'on_failure.headers.B: this service has no secrets (start it with --secrets-dir)',
      ],
      [
        { graph: GRAPH, ...NEVER, on_failure: { url: 'http://a.example', header: {} } },
        'unknown field "on_failure.header" (did you mean "on_failure.headers"?)',
      ],
      [
        { graph: GRAPH, ...NEVER, on_failure: { url: 'http://a.example', headers: { Host: 'b' } } },
        'on_failure.headers.Host: each callback has one of its own (leave it out)',
      ],
    ]
    for (const [body, error] of cases) expect(await errorOf(await put(control, 'a', body))).toBe(`400 ${error}`)
    expect(
      await errorOf(await put(control, 'a', { graph: GRAPH, ...NEVER, on_failure: { url: 'http://127.0.0.1/' } })),
    ).toStartWith('400 on_failure.url: 127.0.0.1')
    expect(await errorOf(await put(control, '-a', { ...NEVER, graph: GRAPH }))).toStartWith(
      '400 name: expected 1 to 128',
    )
    await accepted(control, 'a', { ...NEVER, graph: { ...GRAPH, params: { day: null } }, params: { day: 1 } })
    expect(await errorOf(await put(control, 'b', { ...NEVER, graph: GRAPH }))).toBe(
      '409 there are 1 schedules already (--max-schedules): delete one, or raise the limit',
    )
  })
})

test('a task that is certain to fail is told when the schedule is put', async () => {
  await using control = await startControl()
  const graph = { tasks: [{ id: 'a', type: 'shell', params: {} }] }
  expect((await accepted(control, 'a', { ...NEVER, graph })).warnings).toMatchObject([{ task_id: 'a' }])
})

test('graphs are submitted when they are due, with labels, name and parameters, beside each other', async () => {
  await using control = await startControl()
  const graph = {
    tasks: [{ id: 'a', type: 'shell', params: { command: 'echo', args: [{ $param: 'day' }] } }],
    params: { day: '1' },
  }
  await accepted(control, 'quick', { every: 1_000, graph, params: { day: '2' } })
  const { runs, next } = await shown(
    control,
    'quick',
    ({ runs }) => runs.filter(({ state }) => state === 'success').length >= 2,
  )
  expect(next).toHaveLength(5)
  const [summary] = await graphsOf(control, 'quick')
  const known = runs.find(({ graph_id }) => graph_id === summary?.graph_id) ?? runs[0]
  expect(summary).toMatchObject({ name: 'quick', labels: { schedule: 'quick' } })
  const task = await (await control.fetch(`/graphs/${known?.graph_id}/tasks/a`)).json()
  expect(task).toMatchObject({ status: 'success', result: { stdout: '2\n' } })
  const text = await (await control.fetch('/metrics', { headers: { accept: 'text/plain' } })).text()
  expect(text).toContain('service_control_schedules{state="active"} 1')
  expect(text).toMatch(/service_control_schedule_last_success_timestamp_seconds\{schedule="quick"\} \d+/)
  expect(text).toContain('service_control_schedule_missed_total{schedule="quick"} 0')
})

test('at is due once, and then never again', async () => {
  await using control = await startControl()
  const at = new Date(Date.now() + 500).toISOString()
  await accepted(control, 'once', { at, graph: GRAPH })
  const { next, runs } = await shown(control, 'once', ({ runs }) => runs[0]?.state === 'success')
  expect(next).toEqual([])
  expect(runs).toMatchObject([{ due: at }])
  expect((await accepted(control, 'once', { at, graph: GRAPH })).next).toEqual([])
})

test('overlap: skip leaves due times out, cancel ends the graph before, queue waits for it', async () => {
  await using control = await startControl()
  await accepted(control, 'skip', { every: 1_000, graph: HELD })
  await accepted(control, 'cancel', { every: 1_000, graph: HELD, overlap: 'cancel' })
  await accepted(control, 'queue', { every: 1_000, graph: HELD, overlap: 'queue' })
  expect((await shown(control, 'skip', ({ skipped }) => skipped >= 2)).runs).toMatchObject([{ state: 'running' }])
  await shown(control, 'cancel', ({ runs }) => runs.filter(({ state }) => state === 'cancelled').length >= 2)
  const queued = await shown(control, 'queue', ({ waiting }) => waiting >= 2)
  expect(queued.runs).toHaveLength(1)
  await call(control, 'queue', 'pause')
  await control.fetch(`/graphs/${queued.runs[0]?.graph_id}/cancel`, { method: 'POST' })
  const { runs } = await shown(control, 'queue', ({ runs }) => runs.at(-1)?.state === 'cancelled')
  expect(runs).toHaveLength(1)
})

test('a paused schedule submits nothing but what a caller asks for, and a resumed one goes on from then', async () => {
  await using control = await startControl()
  await accepted(control, 'a', { every: 1_000, graph: GRAPH, paused: true })
  const triggered = await call(control, 'a', 'trigger')
  expect(triggered.status).toBe(202)
  const { graph_id } = (await triggered.json()) as { graph_id: string }
  const { runs } = await shown(control, 'a', ({ runs }) => runs[0]?.state === 'success')
  expect(runs).toMatchObject([{ graph_id }])
  expect(runs[0]).not.toHaveProperty('due')
  expect(checkedAnswer(Schedule, await (await call(control, 'a', 'resume')).json())).toMatchObject({
    paused: false,
    missed: 0,
  })
  await shown(control, 'a', ({ runs }) => runs.length > 1)
  expect(checkedAnswer(Schedule, await (await call(control, 'a', 'pause')).json())).toMatchObject({
    paused: true,
    next: [],
  })
})

test('of the ended graphs, keep of them stay', async () => {
  await using control = await startControl()
  await accepted(control, 'a', { ...NEVER, graph: GRAPH, keep: 2 })
  const ids: string[] = []
  for (let i = 0; i < 4; i++) {
    const { graph_id } = (await (await call(control, 'a', 'trigger')).json()) as { graph_id: string }
    ids.unshift(graph_id)
    await shown(control, 'a', ({ running }) => running === 0)
  }
  const graphs = await until(
    () => graphsOf(control, 'a'),
    ({ length }) => length === 2,
  )
  expect(graphs.map(({ graph_id }) => graph_id)).toEqual(ids.slice(0, 2))
})

test('a run whose graph is retried in place runs again, holds up, and ends as that graph does then, also over a kill', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  await using first = await startControl({ dataDir })
  await accepted(first, 'a', { ...NEVER, graph: HELD })
  const { graph_id } = (await (await call(first, 'a', 'trigger')).json()) as { graph_id: string }
  const answer = (control: Control, verb: string, body = {}) =>
    control.fetch(`/graphs/${graph_id}/${verb}`, { method: 'POST', body: JSON.stringify(body) })
  await answer(first, 'cancel')
  await shown(first, 'a', ({ runs }) => runs[0]?.state === 'cancelled')
  expect((await answer(first, 'retry')).status).toBe(202)
  expect((await shown(first, 'a', ({ running }) => running === 1)).runs).toMatchObject([{ graph_id, state: 'running' }])
  await first.stop('SIGKILL')
  await using second = await startControl({ dataDir })
  await until(async () => (await answer(second, 'tasks/a/approve', { who: 'ada' })).status, 200)
  const { runs, last_success } = await shown(second, 'a', ({ running }) => running === 0)
  expect(runs).toMatchObject([{ graph_id, state: 'success' }])
  expect(last_success).toBeDefined()
})

test('a graph that is refused, and one that fails, are told with the headers of the schedule', async () => {
  await using receiver = startReceiver()
  await using control = await startControl({ flags: ['--callback-policy', 'any'] })
  const on_failure = { url: receiver.url, headers: { 'X-Key': 'sesame' } }
  expect((await accepted(control, 'fails', { ...NEVER, graph: FAILING, on_failure })).on_failure).toEqual(on_failure)
  const { graph_id } = (await (await call(control, 'fails', 'trigger')).json()) as { graph_id: string }
  await receiver.has(1)
  const [{ data, headers }] = receiver.received as [Received]
  expect(data).toEqual({
    event: 'schedule_failed',
    schedule: 'fails',
    reason: 'failed',
    graph_id,
    at: expect.any(String),
  })
  expect(headers.get('x-key')).toBe('sesame')
  expect(headers.get('x-taskmill-event')).toBe('schedule_failed')
  expect(headers.get('x-taskmill-delivery')).toBe(`fails-failed-${graph_id}-${Date.parse(String(data.at))}`)
  const concurrency = { group: 'g', limit: 1, on_full: 'refuse' }
  await control.fetch('/tasks', { method: 'POST', body: JSON.stringify({ ...HELD, concurrency }) })
  const at = new Date(Date.now() + 500).toISOString()
  await accepted(control, 'full', { at, graph: { ...GRAPH, concurrency }, on_failure })
  await receiver.has(2)
  const error = expect.stringContaining('concurrency: group "g" is full')
  expect(receiver.received[1]?.data).toMatchObject({ schedule: 'full', reason: 'refused', due: at, error })
})

test('a kill and a restart lose no schedule; what was missed is told, caught up if asked for, and never doubled', async () => {
  using dir = tempDir()
  let isRefusing = true
  await using receiver = startReceiver(() => new Response(null, { status: isRefusing ? 503 : 204 }))
  const dataDir = join(dir.path, 'data')
  const flags = ['--callback-policy', 'any']
  const on_failure = { url: receiver.url }
  const dues = new Set<string>()
  {
    await using control = await startControl({ dataDir, flags })
    await accepted(control, 'fails', { ...NEVER, graph: FAILING, on_failure })
    await call(control, 'fails', 'trigger')
    await receiver.has(1)
    // The service runs by now, so that the time is to come however long its start took.
    await accepted(control, 'once', { at: new Date(Date.now() + 3_000).toISOString(), graph: GRAPH })
    await accepted(control, 'every', { every: 1_000, graph: GRAPH, catch_up: 'all', overlap: 'queue' })
    await accepted(control, 'none', { every: 1_000, graph: GRAPH, on_failure })
    for (const run of (await shown(control, 'every', ({ runs }) => runs.length >= 2)).runs) dues.add(run.due!)
    await shown(control, 'once', ({ runs }) => runs.length === 1)
    await control.stop('SIGKILL')
  }
  await until(
    () => Date.now(),
    (now) => now > Date.parse([...dues].sort().at(-1)!) + 3_000,
  )
  isRefusing = false
  const before = receiver.received.length
  await using control = await startControl({ dataDir, flags })
  const { missed: missedOfNone } = await shown(control, 'none', ({ missed }) => missed >= 1)
  await receiver.has(before + 2)
  const late = receiver.received.slice(before)
  expect(late.map(({ data }) => data.reason).sort()).toEqual(['failed', 'missed'])
  expect(late.find(({ data }) => data.missed !== undefined)?.data).toMatchObject({
    schedule: 'none',
    missed: missedOfNone,
  })
  const failed = receiver.received.filter(({ data }) => data.reason === 'failed')
  expect(new Set(failed.map(({ headers }) => headers.get('x-taskmill-delivery'))).size).toBe(1)
  expect((await get(control, 'once')).runs).toHaveLength(1)
  const { missed } = await get(control, 'every')
  expect(missed).toBe(0)
  const labels = await until(
    async () => (await graphsOf(control, 'every')).map(({ labels }) => labels?.due),
    ({ length }) => length >= dues.size + 3,
  )
  expect(new Set(labels).size).toBe(labels.length)
  const sorted = labels.map((label) => Date.parse(label!)).sort((a, b) => a - b)
  for (let i = 1; i < sorted.length; i++) expect(sorted[i]! - sorted[i - 1]!).toBe(1_000)
  await until(
    () => control.log,
    (log) => log.some(({ msg }) => msg === 'schedule missed due times'),
  )
})
