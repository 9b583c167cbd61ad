/** Goal: a log that arrives as events is the text that the task wrote, however its bytes and its events are cut. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { LogEvents } from '../../../control/dashboard/log/log-events.ts'

const event = (bytes: Uint8Array) => `event: bytes\ndata: ${Buffer.from(bytes).toString('base64')}\n\n`

test('pieces of any size, in chunks of any size, with comments between them', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 60 })
  const sizes = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(text, sizes, fc.integer({ min: 1, max: 50 }), (written, pieceSizes, chunkSize) => {
      const bytes = new TextEncoder().encode(written)
      let stream = ': open\n\nevent: begin\ndata: {"offset":0}\n\n'
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const size = pieceSizes[turn % pieceSizes.length]!
        stream += `${event(bytes.subarray(at, at + size))}: keep-alive\n\n`
        at += size
      }
      const events = new LogEvents()
      let read = ''
      for (let at = 0; at < stream.length; at += chunkSize) read += events.push(stream.slice(at, at + chunkSize))
      expect(read).toBe(written)
    }),
  )
})

test('an event that is not whole is not shown', () => {
  const events = new LogEvents()
  const text = event(new TextEncoder().encode('whole'))
  expect(events.push(text.slice(0, -1))).toBe('')
  expect(events.push('\n')).toBe('whole')
})
