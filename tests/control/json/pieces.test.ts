/** Goal: the pieces are the text that `JSON.stringify` writes. Method: random JSON; large values in steps. */
import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { jsonBytes, jsonDigest, jsonPieces, jsonText } from '../../../control/json/pieces.ts'
import { runSync } from '../../../shared/process/steps.ts'

test('pieces, size and digest are those of the text', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), (given) => {
      const value = JSON.parse(JSON.stringify(given))
      const text = JSON.stringify(value)
      const bytes = Buffer.byteLength(text)
      expect(runSync(jsonText(value))).toBe(text)
      expect(runSync(jsonBytes(value, bytes))).toBe(bytes)
      expect(runSync(jsonBytes(value, bytes - 1))).toBeUndefined()
      const sha256 = createHash('sha256').update(text).digest('hex')
      expect(runSync(jsonDigest(value))).toEqual({ sha256, bytes })
    }),
    { numRuns: 500 },
  )
})

test('a large value comes in many pieces', () => {
  const value = { list: Array.from({ length: 100_000 }, (_, i) => ({ i, text: `text ${i}` })) }
  const pieces = [...jsonPieces(value)]
  expect(pieces.length).toBeGreaterThan(100)
  expect(pieces.join('')).toBe(JSON.stringify(value))
})
