/** Goal: no number is ever given twice. Method: runs that end at any moment, with whatever of their changes on disk. */
import { describe, expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { BLOCK, EventNumbers } from '../../../control/log/event-numbers.ts'
import { Notes, NUMBERS_NOTE } from '../../../control/log/notes.ts'
import { recover } from '../../../control/log/recovery.ts'
import { liveCopy } from '../../support/durable-store.ts'
import { openEmbedded } from '../../support/embedded-keeper.ts'
import { acceptGraph } from '../../support/graph.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

/** Numbers of a run whose log has `notes`. */
function numbersOf(notes: Notes, lastSeq: number): EventNumbers {
  const numbers = new EventNumbers({ lastSeq, notes })
  numbers.keep = async (upTo) => notes.apply([null, 'numbers', NUMBERS_NOTE, upTo])
  return numbers
}

test('a run begins above all numbers that an earlier one may have shown', async () => {
  const run = fc.record({
    /** Numbers that the run gives. */
    given: fc.nat({ max: 3 * BLOCK }),
    /** How many of the last ones are lost with its end. */
    lost: fc.nat({ max: 3 * BLOCK }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(run, { maxLength: 6 }), async (runs) => {
      const notes = new Notes()
      let lastSeq = 0
      let shown = 0
      for (const { given, lost } of runs) {
        const numbers = numbersOf(notes, lastSeq)
        expect(numbers.start).toBeGreaterThanOrEqual(shown)
        for (let seq = numbers.start + 1; seq <= numbers.start + given; seq += BLOCK / 5) {
          numbers.use(seq)
          const { reserved } = numbers
          shown = Math.max(shown, Math.min(seq, reserved))
          lastSeq = Math.max(lastSeq, seq - lost)
          await until(
            () => numbers.reserved,
            (now) => now - seq >= BLOCK / 2,
          )
        }
      }
    }),
    { numRuns: 30 },
  )
})

test('numbers between what was found and what was reserved are lost', async () => {
  const notes = new Notes()
  const first = numbersOf(notes, 0)
  first.use(1)
  await until(
    () => first.reserved,
    (reserved) => reserved > 0,
  )
  const second = numbersOf(notes, 7)
  expect(second.start).toBe(1 + BLOCK)
  expect([7, 8, BLOCK, 1 + BLOCK].map((seq) => second.isLost(seq))).toEqual([false, true, true, false])
})

test('a log that refuses the reservation is not asked again at once', async () => {
  const numbers = new EventNumbers({ lastSeq: 5, notes: new Notes() })
  let asked = 0
  numbers.keep = async () => {
    asked++
    throw new Error('the disk is full')
  }
  for (const seq of [6, 7]) {
    numbers.use(seq)
    await Promise.resolve()
  }
  expect([numbers.reserved, asked]).toEqual([5, 1])
})

test('a reservation is in the log once it counts, and each later run begins above it', async () => {
  using dir = tempDir()
  const { store, keeper } = await openEmbedded(dir.path)
  acceptGraph(store, [{ id: 'a', type: 'noop' }])
  await until(
    () => keeper.numbers.reserved,
    (reserved) => reserved > 0,
  )
  const { reserved } = keeper.numbers
  using killed = liveCopy([dir.path])
  await keeper.stop()
  for (const path of [killed.path, dir.path]) {
    const again = await openEmbedded(path)
    expect([path, again.store.seq]).toEqual([path, reserved])
    await again.keeper.stop()
  }
})

describe.each([1, 2, 3])('the file of format %d with the upper bound', (format) => {
  const write = (dir: string, text: string) => {
    writeFileSync(join(dir, 'event-numbers'), text)
    if (format > 1) writeFileSync(join(dir, 'format.json'), JSON.stringify({ format, written_by: '0.1.0' }))
  }

  test('counts, until a snapshot has put it into the log', async () => {
    using dir = tempDir()
    write(dir.path, '7000000\n')
    const { store, keeper } = await openEmbedded(dir.path)
    expect(store.seq).toBe(7_000_000)
    using unchanged = liveCopy([dir.path])
    acceptGraph(store, [{ id: 'a', type: 'noop' }])
    await keeper.kept('promise')
    using begun = liveCopy([dir.path])
    await keeper.stop()
    for (const path of [unchanged.path, begun.path, dir.path]) {
      const { notes } = await recover(path)
      expect(notes.of('numbers').get(NUMBERS_NOTE)).toBeGreaterThanOrEqual(7_000_000)
    }
    expect(existsSync(join(dir.path, 'event-numbers'))).toBe(false)
  })

  test('is refused if it holds no number', async () => {
    using dir = tempDir()
    write(dir.path, 'twelve\n')
    await expect(recover(dir.path)).rejects.toThrow(`cannot read the file of event numbers ${dir.path}/event-numbers`)
  })
})
