/**
 * Kills the service at random moments under a client that follows its events.
 *
 * The client resumes with the last id that it got, before the kill or in the middle of a replay. In the end, what it was told
 * must be what happened: no number is missing, repeated or out of order, each graph was accepted and ended once, the last
 * event of each task is its record, and a replay from the beginning tells the same.
 */
import { expect, test } from 'bun:test'
import type { ServiceEvent } from '../../shared/contract/events.ts'
import { type Control, startControl } from '../support/control.ts'
import { EventStreamClient, gapsIn } from '../support/event-stream.ts'
import { limitOf, type Random, ROUNDS, randomNumbers, SEED } from '../support/random.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const FLAGS = ['--event-history', '1000000', '--persist-interval', '50ms']

/** What the history has of an event: the reason why a task waits is told to those who listen, and not kept. */
function kept(event: ServiceEvent): object {
  const { previous, waiting, ...rest } = event as ServiceEvent & { previous?: unknown; waiting?: unknown }
  return rest
}

/** Submits, cancels and deletes until the service is gone. */
async function disturb(control: Control, random: Random, name: string): Promise<void> {
  try {
    for (let n = 0; ; n++) {
      const tasks = Array.from({ length: 1 + random(8) }, (_, i) => ({
        id: `${name}-${n}-${i}`,
        ...(random(2) === 0 ? { type: 'noop' } : { type: 'sleep', params: { duration_ms: random(20) } }),
        ...(random(6) === 0 && { type: 'shell', params: { command: 'git' }, retry: random(2) }),
        depends_on: i > 0 && random(2) === 0 ? [`${name}-${n}-${random(i)}`] : [],
      }))
      const { task_ids } = await control.submit(tasks)
      const next = random(8)
      const id = task_ids[random(task_ids.length)]!
      if (next === 0) await (await control.fetch(`/tasks/${id}`, { method: 'DELETE' })).arrayBuffer()
      else if (next === 1) await (await control.fetch(`/tasks/${id}/cancel`, { method: 'POST' })).arrayBuffer()
    }
  } catch {
    // it was killed
  }
}

test(
  `a client that resumes hears all, once and in order (${ROUNDS} kills, seed ${SEED})`,
  async () => {
    const random = randomNumbers(SEED)
    using dir = tempDir()
    const heard: ServiceEvent[] = []
    let lastId = '0'
    for (let round = 0; round < ROUNDS; round++) {
      await using control = await startControl({ dataDir: dir.path, flags: FLAGS })
      await using stream = await EventStreamClient.open(`${control.url}/events`, { 'last-event-id': lastId })
      const working = [0, 1, 2].map((i) => disturb(control, random, `r${round}-${i}`))
      await Bun.sleep(random(150))
      await control.stop(random(5) === 0 ? 'SIGTERM' : 'SIGKILL')
      await Promise.all(working)
      await stream.ended()
      expect(gapsIn(stream.events, Number(lastId))).toEqual([])
      heard.push(...stream.events)
      lastId = stream.lastId ?? lastId
    }

    await using control = await startControl({ dataDir: dir.path, flags: FLAGS })
    const records = await control.allEnded()
    const { graph_id: last } = await control.submit([{ id: 'last', type: 'noop' }])
    await using stream = await EventStreamClient.open(`${control.url}/events`, { 'last-event-id': lastId })
    await stream.once((events) => events.some((event) => event.event === 'graph_ended' && event.graph_id === last))
    expect(gapsIn(stream.events, Number(lastId))).toEqual([])
    heard.push(...stream.events)

    expect(heard.filter(({ event }) => event === 'reset' || event === 'lagging')).toEqual([])
    const once = (kind: ServiceEvent['event']) => {
      const ids = heard.flatMap((event) => (event.event === kind && 'graph_id' in event ? event.graph_id : []))
      expect(new Set(ids).size, kind).toBe(ids.length)
      return new Set(ids)
    }
    const accepted = once('graph_accepted')
    const ended = once('graph_ended')
    // Of a graph whose records were all deleted, a kill leaves nothing that could end.
    const deleted = new Set(heard.flatMap((event) => (event.event === 'task_deleted' ? event.graph_id : [])))
    expect([...accepted].filter((id) => !ended.has(id!) && !deleted.has(id!))).toEqual([])
    const newest = new Map(heard.flatMap((event) => (event.event === 'task_changed' ? [[event.task_id, event]] : [])))
    for (const { id, graph_id, status, attempt, error, started_at, finished_at } of records) {
      expect(accepted.has(graph_id), `graph of ${id}`).toBe(true)
      expect(newest.get(id)).toMatchObject({
        ...{ status, graph_id },
        ...Object.fromEntries(
          Object.entries({ attempt, error, started_at, finished_at }).filter(([, value]) => value !== undefined),
        ),
      })
    }

    await using again = await EventStreamClient.open(`${control.url}/events?after=0`)
    await until(
      () => again.events.length,
      (count) => count >= heard.length,
    )
    expect(again.events.map(kept)).toEqual(heard.map(kept))
  },
  limitOf(ROUNDS),
)
