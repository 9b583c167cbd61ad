/** Goal: no number is ever given twice. Method: runs that end at any moment, with whatever of their changes on disk. */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { BLOCK, EventNumbers } from '../../../control/log/event-numbers.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

const log = silentLog()

test('a run begins above all numbers that an earlier one may have shown', async () => {
  const run = fc.record({
    /** Numbers that the run gives. */
    given: fc.nat({ max: 3 * BLOCK }),
    /** How many of the last ones are lost with its end. */
    lost: fc.nat({ max: 3 * BLOCK }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(run, { maxLength: 6 }), async (runs) => {
      using dir = tempDir()
      let lastSeq = 0
      let shown = 0
      for (const { given, lost } of runs) {
        const numbers = new EventNumbers({ dataDir: dir.path, lastSeq, log })
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

test('a run that waits for its reservation leaves the whole file and nothing else', async () => {
  using dir = tempDir()
  const numbers = new EventNumbers({ dataDir: dir.path, lastSeq: 0, log })
  await numbers.written()
  numbers.use(1)
  await numbers.written()
  expect(readdirSync(dir.path)).toEqual(['event-numbers'])
  expect(numbers.reserved).toBe(BLOCK + 1)
})

test('numbers between what was found and what was reserved are lost', async () => {
  using dir = tempDir()
  const first = new EventNumbers({ dataDir: dir.path, lastSeq: 0, log })
  first.use(1)
  await until(
    () => first.reserved,
    (reserved) => reserved > 0,
  )
  const second = new EventNumbers({ dataDir: dir.path, lastSeq: 7, log })
  expect(second.start).toBe(1 + BLOCK)
  expect([7, 8, BLOCK, 1 + BLOCK].map((seq) => second.isLost(seq))).toEqual([false, true, true, false])
})

test('a file of something else is ignored with a warning, and replaced', async () => {
  using dir = tempDir()
  const path = join(dir.path, 'event-numbers')
  writeFileSync(path, 'twelve\n')
  const { log, texts } = memoryLog()
  const numbers = new EventNumbers({ dataDir: dir.path, lastSeq: 5, log })
  expect(numbers.start).toBe(5)
  expect(texts).toHaveLength(1)
  numbers.use(6)
  await until(
    () => readFileSync(path, 'utf8'),
    (text) => text === `${6 + BLOCK}\n`,
  )
})

test('a disk that refuses the reservation is told of once', async () => {
  using dir = tempDir()
  const { log, texts } = memoryLog()
  const numbers = new EventNumbers({ dataDir: join(dir.path, 'gone'), lastSeq: 5, log })
  rmSync(join(dir.path, 'gone'), { recursive: true, force: true })
  numbers.use(6)
  await until(
    () => texts.length,
    (count) => count === 1,
  )
  numbers.use(7)
  expect(numbers.reserved).toBe(5)
})
