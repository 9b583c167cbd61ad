/** Goal: a caller's trace id is kept where it is harmless. Method: random headers against the rule in other words. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { newTraceId, parseTraceParent, traceIdFrom, traceStateFrom } from '../../../shared/logs/trace.ts'

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

describe('a tracestate', () => {
  const value = (length: number) => `a=${'x'.repeat(length)}`
  test.each([
    'rojo=00f067aa0ba902b7',
    'rojo=1,congo=t61rcWkgMzE',
    'a=1 ,\tb=2, ,c= 3',
    'tenant@system=x',
    'a-b_c*d/e=!"#$',
    value(256),
    Array(32).fill('a=1').join(),
    `${value(253)},${value(254)}`, // 512 characters
  ])('is kept: %s', (header) => {
    expect(traceStateFrom(header)).toBe(header)
  })

  test.each([
    ...[null, '', 'a', 'a=', '=1', 'A=1', 'a=b=c', 'a=é', 'a b=1', 'a=1,b'],
    ...[value(257), Array(33).fill('a=1').join(), `${value(254)},${value(254)}`],
  ])('is dropped: %s', (header) => {
    expect(traceStateFrom(header)).toBeUndefined()
  })
})

describe('a traceparent', () => {
  const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
  const SPAN = '00f067aa0ba902b7'

  test.each([
    [`00-${TRACE}-${SPAN}-01`, true],
    [`00-${TRACE}-${SPAN}-00`, false],
    [`00-${TRACE}-${SPAN}-03`, true],
    [`cc-${TRACE}-${SPAN}-01`, true],
    [`cc-${TRACE}-${SPAN}-01-what-comes-later`, true],
  ])('%s is one', (header, isSampled) => {
    expect(parseTraceParent(header)).toEqual({ traceId: TRACE, parentSpanId: SPAN, isSampled })
    expect(traceIdFrom(null, header)).toBe(header)
    expect(traceIdFrom('mine', header)).toBe('mine')
    expect(traceIdFrom('not mine', header)).toBe(header)
  })

  test.each([
    '',
    'x',
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE}-${SPAN}-01 `,
    `00-${TRACE}-${SPAN}-1`,
    `cc-${TRACE}-${SPAN}-01-${'x'.repeat(200)}`,
  ])('%j is none', (header) => {
    expect(parseTraceParent(header)).toBeUndefined()
    expect(traceIdFrom(null, header)).toMatch(FRESH)
  })
})
