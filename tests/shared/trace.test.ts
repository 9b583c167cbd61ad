/** Goal: a caller's trace id is kept where it is harmless. Method: random headers against the rule in other words. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { newTraceId, traceIdFrom } from '../../shared/trace.ts'

const FRESH = /^[0-9a-f]{16}$/

describe('a trace id', () => {
  test('is the caller’s own when it is 1 to 128 visible ASCII characters', () => {
    const visible = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code))
    fc.assert(
      fc.property(fc.string({ unit: visible, minLength: 1, maxLength: 128 }), (header) => {
        expect(traceIdFrom(header)).toBe(header)
      }),
    )
    expect(traceIdFrom('x'.repeat(128))).toBe('x'.repeat(128))
  })

  test('replaces one that has another character anywhere', () => {
    const odd = fc.constantFrom(' ', '\t', '\n', '\r', '\0', '\x7f', 'é', '😀', '\u2028')
    fc.assert(
      fc.property(fc.string({ maxLength: 20 }), odd, fc.string({ maxLength: 20 }), (before, character, after) => {
        expect(traceIdFrom(before + character + after)).toMatch(FRESH)
      }),
    )
  })

  test.each([null, '', 'x'.repeat(129)])('replaces %j', (header) => {
    expect(traceIdFrom(header)).toMatch(FRESH)
  })

  test('is 16 hex digits when fresh, and another one each time', () => {
    const ids = Array.from({ length: 2_000 }, newTraceId)
    for (const id of ids) expect(id).toMatch(FRESH)
    expect(new Set(ids).size).toBe(ids.length)
  })
})
