/** Goal: listeners get every event once and in order, however many there are. Method: a real history, a feed, no disk sync. */
import { expect, test } from 'bun:test'
import { CROWD, EventFeed } from '../../../control/log/event-feed.ts'
import { EventHistory } from '../../../control/log/event-history.ts'
import type { EventRow } from '../../../control/log/event-rows.ts'
import { findHistory } from '../../../control/log/found-history.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { nextTurn, WRITES_PER_TURN } from '../../../shared/process/steps.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

const log = silentLog()

function openFeed(dataDir: string): EventFeed {
  const found = findHistory(dataDir)
  const history = new EventHistory({ dataDir, found, kept: undefined, lastSeq: 0, maxEvents: 1_000, log })
  return new EventFeed(history, async () => {})
}

const deleted = (seq: number, graphId = 'g'): EventRow => ['deleted', graphId, seq, 1_000, { task_id: `t${seq}` }]

test('many listeners are called in several turns of the event loop', async () => {
  using dir = tempDir()
  const feed = openFeed(dir.path)
  const count = 4 * WRITES_PER_TURN + 1
  const heard: number[][] = Array.from({ length: count }, () => [])
  let calls = 0
  for (const mine of heard) {
    feed.subscribe({}, (events) => {
      calls++
      mine.push(...events.map(({ seq }) => seq))
    })
  }
  feed.written([deleted(1), deleted(2)])
  feed.written([deleted(3)])
  let isSettled = false
  const settled = feed.settle().then(() => {
    isSettled = true
  })
  const callsOfTurns: number[] = []
  while (!isSettled) {
    const before = calls
    await nextTurn()
    callsOfTurns.push(calls - before)
  }
  await settled
  for (const mine of heard) expect(mine).toEqual([1, 2, 3])
  // A turn may begin with the end of one batch and go on with the next one.
  expect(Math.max(...callsOfTurns)).toBeLessThanOrEqual(2 * WRITES_PER_TURN)
})

test('settle waits until the last listener has its events', async () => {
  using dir = tempDir()
  const feed = openFeed(dir.path)
  const count = 3 * WRITES_PER_TURN
  let calls = 0
  for (let i = 0; i < count; i++) feed.subscribe(i % 2 === 0 ? {} : { graphId: 'g' }, () => calls++)
  feed.written([deleted(1)])
  await Promise.all([feed.settle(), feed.settle().then(() => expect(calls).toBe(count))])
  expect(calls).toBe(count)
})

test('a listener that stops while others are called is not called', async () => {
  using dir = tempDir()
  const feed = openFeed(dir.path)
  const stops: (() => void)[] = []
  const called = new Set<number>()
  const count = 3 * WRITES_PER_TURN
  for (let i = 0; i < count; i++) {
    stops.push(
      feed.subscribe({}, () => {
        called.add(i)
        if (i === 0) for (const stop of stops.slice(1)) stop()
      }),
    )
  }
  feed.written([deleted(1)])
  await feed.settle()
  expect([...called]).toEqual([0])
})

test('beyond 100 listeners, events come in at most ten batches a second', async () => {
  using dir = tempDir()
  const feed = openFeed(dir.path)
  const batches: number[][] = []
  feed.subscribe({}, (events) => batches.push(events.map(({ seq }) => seq)))
  for (let i = 0; i < CROWD; i++) feed.subscribe({}, () => {})
  const startedAt = performance.now()
  const count = 100
  for (let seq = 1; seq <= count; seq++) {
    feed.changed('g')
    feed.written([deleted(seq)])
    await Bun.sleep(5) // the interval between events: batches are limited by time
  }
  await until(
    () => batches.flat(),
    ({ length }) => length === count,
  )
  const elapsedMs = performance.now() - startedAt
  expect(batches.flat()).toEqual(Array.from({ length: count }, (_, i) => i + 1))
  expect(batches.length).toBeLessThanOrEqual(elapsedMs / 99 + 1) // fewer are fine, more are not
})
