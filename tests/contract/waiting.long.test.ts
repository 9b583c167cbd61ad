/** Why a task waits: `waiting` in records and graphs. Source: docs/http.md, "Why is it waiting?". */
import { describe, expect, test } from 'bun:test'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import { type Control, startControl } from '../support/control.ts'
import { EventStreamClient, gapsIn } from '../support/event-stream.ts'
import { startPair } from '../support/pair.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

const waitingIn = async (control: Control, graphId: string): Promise<Record<string, unknown>> => {
  const { tasks } = (await (await control.fetch(`/graphs/${graphId}`)).json()) as GraphDetails
  return Object.fromEntries(tasks.map(({ id, waiting }) => [id, waiting]))
}

type Waiting = NonNullable<TaskRecord['waiting']>

/** The record of the task once it waits for this reason. */
const waits = (control: Control, id: string, isIt: (waiting: Waiting) => boolean): Promise<TaskRecord> =>
  until(
    () => control.get(id),
    ({ waiting }) => waiting !== undefined && isIt(waiting),
  )

test('for dependencies and for a slot', async () => {
  await using control = await startControl({ flags: ['--max-concurrency', '1'] })
  using gate = new Gate()
  const { graph_id } = await control.submit([
    gate.task('runs'),
    { id: 'ready', type: 'noop' },
    { id: 'after', type: 'noop', depends_on: ['runs', 'ready'] },
  ])
  await until(() => gate.arrivals, 1)
  const expected = {
    runs: undefined,
    ready: { reason: 'concurrency', detail: '1 of 1 slots are taken (--max-concurrency)' },
    after: { reason: 'dependencies', tasks: ['runs', 'ready'] },
  } as const
  expect(await waitingIn(control, graph_id)).toEqual(expected)
  for (const [id, waiting] of Object.entries(expected))
    expect((await control.get(id)).waiting).toEqual(waiting as never)
  gate.open()
  for (const { waiting } of await control.allEnded()) expect(waiting).toBeUndefined()
  const ended = await waitingIn(control, graph_id)
  expect(Object.values(ended)).toEqual([undefined, undefined, undefined])
})

test('for the next attempt', async () => {
  await using control = await startControl()
  const params = { action: 'read', path: 'not/there' }
  const { graph_id } = await control.submit([{ id: 'again', type: 'file', params, retry: 5 }])
  const { waiting, attempts, attempt } = await waits(
    control,
    'again',
    ({ reason, until: at }) => reason === 'backoff' && Date.parse(at!) - Date.now() > 200,
  )
  expect(waiting!.detail).toBe(`attempt ${attempt! + 1} of 6 follows`)
  const pauseMs = 100 * 2 ** (attempt! - 1)
  expect(Date.parse(waiting!.until!)).toBe(Date.parse(attempts!.at(-1)!.finished_at!) + pauseMs)
  expect((await waitingIn(control, graph_id)).again).toMatchObject({ reason: 'backoff' })
})

test('a record that waits may be submitted again', async () => {
  await using control = await startControl()
  using gate = new Gate()
  await control.submit([gate.task('runs'), { id: 'after', type: 'noop', depends_on: ['runs'] }])
  const record = await control.get('after')
  expect(record.waiting?.reason).toBe('dependencies')
  const response = await control.post({ tasks: [{ ...record, id: 'copy', depends_on: [] }] })
  expect(response.status).toBe(202)
})

test('for memory at the runtime service, and for a runtime service that is away', async () => {
  const large = { limits: { memory_bytes: 600 * 1024 * 1024 } }
  await using pair = await startPair({ runtimeFlags: ['--capacity-memory-bytes', String(1024 * 1024 * 1024)] })
  const go = `echo; while [ ! -e '${pair.file('go')}' ]; do sleep 0.02; done`
  const script = (id: string) => ({ id, type: 'runtime.script', params: { script: go, ...large } })
  const { graph_id } = await pair.control.submit([script('first')])
  await pair.running('first')
  const second = await pair.control.submit([script('second')])
  const { waiting } = await waits(pair.control, 'second', ({ reason }) => reason === 'runtime')
  expect(waiting).toEqual({ reason: 'runtime', detail: 'runtime default: waiting for memory_bytes' })
  // The reason is left out if the runtime service does not answer within 250 ms.
  await until(
    () => waitingIn(pair.control, second.graph_id),
    (found) => Bun.deepEquals(found, { second: waiting }),
  )
  expect(await waitingIn(pair.control, graph_id)).toEqual({ first: undefined })

  await pair.stopRuntime('SIGTERM')
  // The first fault may be that the stop cuts off the open request of control.
  const AWAY = /^runtime default is away since (\S+) \(connection refused\)$/
  const away = await waits(pair.control, 'first', ({ detail = '' }) => AWAY.test(detail))
  const [, time] = AWAY.exec(away.waiting!.detail!)!
  const since = Date.parse(time!)
  expect(Math.abs(Date.now() - since)).toBeLessThan(30_000)
  // The attempt and the pool notice it one after the other, and either may tell.
  expect((await waitingIn(pair.control, graph_id)).first).toMatchObject({ detail: expect.stringMatching(AWAY) })

  await pair.startRuntime()
  await until(
    () => pair.control.get('first'),
    ({ waiting }) => waiting === undefined,
  )
  await Bun.write(pair.file('go'), '')
  for (const id of ['first', 'second']) expect((await pair.control.ended(id)).status).toBe('success')
})

describe('events', () => {
  /** What the stream said last of why the task waits; null: that it does not. */
  const lastOf = (stream: EventStreamClient, id: string) => {
    const event = stream.events.findLast((event) => event.event === 'task_waiting' && event.task_id === id)
    return event?.event === 'task_waiting' ? (event.waiting ?? null) : undefined
  }
  const told = (stream: EventStreamClient, id: string, isIt: (waiting: Waiting | null | undefined) => boolean) =>
    until(() => lastOf(stream, id), isIt)

  test('tell what the runtime service waits for, that it is away, and that a task executes', async () => {
    const large = { limits: { memory_bytes: 600 * 1024 * 1024 } }
    await using pair = await startPair({ runtimeFlags: ['--capacity-memory-bytes', String(1024 * 1024 * 1024)] })
    const { control } = pair
    const go = `echo; while [ ! -e '${pair.file('go')}' ]; do sleep 0.02; done`
    const script = (id: string) => ({ id, type: 'runtime.script', params: { script: go, ...large } })
    await using all = await EventStreamClient.open(`${control.url}/events`)
    await control.submit([script('first')])
    await pair.running('first')
    const { graph_id } = await control.submit([script('second')])
    await using ofGraph = await EventStreamClient.open(`${control.url}/graphs/${graph_id}/events?after=0`)
    await using ofTask = await EventStreamClient.open(`${control.url}/tasks/first/events`)
    const memory = { reason: 'runtime', detail: 'runtime default: waiting for memory_bytes' } as const
    for (const stream of [all, ofGraph])
      expect(await told(stream, 'second', (waiting) => waiting != null)).toEqual(memory)
    await using late = await EventStreamClient.open(`${control.url}/tasks/second/events`)
    expect(await told(late, 'second', (waiting) => waiting != null)).toEqual(memory)
    await using unknown = await EventStreamClient.open(`${control.url}/graphs/${graph_id}/events?after=900000000000`)
    expect((await unknown.once(({ length }) => length > 0))[0]).toMatchObject({
      event: 'reset',
      tasks: [{ waiting: memory }],
    })

    await pair.stopRuntime('SIGTERM')
    const isAway = (waiting: Waiting | null | undefined) =>
      waiting?.detail?.startsWith('runtime default is away since ') === true
    for (const stream of [all, ofTask]) await told(stream, 'first', isAway)
    await pair.startRuntime()
    for (const stream of [all, ofTask]) await told(stream, 'first', (waiting) => waiting === null)
    await told(ofGraph, 'second', (waiting) => waiting?.detail === memory.detail)

    await Bun.write(pair.file('go'), '')
    for (const id of ['first', 'second']) expect((await control.ended(id)).status).toBe('success')
    await all.once((events) => events.filter(({ event }) => event === 'graph_ended').length === 2)
    for (const stream of [all, ofGraph, ofTask, late])
      expect(gapsIn(stream.events, stream.events[0]!.previous)).toEqual([])
    expect(ofTask.events.some((event) => 'task_id' in event && event.task_id !== 'first')).toBe(false)
    await using resumed = await EventStreamClient.open(`${control.url}/events`, { 'last-event-id': all.lastId! })
    expect(resumed.status).toBe(200)
  })

  test('keep a reason while the runtime service does not answer in time', async () => {
    let runtimeUrl = ''
    let isHeld = false
    let held = 0
    await using proxy = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      idleTimeout: 0,
      async fetch(request) {
        const { pathname, search } = new URL(request.url)
        if (isHeld && search.includes('status=accepted')) {
          held++
          return new Promise(() => {})
        }
        const { method, headers } = request
        const body = method === 'GET' ? null : await request.arrayBuffer()
        return fetch(runtimeUrl + pathname + search, { method, headers, body, signal: request.signal })
      },
    })
    await using pair = await startPair({
      runtimeFlags: ['--max-running-tasks', '1'],
      runtimeUrl: (url) => {
        runtimeUrl = url
        return `http://127.0.0.1:${proxy.port}`
      },
    })
    await pair.script('first', 'echo; sleep 600')
    await pair.running('first')
    await pair.script('second', 'true')
    await using stream = await EventStreamClient.open(`${pair.control.url}/tasks/second/events`)
    await told(stream, 'second', (waiting) => waiting?.reason === 'runtime')
    isHeld = true
    // Control asks again only after it has sent what it found out before.
    await until(
      () => held,
      (count) => count >= 2,
    )
    await using late = await EventStreamClient.open(`${pair.control.url}/tasks/second/events`)
    await told(late, 'second', (waiting) => waiting?.reason === 'runtime')
    for (const event of stream.events) if (event.event === 'task_waiting') expect(event).toHaveProperty('waiting')
  })

  test('tell of the backoff of a task, and no more once it has ended', async () => {
    await using control = await startControl()
    const params = { action: 'read', path: 'not/there' }
    const { graph_id } = await control.submit([{ id: 'again', type: 'file', params, retry: 20 }])
    await using stream = await EventStreamClient.open(`${control.url}/graphs/${graph_id}/events?after=0&until=ended`)
    const changes = () => stream.events.flatMap((event) => (event.event === 'task_changed' ? [event] : []))
    const { waiting, run_status, attempt } = await until(
      () => changes().find(({ waiting }) => waiting?.reason === 'backoff')!,
    )
    expect([run_status, waiting!.detail]).toEqual(['accepted', `attempt ${attempt! + 1} of 21 follows`])
    expect(Date.parse(waiting!.until!)).toBeGreaterThan(0)
    await control.fetch('/tasks/again/cancel', { method: 'POST' })
    await stream.ended()
    expect(changes().at(-1)).toMatchObject({ status: 'cancelled' })
    expect(changes().at(-1)).not.toHaveProperty('waiting')
  })
})

test('a runtime service that does not answer does not hold up a look at its tasks', async () => {
  await using pair = await startPair()
  await pair.control.submit([{ id: 'sleeps', type: 'runtime.script', params: { script: 'echo; sleep 600' } }])
  await pair.running('sleeps')
  pair.runtime.process.kill('SIGSTOP')
  const startedAt = performance.now()
  expect((await pair.control.get('sleeps')).status).toBe('running')
  expect(performance.now() - startedAt).toBeLessThan(15_000) // what calls to it are given
  pair.runtime.process.kill('SIGCONT')
})
