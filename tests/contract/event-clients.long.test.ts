/**
 * Goal: clients of event streams that are slow, idle or many get what they should, and harm nobody. Method: the built
 * service and real connections.
 */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import type { ServiceEvent } from '../../shared/contract/events.ts'
import { type Control, startControl } from '../support/control.ts'
import { EventStreamClient, eventsIn, gapsIn } from '../support/event-stream.ts'
import { canMount, smallDisk } from '../support/small-disk.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { RawClient } from './raw-client.ts'

setDefaultTimeout(120_000)

const watch = (control: Control, path = '/events', headers: Record<string, string> = {}) =>
  EventStreamClient.open(control.url + path, headers)

const endsIn = (events: readonly ServiceEvent[]) => events.filter(({ event }) => event === 'graph_ended').length

/** `count` tasks with large events: each fails at once, with an error of 1,000 characters. */
const loud = (count: number, name: string) =>
  Array.from({ length: count }, (_, i) => ({
    ...{ id: `${name}-${i}`, type: 'file' },
    params: { action: 'read', path: `${name}/${'x'.repeat(200)}/${'y'.repeat(200)}/${'z'.repeat(200)}` },
  }))

const cutStreams = async (control: Control): Promise<number> => {
  const text = await (await control.fetch('/metrics', { headers: { accept: 'text/plain' } })).text()
  return Number(/^service_control_event_streams_lagging_total (\d+)$/m.exec(text)?.[1])
}

test('an idle stream gets a comment every --event-keep-alive', async () => {
  await using control = await startControl({ flags: ['--event-keep-alive', '100ms'] })
  await using stream = await watch(control)
  await until(
    () => stream.comments,
    ({ length }) => length >= 4,
  )
  expect(stream.comments.slice(0, 4)).toEqual(['open', 'keep-alive', 'keep-alive', 'keep-alive'])
  expect(stream.events).toEqual([])
})

test('a client that reads nothing is told that it lags and cut; the others get everything', async () => {
  // Longer than this process may pause: it also reads one of the streams.
  await using control = await startControl({ flags: ['--slow-client-timeout', '3s', '--max-concurrency', '100'] })
  await using reader = await watch(control)
  using stalled = await RawClient.connect(control)
  stalled.send('GET /events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  await until(
    () => stalled.received,
    (received) => received.includes(': open'),
  )
  stalled.pause()
  for (let i = 0; (await cutStreams(control)) === 0; i++) {
    // Little once its buffers must be full: the history has to keep all of it.
    const { graph_id } = await control.submit(loud(i < 8 ? 2_000 : 100, `g${i}`))
    await reader.once((events) => events.some((event) => event.event === 'graph_ended' && event.graph_id === graph_id))
    expect((await control.fetch('/health')).status).toBe(200)
  }
  expect(await cutStreams(control)).toBe(1)
  expect(gapsIn(reader.events, undefined)).toEqual([])
  expect(reader.events.some(({ event }) => event === 'lagging')).toBe(false)

  stalled.resume()
  await stalled.closed
  const events = eventsIn(stalled.body)
  expect(events.at(-1)).toMatchObject({ event: 'lagging' })
  expect(gapsIn(events, undefined)).toEqual([])
  const seen = events.slice(0, -1)
  expect(seen.map(({ seq }) => seq)).toEqual(reader.events.slice(0, seen.length).map(({ seq }) => seq))
  await using resumed = await watch(control, '/events', { 'last-event-id': String(events.at(-1)!.seq) })
  const missed = reader.events.slice(seen.length)
  await resumed.once(({ length }) => length >= missed.length)
  expect(resumed.events.map(({ seq }) => seq)).toEqual(missed.map(({ seq }) => seq))
})

test('more than 100 clients get every event, in batches', async () => {
  await using control = await startControl()
  const streams = await Promise.all(Array.from({ length: 120 }, () => watch(control)))
  try {
    const graphs = 40
    for (let i = 0; i < graphs; i++) await control.run({ type: 'noop' })
    const all = await Promise.all(streams.map((stream) => stream.once((events) => endsIn(events) === graphs)))
    for (const events of all) {
      expect(gapsIn(events, undefined)).toEqual([])
      expect(events.map(({ seq }) => seq)).toEqual(all[0]!.map(({ seq }) => seq))
    }
  } finally {
    await Promise.all(streams.map((stream) => stream[Symbol.asyncDispose]()))
  }
})

test.skipIf(!canMount)(
  'on a full disk past events are given up, which the log says; later ones are kept again',
  async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    using disk = smallDisk(dataDir, 2 * 1024 * 1024)
    await using control = await startControl({ dataDir, flags: ['--persist-interval', '1h'] })
    const message = randomBytes(100_000).toString('hex') // a long journal gets preallocated space
    await control.run({ type: 'noop', params: { message } })
    await using stream = await watch(control, '/events?after=0')
    await stream.once((events) => endsIn(events) === 1)
    const before = stream.lastId!
    disk.fill()
    truncateSync(disk.ballast, statSync(disk.ballast).size - 8_192) // less than the events below need
    const given = () => control.log.filter(({ msg }) => String(msg).startsWith('past events cannot be kept'))
    await control.submit(loud(100, 'loud')) // which the journal takes: it has preallocated space
    await until(given, ({ length }) => length > 0)
    expect(given()[0]).toMatchObject({ level: 'warn', cause: expect.stringContaining('ENOSPC') })
    expect((await control.fetch('/health')).status).toBe(200)
    disk.free()
    const fresh = await until(
      async () => {
        const answer = await control.post({ tasks: [{ id: crypto.randomUUID(), type: 'noop' }] })
        return answer.status === 202 ? ((await answer.json()) as { graph_id: string }).graph_id : undefined
      },
      (graphId) => graphId !== undefined,
    )
    const isEnd = (event: ServiceEvent) => event.event === 'graph_ended' && event.graph_id === fresh
    await stream.once((events) => events.some(isEnd))
    expect(gapsIn(stream.events, 0)).toEqual([]) // a live stream loses nothing
    await using late = await watch(control, '/events', { 'last-event-id': before })
    expect((await late.once(({ length }) => length > 0))[0]).toMatchObject({ event: 'reset' })

    await until(
      async () => {
        await control.run({ type: 'noop' }) // the history begins anew with an event, a second later at the earliest
        return control.log.filter(({ msg }) => msg === 'past events are kept again').length
      },
      (count) => count === 1,
    )
    const kept = await control.submit([{ id: 'kept', type: 'noop' }])
    await stream.once((all) => all.some((one) => one.event === 'graph_ended' && one.graph_id === kept.graph_id))
    const after = stream.lastId!
    const { graph_id } = await control.submit([{ id: 'last', type: 'noop' }])
    const isLast = (event: ServiceEvent) => event.event === 'graph_ended' && event.graph_id === graph_id
    await stream.once((all) => all.some(isLast))
    await using resumed = await watch(control, '/events', { 'last-event-id': after })
    const events = await resumed.once((all) => all.some(isLast))
    expect(gapsIn(events, Number(after))).toEqual([])
    await control.stop()
  },
)
