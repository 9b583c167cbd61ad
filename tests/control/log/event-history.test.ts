/**
 * Goal: the history has every event once and in order, and never one that the journal does not back. Method: the real files,
 * cut, damaged and refused as crashes and full disks do it.
 */
import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readlinkSync, rmSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { EventHistory } from '../../../control/log/event-history.ts'
import { HistoryGone, MAX_READERS } from '../../../control/log/event-reader.ts'
import type { EventRow } from '../../../control/log/event-rows.ts'
import { findHistory, lastKept } from '../../../control/log/found-history.ts'
import type { ServiceEvent } from '../../../shared/contract/events.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { nextTurn } from '../../../shared/process/steps.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

const log = silentLog()

const row = (seq: number): EventRow => ['deleted', 'g', seq, 1_000, { task_id: `t${seq}` }]
const rows = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => row(from + i))

/** As a start opens it; `lastSeq` is the last number that the journal holds. */
function open(dataDir: string, lastSeq: number, maxEvents = 1_000): EventHistory {
  const found = findHistory(dataDir)
  const highest = Math.max(lastSeq, found.synced)
  return new EventHistory({ dataDir, found, kept: lastKept(found, highest), lastSeq: highest, maxEvents, log })
}

async function numbersIn(history: EventHistory, after: number, upTo = history.last): Promise<number[]> {
  const numbers: number[] = []
  for await (const events of history.read({ after, upTo })) numbers.push(...events.map(({ seq }) => seq))
  return numbers
}

const filesIn = (dir: string) =>
  readdirSync(dir)
    .filter((name) => name.startsWith('events-'))
    .sort()

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

test('is read from any number, over files and restarts', async () => {
  using dir = tempDir()
  let history = open(dir.path, 0)
  for (let seq = 1; seq <= 1_800; seq += 30) {
    history.append(rows(seq, seq + 29))
    if (seq % 300 === 1) await history.sync(history.last)
    if (seq === 901) {
      await history.close()
      history = open(dir.path, history.last)
    }
  }
  expect(filesIn(dir.path).length).toBeGreaterThan(2)
  for (const after of [0, 1, 29, 30, 500, 1_234, 1_799])
    expect(await numbersIn(history, after)).toEqual(numbers(after + 1, 1_800))
  expect(await numbersIn(history, 1_800)).toEqual([])
  expect(await numbersIn(history, 100, 110)).toEqual(numbers(101, 110))
  await history.close()
})

test('is read up to a number that no event has', async () => {
  using dir = tempDir()
  const history = open(dir.path, 0)
  history.append(rows(1, 3))
  history.append(rows(7, 9))
  for (const upTo of [3, 4, 6]) expect(await numbersIn(history, 1, upTo)).toEqual([2, 3])
  expect(await numbersIn(history, 4, 6)).toEqual([])
  expect(await numbersIn(history, 4)).toEqual([7, 8, 9])
  await history.close()
})

test('is read of one graph', async () => {
  using dir = tempDir()
  const history = open(dir.path, 0)
  const ended = (graphId: string, seq: number): EventRow => ['ended', graphId, seq, 1_000, { state: 'success' }]
  for (let seq = 1; seq <= 3_000; seq += 3) history.append([...rows(seq, seq + 1), ended(`g${seq % 100}`, seq + 2)])
  const found: ServiceEvent[] = []
  for await (const events of history.read({ after: 10, upTo: 2_500, graphId: 'g7' })) found.push(...events)
  const wanted = numbers(1, 3_000).filter((seq) => seq % 3 === 0 && (seq - 2) % 100 === 7 && seq > 10 && seq <= 2_500)
  expect(found.map(({ seq }) => seq)).toEqual(wanted)
  await history.close()
})

test('is read by many at once, a few of whom hold files and blocks', async () => {
  using dir = tempDir()
  const history = open(dir.path, 0)
  for (let seq = 1; seq <= 9_000; seq += 30) history.append(rows(seq, seq + 29))
  history.flush()
  const openFiles = () =>
    readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).startsWith(dir.path)
      } catch {
        return false // it was the one of this look
      }
    }).length
  let most = 0
  let isReading = true
  const looking = (async () => {
    for (; isReading; await nextTurn()) most = Math.max(most, openFiles())
  })()
  const found = await Promise.all(Array.from({ length: 50 }, () => numbersIn(history, 0)))
  isReading = false
  await looking
  for (const each of found) expect(each).toEqual(numbers(1, 9_000))
  expect(most).toBeLessThanOrEqual(MAX_READERS + 1) // and the one that is written
  await history.close()
})

test('keeps as many events as it is told to, and a little more', async () => {
  using dir = tempDir()
  const history = open(dir.path, 0)
  for (let seq = 1; seq <= 10_000; seq += 100) {
    history.append(rows(seq, seq + 99))
    await history.sync(history.last)
    if (history.last > 1_000) expect(history.last - history.oldest).toBeGreaterThanOrEqual(1_000)
  }
  expect(history.last - history.oldest).toBeLessThanOrEqual(1_600)
  expect(filesIn(dir.path)).toHaveLength(3)
  await expect(numbersIn(history, 1)).rejects.toBeInstanceOf(HistoryGone)
  await history.close()
})

test('whatever a crash leaves, a start has an unbroken part of what the journal holds', async () => {
  const write = fc.record({ events: fc.integer({ min: 1, max: 40 }), isSynced: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(
      fc.array(write, { minLength: 1, maxLength: 30 }),
      fc.nat({ max: 3_000 }),
      fc.nat({ max: 60 }),
      async (writes, cut, lost) => {
        using dir = tempDir()
        const history = open(dir.path, 0)
        let synced = 0
        for (const { events, isSynced } of writes) {
          history.append(rows(history.last + 1, history.last + events))
          if (!isSynced) continue
          await history.sync(history.last)
          synced = history.last
        }
        const { last } = history
        history.flush()
        const path = join(dir.path, filesIn(dir.path).at(-1)!)
        truncateSync(path, Math.max(0, statSync(path).size - cut))
        const held = Math.max(cut === 0 ? synced : 0, last - lost)
        const again = open(dir.path, held)
        expect(again.last).toBeLessThanOrEqual(Math.max(held, synced))
        expect(await numbersIn(again, again.oldest)).toEqual(numbers(again.oldest + 1, again.last))
        again.append(rows(again.last + 1, again.last + 5))
        expect(await numbersIn(again, again.oldest)).toEqual(numbers(again.oldest + 1, again.last))
        await again.close()
        await history.close()
      },
    ),
    { numRuns: 60 },
  )
})

test('an event that the journal does not hold is removed at a start', async () => {
  using dir = tempDir()
  const history = open(dir.path, 0)
  history.append(rows(1, 10))
  await history.sync(10)
  history.append(rows(11, 20))
  await history.close()
  const again = open(dir.path, 15)
  expect(again.last).toBe(10)
  again.append(rows(21, 22))
  expect(await numbersIn(again, 0)).toEqual([...numbers(1, 10), 21, 22])
  await again.close()
})

test('what was synced with the journal stays, whatever the state file says', async () => {
  using dir = tempDir()
  const history = open(dir.path, 0)
  history.append(rows(1, 10))
  await history.sync(10)
  await history.close()
  const again = open(dir.path, 3)
  expect(again.last).toBe(10)
  await again.close()
})

test('a history that cannot be written is dropped whole, and begins anew once it can be', async () => {
  using dir = tempDir()
  const gone = join(dir.path, 'data')
  mkdirSync(gone)
  const history = open(gone, 0)
  history.append(rows(1, 600))
  rmSync(gone, { recursive: true })
  await history.sync(600) // the file is large enough for another one to follow
  expect([history.last, history.reaches(599), history.reaches(600)]).toEqual([600, false, false])
  history.append(rows(601, 700))
  expect([history.last, history.reaches(700)]).toEqual([700, false])
  mkdirSync(gone)
  await until(
    () => {
      history.append([row(history.last + 1)])
      return history.reaches(history.last)
    },
    (works) => works,
  )
  history.append(rows(history.last + 1, history.last + 10))
  expect(history.oldest).toBeGreaterThan(700)
  expect(await numbersIn(history, history.oldest)).toEqual(numbers(history.oldest + 1, history.last))
  await history.close()
})

test('that no start continues is bounded without a sync', async () => {
  using dir = tempDir()
  const history = open(dir.path, 0)
  for (let seq = 1; seq <= 6_000; seq += 100) {
    history.append(rows(seq, seq + 99))
    history.trim()
  }
  expect(filesIn(dir.path).length).toBeLessThanOrEqual(4)
  expect(history.last - history.oldest).toBeGreaterThanOrEqual(1_000)
  expect(history.oldest).toBeGreaterThan(4_000)
  expect(await numbersIn(history, history.oldest)).toEqual(numbers(history.oldest + 1, history.last))
  await history.close()
})
