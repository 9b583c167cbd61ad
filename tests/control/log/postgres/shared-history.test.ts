/**
 * Goal: a replica has all events of its own and of the graphs that it has adopted, as long as they are kept. Method: its files,
 * and rows of the database that lack the events of removed graphs.
 */
import { expect, test } from 'bun:test'
import { EventHistory } from '../../../../control/log/event-history.ts'
import { type EventRange, HistoryGone } from '../../../../control/log/event-reader.ts'
import type { EventRow } from '../../../../control/log/event-rows.ts'
import { findHistory } from '../../../../control/log/found-history.ts'
import { startOf } from '../../../../control/log/number-blocks.ts'
import { SharedHistory } from '../../../../control/log/postgres/shared-history.ts'
import type { ServiceEvent } from '../../../../shared/contract/events.ts'
import { silentLog } from '../../../../shared/logs/log.ts'
import { tempDir } from '../../../support/temp.ts'

const rows = (from: number, count: number): EventRow[] =>
  Array.from({ length: count }, (_, i) => ['deleted', 'g', from + i, 1_000, { task_id: `t${from + i}` }])

/** The history of replica 2, which has the blocks `own`; the database has the events with the numbers `past`. */
function world(own: readonly number[], past: readonly number[], maxEvents = 1_000) {
  const dir = tempDir()
  const found = findHistory(dir.path)
  const options = { dataDir: dir.path, found, kept: undefined, lastSeq: startOf(2), maxEvents, log: silentLog() }
  const files = new EventHistory(options)
  const database = {
    oldest: async () => 0,
    async *read({ after, upTo }: EventRange) {
      yield past.filter((seq) => seq > after && seq <= upTo).map((seq) => ({ seq }) as ServiceEvent)
    },
  }
  const history = new SharedHistory(files, database, () => own)
  const numbers = async (after: number, upTo: number) => {
    const all: number[] = []
    for await (const events of history.read({ after, upTo })) all.push(...events.map(({ seq }) => seq))
    return all
  }
  const end = async () => {
    await files.close()
    dir[Symbol.dispose]()
  }
  return { files, history, numbers, [Symbol.asyncDispose]: end }
}

const [TWO, THREE, FOUR, FIVE] = [2, 3, 4, 5].map(startOf) as [number, number, number, number]

test('of a replica that is gone, all is read from the database, also where the adopted graphs are older', async () => {
  await using w = world([2], [THREE + 1, THREE + 7])
  w.files.append(rows(TWO + 1, 5))
  w.history.recovered(TWO + 5) // it adopted what that replica had not changed
  expect(await w.numbers(THREE + 1, FOUR - 1)).toEqual([THREE + 7])
})

test('of its own, it has the events from before an adoption, whose graphs are removed by now', async () => {
  await using w = world([2, 4], [1, THREE + 1])
  w.files.append(rows(TWO + 1, 3))
  w.history.recovered(FOUR)
  w.files.append(rows(FOUR + 1, 2))
  w.history.recovered(FOUR + 2)
  w.files.append(rows(FOUR + 3, 1))
  const all = [TWO + 1, TWO + 2, TWO + 3, THREE + 1, FOUR + 1, FOUR + 2, FOUR + 3]
  expect(await w.numbers(0, FOUR + 3)).toEqual([1, ...all])
  expect(await w.numbers(TWO + 2, FOUR + 1)).toEqual(all.slice(2, 5))
  expect(await w.numbers(TWO, THREE - 1)).toEqual(all.slice(0, 3))
  expect(await w.numbers(FOUR, FIVE - 1)).toEqual(all.slice(4))
})

test('what its files have no more is read from the database as far as it has adopted graphs since, or is gone', async () => {
  await using w = world([2], [TWO + 1], 10)
  const fill = () => {
    for (let i = 0; i < 8; i++) {
      w.files.append(rows(w.files.last + 1, 5))
      w.files.trim()
    }
  }
  fill()
  w.history.recovered(TWO + 40)
  expect(w.history.oldest).toBe(TWO)
  const kept = Array.from({ length: TWO + 40 - w.files.oldest }, (_, i) => w.files.oldest + 1 + i)
  expect(kept.length).toBeLessThan(40)
  expect(await w.numbers(TWO, TWO + 40)).toEqual([TWO + 1, ...kept])
  fill()
  fill()
  expect(w.history.oldest).toBeGreaterThan(TWO + 40)
  expect(await w.numbers(TWO + 50, TWO + 120).catch((error) => error)).toBeInstanceOf(HistoryGone)
})
