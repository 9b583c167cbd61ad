/** Goal: followers at any pace see the bytes in order, or learn that they have to read them elsewhere. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { LiveLog, MAX_KEPT_BYTES } from '../../../../control/executors/runtime/live-log.ts'
import { nextTurn } from '../../../../shared/process/steps.ts'

/** A log from byte `start` on that a test feeds. */
function fedLog(start: number) {
  let feed!: ReadableStreamDefaultController<Uint8Array>
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      feed = controller
    },
  })
  const seen = { over: 0, isAborted: false }
  const log = new LiveLog(
    start,
    async (signal) => {
      signal.addEventListener('abort', () => {
        seen.isAborted = true
      })
      return stream
    },
    () => seen.over++,
  )
  return { log, feed, seen }
}

const settled = async () => {
  for (let i = 0; i < 4; i++) await nextTurn()
}

test('what is kept is what arrived, and what is no longer kept is said to be', async () => {
  const sizes = fc.array(fc.integer({ min: 1, max: MAX_KEPT_BYTES / 2 }), { minLength: 1, maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(fc.nat(1_000), sizes, fc.array(fc.nat()), async (start, chunks, places) => {
      const { log, feed } = fedLog(start)
      const all = Buffer.alloc(
        chunks.reduce((sum, size) => sum + size, 0),
        'abcdefg',
      )
      let end = 0
      for (const size of chunks) {
        feed.enqueue(new Uint8Array(all.subarray(end, end + size)))
        end += size
      }
      await settled()
      for (const place of [0, all.length, ...places.map((n) => n % (all.length + 2))]) {
        const bytes = log.read(start + place)
        if (bytes === undefined) expect(all.length - place).toBeGreaterThan(MAX_KEPT_BYTES)
        else {
          expect(all.subarray(place, place + bytes.length).equals(bytes)).toBe(true)
          expect(bytes.length === 0).toBe(place >= all.length)
        }
      }
      expect(log.read(start - 1)).toBeUndefined()
      feed.close()
    }),
    { numRuns: 20 },
  )
})

test('it is complete when the connection ends, lost when it breaks, and given up after the last follower', async () => {
  const complete = fedLog(0)
  complete.feed.close()
  await settled()
  expect([complete.log.state, complete.seen.over]).toEqual(['complete', 1])
  const lost = fedLog(0)
  lost.feed.error(new Error('reset'))
  await settled()
  expect([lost.log.state, lost.seen.over]).toEqual(['lost', 1])
  const left = fedLog(0)
  left.log.enter()
  left.log.enter()
  left.log.leave()
  expect(left.seen.isAborted).toBe(false)
  left.log.leave()
  await settled()
  expect([left.log.state, left.seen.isAborted]).toEqual(['lost', true])
})
