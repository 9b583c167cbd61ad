/** Goal: streams of events as `docs/http.md` has them. Method: the executable, real connections, real kills. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import { EVENT_KINDS, EventHeader, type ServiceEvent } from '../../shared/contract/events.ts'
import type { GraphSummary } from '../../shared/contract/graphs.ts'
import { checkAnswer } from '../support/answer-check.ts'
import { type Control, startControl } from '../support/control.ts'
import { EventStreamClient, gapsIn } from '../support/event-stream.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

/** For tests that look at their own graphs only. */
let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

const watch = (control: Control, path: string, headers: Record<string, string> = {}) =>
  EventStreamClient.open(control.url + path, headers)

const kindsOf = (events: readonly ServiceEvent[]) => events.map(({ event }) => event)
const hasEnded = (events: readonly ServiceEvent[]) => events.some(({ event }) => event === 'graph_ended')

/** The states of each task, in the order of their events. */
function statesOf(events: readonly ServiceEvent[]): Record<string, string[]> {
  const states: Record<string, string[]> = {}
  for (const event of events) {
    if (event.event !== 'task_changed') continue
    states[event.task_id] ??= []
    if (states[event.task_id]!.at(-1) !== event.status) states[event.task_id]!.push(event.status)
  }
  return states
}

const sleeper = (id: string, ms: number, extra: object = {}) => ({
  ...{ id, type: 'sleep', params: { duration_ms: ms } },
  ...extra,
})

describe('GET /events', () => {
  test('sends what happens, each event as declared', async () => {
    await using control = await startControl()
    await using stream = await watch(control, '/events')
    const tasks = [
      sleeper('a', 20),
      { id: 'b', type: 'shell', params: { command: 'git' }, depends_on: ['a'] },
      { id: 'c', type: 'noop', depends_on: ['b'] },
    ]
    const { graph_id } = (await (await control.post({ tasks, name: 'nightly', labels: { team: 'x' } })).json()) as {
      graph_id: string
    }
    const events = await stream.once(hasEnded)
    expect(stream.headers.get('content-type')).toStartWith('text/event-stream')
    expect(stream.comments[0]).toBe('open')
    expect(events[0]).toMatchObject({
      ...{ event: 'graph_accepted', graph_id, name: 'nightly', labels: { team: 'x' }, task_count: 3 },
    })
    expect(events.at(-1)).toMatchObject({
      ...{ event: 'graph_ended', graph_id, name: 'nightly', state: 'failed' },
      counts: { success: 1, failed: 1, skipped: 1 },
    })
    expect(statesOf(events).a).toEqual(['running', 'success'])
    const failed = events.find((event) => event.event === 'task_changed' && event.status === 'failed')
    expect(failed).toMatchObject({ task_id: 'b', type: 'os', tool_name: 'shell', code: 'denied', attempt: 1 })
    expect(gapsIn(events, undefined)).toEqual([])
    for (const { event, ...data } of events) {
      const { properties } = EVENT_KINDS[event].payload
      checkAnswer(Type.Object({ ...EventHeader.properties, ...properties }), data)
    }
  })

  test('tells of deleted tasks and removed graphs', async () => {
    await using control = await startControl()
    await using stream = await watch(control, '/events')
    const { graph_id } = await control.submit([{ id: 'a', type: 'noop' }, sleeper('b', 0)])
    await stream.once(hasEnded)
    await control.fetch('/tasks/a', { method: 'DELETE' })
    await stream.once((all) => all.at(-1)?.event === 'task_deleted')
    expect(stream.events.at(-1)).toMatchObject({ graph_id, task_id: 'a' })
    await using ofGraph = await watch(control, `/graphs/${graph_id}/events`)
    await control.fetch(`/graphs/${graph_id}`, { method: 'DELETE' })
    expect(kindsOf(await ofGraph.ended())).toEqual(['graph_removed'])
    await stream.once((all) => all.at(-1)?.event === 'graph_removed')
  })

  test('gives a position to resume from before the first event', async () => {
    await using control = await startControl()
    await using early = await watch(control, '/events')
    const id = await until(() => early.lastId)
    await early[Symbol.asyncDispose]()
    await control.run({ type: 'noop' })
    await using late = await watch(control, '/events', { 'last-event-id': id! })
    const events = await late.once(hasEnded)
    expect(kindsOf(events)[0]).toBe('graph_accepted')
    expect(gapsIn(events, Number(id))).toEqual([])
  })

  test('resumes after any event, by Last-Event-ID or ?after, and from the beginning', async () => {
    await using control = await startControl()
    for (let i = 0; i < 5; i++) await control.run({ type: 'noop', retry: i })
    await using all = await watch(control, '/events?after=0')
    await all.once((events) => events.filter(({ event }) => event === 'graph_ended').length === 5)
    const events = [...all.events]
    for (const [i, { seq }] of events.slice(0, -1).entries()) {
      await using rest = await watch(control, '/events?after=3', { 'last-event-id': String(seq) })
      await rest.once(({ length }) => length === events.length - i - 1)
      expect(rest.events.map((event) => event.seq)).toEqual(events.slice(i + 1).map((event) => event.seq))
      expect(rest.events[0]!.previous).toBe(seq)
    }
  })

  test('continues a list at its X-Event-Seq', async () => {
    await using control = await startControl()
    await control.run({ type: 'noop' })
    const list = await until(
      () => control.fetch('/graphs'),
      (response) => response.headers.get('x-event-seq') !== '0', // until the first numbers are reserved
    )
    const graphs = (await list.json()) as GraphSummary[]
    const seq = list.headers.get('x-event-seq')
    expect(graphs).toHaveLength(1)
    expect((await control.fetch('/tasks')).headers.get('x-event-seq')).not.toBeNull()
    const { graph_id } = await control.submit([{ id: 'next', type: 'noop' }])
    await using stream = await watch(control, `/events?after=${seq}`)
    const events = await stream.once((all) =>
      all.some((event) => event.event === 'graph_ended' && event.graph_id === graph_id),
    )
    expect(events.filter(({ event }) => event === 'graph_accepted')).toHaveLength(1)
  })

  test.each([
    ['?after=x', 'invalid after "x": expected the id of an event, or 0'],
    ['?after=-1', 'invalid after "-1": expected the id of an event, or 0'],
    ['?until=ended', 'unknown query parameter "until"'],
    ['?afte=1', 'unknown query parameter "afte" (did you mean "after"?)'],
  ])('refuses %s', async (query, error) => {
    const response = await control.fetch(`/events${query}`)
    expect(response.status).toBe(400)
    expect(await response.json()).toEqual({ error })
  })

  test('HEAD opens no stream', async () => {
    await using control = await startControl()
    expect((await control.fetch('/events', { method: 'HEAD' })).status).toBe(200)
    const metrics = await (await control.fetch('/metrics', { headers: { accept: 'text/plain' } })).text()
    expect(metrics).toContain('service_control_event_streams 0')
  })

  test('a stream too many gets 503, and has room once another is closed', async () => {
    await using control = await startControl({ flags: ['--max-event-streams', '2'] })
    await using _first = await watch(control, '/events')
    await using second = await watch(control, '/events')
    const refused = await control.fetch('/events')
    expect(refused.status).toBe(503)
    expect(await refused.json()).toEqual({
      error: '2 event streams are open (--max-event-streams); close one or try later',
    })
    await second[Symbol.asyncDispose]()
    await until(
      async () => {
        const response = await control.fetch('/events')
        await response.body?.cancel()
        return response.status
      },
      (status) => status === 200,
    )
  })
})

describe('GET /graphs/{id}/events', () => {
  test('sends the events of one graph, and ends with it if asked to', async () => {
    const { graph_id } = await control.submit([sleeper('a', 100), sleeper('b', 0, { depends_on: ['a'] })])
    await control.submit([sleeper('other', 10)])
    await using stream = await watch(control, `/graphs/${graph_id}/events?until=ended&after=0`)
    const events = await stream.ended()
    expect(kindsOf(events)[0]).toBe('graph_accepted')
    expect(kindsOf(events).at(-1)).toBe('graph_ended')
    expect(statesOf(events)).toEqual({ a: ['running', 'success'], b: expect.arrayContaining(['success']) })
    await using late = await watch(control, `/graphs/${graph_id}/events?until=ended`)
    expect(await late.ended()).toEqual([])
  })

  test('of a scoped graph; its tasks have streams below it', async () => {
    await using control = await startControl()
    const tasks = [sleeper('a', 50)]
    const [one, two] = await Promise.all(
      [1, 2].map(async () => {
        const response = await control.post({ tasks, scope: 'graph' })
        return ((await response.json()) as { graph_id: string }).graph_id
      }),
    )
    await using stream = await watch(control, `/graphs/${one}/tasks/a/events?after=0&until=ended`)
    const events = await stream.ended()
    expect(events.at(-1)).toMatchObject({ graph_id: one, task_id: 'a', status: 'success', scope: 'graph' })
    expect(JSON.stringify(events)).not.toContain(two!)
    await using ofGraph = await watch(control, `/graphs/${two}/events?after=0&until=ended`)
    expect((await ofGraph.ended())[0]).toMatchObject({ event: 'graph_accepted', graph_id: two, scope: 'graph' })
    expect((await control.fetch(`/graphs/${one}/tasks/b/events`)).status).toBe(404)
    expect((await control.fetch('/tasks/a/events')).status).toBe(404)
  })

  test('404 for an unknown graph', async () => {
    const response = await control.fetch('/graphs/none/events')
    expect(response.status).toBe(404)
    expect(await response.json()).toEqual({ error: 'graph not found: none' })
  })
})

describe('GET /tasks/{id}/events', () => {
  test('sends the events of one task, and ends when it is deleted', async () => {
    await control.submit([sleeper('watched', 50), sleeper('beside', 50)])
    await using stream = await watch(control, '/tasks/watched/events?after=0')
    await control.ended('watched')
    await control.fetch('/tasks/watched', { method: 'DELETE' })
    const events = await stream.ended()
    expect(kindsOf(events).at(-1)).toBe('task_deleted')
    expect(statesOf(events)).toEqual({ watched: ['running', 'success'] })
    expect((await control.fetch('/tasks/watched/events')).status).toBe(404)
  })

  test('ends after the last state if asked to', async () => {
    using gate = new Gate()
    await control.submit([gate.task('last')])
    await using stream = await watch(control, '/tasks/last/events?until=ended')
    await until(
      () => stream.lastId,
      (position) => position !== undefined, // it gets all that happens from here on
    )
    gate.open()
    expect(statesOf(await stream.ended()).last?.at(-1)).toBe('success')
  })
})

describe('the past', () => {
  test('is kept over a clean stop and a kill, to the number', async () => {
    using dir = tempDir()
    const seen: ServiceEvent[] = []
    for (const signal of ['SIGTERM', 'SIGKILL', 'SIGTERM', 'SIGKILL'] as const) {
      await using control = await startControl({ dataDir: dir.path })
      await control.run({ type: 'noop' })
      await using stream = await watch(control, '/events?after=0')
      const events = await stream.once((all) => {
        const ended = all.filter(({ event }) => event === 'graph_ended').length
        return ended === seen.filter(({ event }) => event === 'graph_ended').length + 1
      })
      expect(events.slice(0, seen.length)).toEqual(seen)
      seen.splice(0, seen.length, ...events)
      await control.stop(signal)
    }
  })

  test('resumes where the last run ended', async () => {
    using dir = tempDir()
    let id: string | undefined
    for (const signal of ['SIGTERM', 'SIGKILL', 'SIGTERM', 'SIGKILL'] as const) {
      await using control = await startControl({ dataDir: dir.path })
      await using stream = await watch(control, '/events', id === undefined ? {} : { 'last-event-id': id })
      await control.run({ type: 'noop' })
      const events = await stream.once(hasEnded)
      expect(kindsOf(events)).not.toContain('reset')
      expect(gapsIn(events, id === undefined ? undefined : Number(id))).toEqual([])
      id = stream.lastId
      await control.stop(signal)
    }
  })

  test('that is gone gives a reset with the present state', async () => {
    await using control = await startControl({ flags: ['--event-history', '1000', '--persist-interval', '20ms'] })
    const { graph_id } = await control.submit([{ id: 'a', type: 'noop' }])
    await control.ended('a')
    for (let i = 0; i < 8; i++) {
      await control.submit(Array.from({ length: 600 }, (_, n) => ({ id: `t${i}-${n}`, type: 'noop' })))
      await control.allEnded()
      await until(
        () =>
          Bun.file(`${control.dataDir}/state.json`)
            .text()
            .catch(() => ''),
        (text) => text.includes(`"t${i}-599"`),
      )
    }
    await using stream = await watch(control, '/events?after=1')
    const [first] = await stream.once(({ length }) => length > 0)
    expect(first).toMatchObject({ event: 'reset', reason: 'the events after 1 are not known here any more' })
    expect(first!.previous).toBeUndefined()
    expect((first as { graphs: GraphSummary[] }).graphs).toHaveLength(9)
    await using ofGraph = await watch(control, `/graphs/${graph_id}/events?after=1`)
    const [reset] = await ofGraph.once(({ length }) => length > 0)
    expect(reset).toMatchObject({
      ...{
        event: 'reset',
        graph_id,
        graph: { graph_id, state: 'success' },
        tasks: [{ task_id: 'a', status: 'success' }],
      },
    })
    await using ofTask = await watch(control, '/tasks/a/events?after=1')
    expect((await ofTask.once(({ length }) => length > 0))[0]).toMatchObject({
      ...{ event: 'reset', graph_id, task: { task_id: 'a', status: 'success', type: 'os', tool_name: 'noop' } },
    })
  })

  test('that cannot be read gives a reset, and the service goes on', async () => {
    await using control = await startControl()
    await control.run({ type: 'noop' })
    const [name] = readdirSync(control.dataDir).filter((each) => /^events-\d+\.log$/.test(each))
    const path = join(control.dataDir, name!)
    renameSync(path, `${path}.aside`)
    mkdirSync(path) // can be opened, and not be read
    await using stream = await watch(control, '/events?after=0')
    const [first] = await stream.once(({ length }) => length > 0)
    expect(first).toMatchObject({ event: 'reset', reason: 'the events to resume from are not kept any more' })
    expect(await control.run({ type: 'noop' })).toMatchObject({ status: 'success' })
  })

  test('with a number from the future gives a reset', async () => {
    await using control = await startControl()
    await using stream = await watch(control, '/events?after=900000000000')
    expect((await stream.once(({ length }) => length > 0))[0]).toMatchObject({ event: 'reset', graphs: [] })
  })
})

describe('a graph that was removed while nobody watched', () => {
  const removed = async (control: Control) => {
    const answer = await control.post({
      tasks: [sleeper('a', 20), sleeper('b', 0, { depends_on: ['a'] })],
      scope: 'graph',
    })
    const { graph_id } = (await answer.json()) as { graph_id: string }
    await using stream = await watch(control, `/graphs/${graph_id}/events?after=0&until=ended`)
    const events = [...(await stream.ended())]
    expect((await control.fetch(`/graphs/${graph_id}`, { method: 'DELETE' })).status).toBe(204)
    return { graph_id, events, path: `/graphs/${graph_id}/events` }
  }

  test('is told to its end to a client that resumes, after a kill too', async () => {
    using dir = tempDir()
    await using first = await startControl({ dataDir: dir.path })
    const { events, path } = await removed(first)
    await expectNotFound(first, path)
    const check = async (control: Control) => {
      for (const [i, { seq }] of [{ seq: 0 }, ...events].entries()) {
        await using rest = await watch(control, path, { 'last-event-id': String(seq) })
        const all = await rest.ended()
        expect(all.slice(0, -1).map((event) => event.seq)).toEqual(events.slice(i).map((event) => event.seq))
        expect(kindsOf(all).at(-1)).toBe('graph_removed')
        expect(gapsIn(all, seq)).toEqual([])
      }
      await using untilEnded = await watch(control, `${path}?after=0&until=ended`)
      expect(await untilEnded.ended()).toEqual(events)
    }
    await check(first)
    await first.stop('SIGKILL')
    await using second = await startControl({ dataDir: dir.path })
    await check(second)
    await using all = await watch(second, '/events?after=0')
    const last = (await all.once((seen) => kindsOf(seen).includes('graph_removed'))).at(-1)!
    await expectNotFound(second, `${path}?after=${last.seq}`)
  })

  test('is told as far as it is known, after a reset, to a client with an unknown number', async () => {
    const { graph_id, events, path } = await removed(control)
    await using stream = await watch(control, `${path}?after=900000000000`)
    const [reset, ...rest] = await stream.ended()
    expect(reset).toMatchObject({ event: 'reset', graph_id })
    expect(kindsOf(rest)).toEqual([...kindsOf(events), 'graph_removed'])
    expect(gapsIn(rest, reset!.seq)).toEqual([])
  })

  test('so are its tasks, and deleted tasks of a graph that is there', async () => {
    const { graph_id } = await removed(control)
    await using gone = await watch(control, `/graphs/${graph_id}/tasks/a/events?after=0`)
    expect(statesOf(await gone.ended())).toEqual({ a: ['running', 'success'] })
    expect(kindsOf(gone.events).at(-1)).toBe('graph_removed')
    const other = await control.submit([sleeper('c', 0), sleeper('d', 0)])
    await control.allEnded()
    await control.fetch('/tasks/c', { method: 'DELETE' })
    await using deleted = await watch(control, `/graphs/${other.graph_id}/tasks/c/events?after=0`)
    expect(kindsOf(await deleted.ended()).at(-1)).toBe('task_deleted')
    await expectNotFound(control, `/graphs/${other.graph_id}/tasks/e/events?after=0`)
    await expectNotFound(control, '/graphs/none/events?after=0')
  })
})

const expectNotFound = async (control: Control, path: string) => expect((await control.fetch(path)).status).toBe(404)

test('a clean stop sends the last changes and ends the streams', async () => {
  await using control = await startControl({ flags: ['--shutdown-timeout', '100ms'] })
  const { graph_id } = await control.submit([sleeper('a', 60_000)])
  await control.reached('a', 'running')
  await using stream = await watch(control, `/graphs/${graph_id}/events`)
  expect(await control.stop()).toBe(0)
  expect(statesOf(await stream.ended()).a).toEqual(['pending'])
})

test('a task that was interrupted by a kill is told to be pending, then running again', async () => {
  using dir = tempDir()
  using gate = new Gate() // no pause of this process lets the task end before the kill
  let id: string | undefined
  {
    await using control = await startControl({ dataDir: dir.path })
    await using stream = await watch(control, '/events')
    await control.submit([gate.task('a')])
    await stream.once((events) => statesOf(events).a?.at(-1) === 'running')
    id = stream.lastId
    await control.stop('SIGKILL')
  }
  await using control = await startControl({ dataDir: dir.path })
  await using stream = await watch(control, '/events', { 'last-event-id': id! })
  await stream.once((events) => statesOf(events).a?.at(-1) === 'running')
  gate.open()
  const events = await stream.once(hasEnded)
  expect(statesOf(events).a).toEqual(['pending', 'running', 'success'])
  expect(gapsIn(events, Number(id))).toEqual([])
})

test('a burst that is larger than the buffer reaches a client that reads', async () => {
  await using control = await startControl()
  await using stream = await watch(control, '/events')
  await control.submit(Array.from({ length: 5_000 }, (_, i) => ({ id: `t${i}`, type: 'noop' })))
  await until(() => kindsOf(stream.events.slice(-1))[0] ?? '', 'graph_ended')
  expect(stream.events.length).toBeGreaterThan(5_000)
  expect(gapsIn(stream.events, undefined)).toEqual([])
})
