/** Goal: an iteration over events has each of them once, over restarts and lost connections. Method: real services. */
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Taskmill } from '../../client/client.ts'
import type { TaskmillEvent } from '../../client/event-reader.ts'
import { cuttingProxy } from '../support/cutting-proxy.ts'
import { startMill } from '../support/mill.ts'
import { until } from '../support/until.ts'

const shell = (id: string, script: string, more: object = {}) => ({ id, type: 'shell', params: { script }, ...more })
const OPEN = { env: { SERVICE_SHELL_POLICY: 'open' } }
const waitFor = (file: string) => `while [ ! -e ${file} ]; do sleep 0.01; done`

/** What happened, in words. */
const wordsOf = (events: readonly TaskmillEvent[]): string[] =>
  events.map((event) => {
    if (event.event === 'task_changed') return `${event.task_id} ${event.status}`
    return event.event === 'graph_ended' ? `${event.event} ${event.state}` : event.event
  })

/** Each event follows the one before it. */
function gapsIn(events: readonly TaskmillEvent[]): TaskmillEvent[] {
  return events.filter(({ previous }, i) => i > 0 && previous !== events[i - 1]!.seq)
}

describe('of a graph', () => {
  test('from its beginning to its end, also when that is past', async () => {
    await using mill = await startMill()
    const { client } = mill
    const graph = await client.submit({ scope: 'graph', tasks: [{ id: 'a', type: 'noop' }] })
    const live = await Array.fromAsync(client.graphEvents(graph))
    expect(wordsOf(live)).toContainAllValues(['graph_accepted', 'a success', 'graph_ended success'])
    const past = await Array.fromAsync(client.graphEvents(graph))
    expect(past).toEqual(live)
    expect(await Array.fromAsync(client.graphEvents(graph, { after: live[0]!.id }))).toEqual(live.slice(1))
    // Nothing is left to tell: the iteration ends without an event.
    expect(await Array.fromAsync(client.graphEvents(graph, { after: 'now' }))).toEqual([])
    expect(await Array.fromAsync(client.graphEvents(graph, { after: live.at(-1)!.id }))).toEqual([])
  })

  test('over kills of the service', async () => {
    await using mill = await startMill(OPEN)
    const { client } = mill
    const tasks = [shell('a', waitFor('one')), shell('b', waitFor('two'), { depends_on: ['a'] })]
    const graph = await client.submit({ scope: 'graph', tasks })
    const events: TaskmillEvent[] = []
    const reading = (async () => {
      for await (const event of client.graphEvents(graph)) events.push(event)
    })()
    const seen = (words: string) =>
      until(
        () => wordsOf(events),
        (all) => all.includes(words),
      )
    await seen('a running')
    await mill.restart()
    writeFileSync(join(mill.directory, 'one'), '')
    await seen('b running')
    await mill.restart('SIGTERM')
    writeFileSync(join(mill.directory, 'two'), '')
    await reading
    expect(gapsIn(events)).toEqual([])
    const words = wordsOf(events)
    expect(words[0]).toBe('graph_accepted')
    expect(words.filter((each) => each === 'a success' || each === 'b success')).toEqual(['a success', 'b success'])
    expect(words.at(-1)).toBe('graph_ended success')
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length)
  })

  test('that is removed: the last event says so, and an unknown graph is an error', async () => {
    await using mill = await startMill()
    const { client } = mill
    const graph = await client.submit({ scope: 'graph', tasks: [{ id: 'a', type: 'noop' }] })
    const iteration = client.graphEvents(graph, { until: 'removed' })
    const events: TaskmillEvent[] = []
    for await (const event of iteration) {
      events.push(event)
      if (event.event === 'graph_ended') await client.deleteGraph(graph)
    }
    expect(events.at(-1)?.event).toBe('graph_removed')
    await expect(client.graphEvents('none').next()).rejects.toMatchObject({ code: 'not_found' })
  })
})

test('a connection that is cut anywhere loses and repeats nothing', async () => {
  await using mill = await startMill(OPEN)
  await using proxy = await cuttingProxy(mill.url)
  const client = new Taskmill({ url: proxy.url, token: mill.token })
  const step = (i: number) => ({ id: `t${i}`, type: 'sleep', params: { duration_ms: 15 }, depends_on: [`t${i - 1}`] })
  const steps = [{ id: 't0', type: 'noop' }, ...Array.from({ length: 40 }, (_, i) => step(i + 1))]
  const lines = shell('lines', 'for i in 1 2 3 4 5 6 7 8; do printf "%0500d\\n" $i; sleep 0.02; done')
  const graph = await mill.client.submit({ scope: 'graph', tasks: [...steps, lines] })
  const reading = Array.fromAsync(client.graphEvents(graph))
  const following = Array.fromAsync(client.followLog({ ...graph, id: 'lines' }))
  const [events, chunks] = await Promise.all([reading, following])
  expect(gapsIn(events)).toEqual([])
  expect(events).toEqual(await Array.fromAsync(mill.client.graphEvents(graph)))
  const { text } = await mill.client.log({ ...graph, id: 'lines' })
  expect(chunks.map((chunk) => chunk.text).join('')).toBe(text)
  expect(text.length).toBe(8 * 501)
  expect(proxy.cuts).toBeGreaterThan(2)
})

describe('of a task', () => {
  test('to its end', async () => {
    await using mill = await startMill()
    const { client } = mill
    const tasks = [
      { id: 'a', type: 'noop' },
      { id: 'b', type: 'noop', depends_on: ['a'] },
    ]
    const graph = await client.submit({ scope: 'graph', tasks })
    const events = await Array.fromAsync(client.taskEvents({ ...graph, id: 'b' }))
    expect(new Set(events.map((event) => 'task_id' in event && event.task_id))).toEqual(new Set(['b']))
    expect(wordsOf(events).at(-1)).toBe('b success')
    expect(await Array.fromAsync(client.taskEvents({ ...graph, id: 'b' }, { after: 'now' }))).toEqual([])
  })
})

describe('of the service', () => {
  test('go on until the reader leaves; a restart of the program continues with the id', async () => {
    await using mill = await startMill()
    const { client } = mill
    let id = '0'
    const first: TaskmillEvent[] = []
    await client.submit({ tasks: [{ id: 'a', type: 'noop' }] })
    for await (const event of client.events({ after: '0' })) {
      first.push(event)
      id = event.id
      if (event.event === 'graph_ended') break
    }
    await client.submit({ tasks: [{ id: 'b', type: 'noop' }] })
    const second: TaskmillEvent[] = []
    for await (const event of client.events({ after: id })) {
      second.push(event)
      if (event.event === 'graph_ended') break
    }
    expect(second[0]!.previous).toBe(Number(id))
    expect(wordsOf(first)).toContain('a success')
    expect(wordsOf(second)).toContain('b success')
    const metrics = () =>
      fetch(`${mill.url}/metrics`, { headers: { authorization: `Bearer ${mill.token}`, accept: 'text/plain' } }).then(
        (answer) => answer.text(),
      )
    await until(metrics, (text) => /^service_control_event_streams 0$/m.test(text))
  })

  test('a past that is gone is told', async () => {
    await using mill = await startMill()
    const { client } = mill
    const graph = await client.submit({ scope: 'graph', tasks: [{ id: 'a', type: 'noop' }] }, { waitMs: 30_000 })
    for await (const event of client.events({ after: 900_000_000_000 })) {
      expect(event).toMatchObject({ event: 'reset', graphs: [{ graph_id: graph.graph_id, state: 'success' }] })
      break
    }
    const [reset, ...others] = await Array.fromAsync(client.graphEvents(graph, { after: 900_000_000_000 }))
    expect(reset).toMatchObject({ event: 'reset', graph: { state: 'success' }, tasks: [{ task_id: 'a' }] })
    expect(others).toEqual([])
  })

  test('a reader that was too slow continues after its last event', async () => {
    const resumed: (string | null)[] = []
    const event = (id: number, kind: string) =>
      `id: ${id}\nevent: ${kind}\ndata: {"seq":${id},"previous":${id - 1}}\n\n`
    const answers = [`: open\n\nid: 6\n\n`, event(7, 'task_changed') + event(7, 'lagging'), event(8, 'graph_ended')]
    using server = Bun.serve({
      ...{ hostname: '127.0.0.1', port: 0 },
      fetch({ headers }) {
        resumed.push(headers.get('last-event-id'))
        return new Response(answers[resumed.length - 1])
      },
    })
    const events: TaskmillEvent[] = []
    for await (const event of new Taskmill({ url: server.url.href }).events()) {
      events.push(event)
      if (event.event === 'graph_ended') break
    }
    expect(events.map(({ event, id }) => `${event} ${id}`)).toEqual(['task_changed 7', 'graph_ended 8'])
    expect(resumed).toEqual([null, '6', '7'])
  })
})
