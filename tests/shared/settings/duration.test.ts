/** Goal: durations mean what people and Go mean by them. Method: tables of texts, and round trips of random times. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { formatDuration, formatUptime, parseDurationMs, parseSpanMs } from '../../../shared/settings/duration.ts'

describe('a duration', () => {
  test.each([
    ['0', 0],
    ['0s', 0],
    ['500ms', 500],
    ['30s', 30_000],
    ['2m', 120_000],
    ['168h', 604_800_000],
    ['1h30m', 5_400_000],
    ['1h0m3s', 3_603_000],
    ['1.5s', 1_500],
    ['0.25m', 15_000],
    ['1m1ms', 60_001],
    ['0.4ms', 0],
  ])('%s is %d milliseconds', (text, ms) => {
    expect(parseDurationMs(text)).toBe(ms)
  })

  test.each([
    '',
    ' ',
    '5',
    '00',
    '-5s',
    '+5s',
    '5S',
    '5 s',
    ' 5s',
    '5s ',
    '5s\n',
    '.5s',
    '5.s',
    '1e3s',
    's',
    '5d',
    '5us',
    '٣s',
  ])('is not what %j says', (text) => {
    expect(parseDurationMs(text)).toBeNull()
  })

  test('is refused when it is longer than a number can count', () => {
    expect(parseDurationMs(`${'9'.repeat(30)}h`)).toBeNull()
    expect(parseDurationMs(`${'9'.repeat(400)}h`)).toBeNull()
  })

  test('is written so that it reads back exactly', () => {
    const multiples = fc
      .tuple(fc.nat(10_000), fc.constantFrom(1, 1_000, 60_000, 3_600_000))
      .map(([n, unit]) => n * unit)
    fc.assert(
      fc.property(fc.oneof(fc.nat(), multiples), (ms) => {
        expect(parseDurationMs(formatDuration(ms))).toBe(ms)
      }),
    )
  })

  test('is written in its largest whole unit', () => {
    expect([0, 250, 30_000, 120_000, 90_000, 3_600_000].map(formatDuration)).toEqual([
      '0s',
      '250ms',
      '30s',
      '2m',
      '90s',
      '1h',
    ])
  })
})

describe('an uptime', () => {
  test.each([
    [0, '0s'],
    [999, '0s'],
    [1_000, '1s'],
    [42_999, '42s'],
    [60_000, '1m0s'],
    [125_000, '2m5s'],
    [3_600_000, '1h0m0s'],
    [3_603_000, '1h0m3s'],
    [90_061_000, '25h1m1s'],
    [-5_000, '0s'],
  ])('of %d milliseconds is written %s', (ms, text) => {
    expect(formatUptime(ms)).toBe(text)
  })

  test('reads back as its whole seconds', () => {
    fc.assert(
      fc.property(fc.nat(), (ms) => {
        expect(parseDurationMs(formatUptime(ms))).toBe(ms - (ms % 1_000))
      }),
    )
  })
})

describe('a span', () => {
  test.each([
    ['1d', 86_400_000],
    ['30d', 2_592_000_000],
    ['0d', 0],
    ['1h30m', 5_400_000],
    ['0', 0],
    ['1.5d', null],
    ['1d12h', null],
    ['-1d', null],
    ['d', null],
    ['9999999d', null],
  ])('%j is %p milliseconds', (text, ms) => {
    expect(parseSpanMs(text)).toBe(ms)
  })
})
