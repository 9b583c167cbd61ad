/** Due times: expressions as people write them, and what becomes of them where clocks change. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { GivenFields } from '../../../control/rules/schedule.ts'
import { dueTimes } from '../../../control/rules/schedule-times.ts'

const iso = (ms: number) => new Date(ms).toISOString().replace('.000Z', 'Z')

function first(fields: GivenFields, after: string, count: number): string[] {
  const times = dueTimes(fields, Date.parse(after))
  const found: string[] = []
  for (let due = times.next(Date.parse(after)); due !== undefined && found.length < count; due = times.next(due))
    found.push(iso(due))
  return found
}

describe('where clocks change', () => {
  test.each([
    // Berlin, 29 March 2026: 02:00 becomes 03:00. 25 October: 03:00 becomes 02:00.
    [
      'Europe/Berlin',
      '30 2 * * *',
      '2026-03-28T00:00:00Z',
      ['2026-03-28T01:30:00Z', '2026-03-29T01:00:00Z', '2026-03-30T00:30:00Z'],
    ],
    ['Europe/Berlin', '0 * * * *', '2026-03-29T00:00:00Z', ['2026-03-29T01:00:00Z', '2026-03-29T02:00:00Z']],
    [
      'Europe/Berlin',
      '30 2 * * *',
      '2026-10-24T00:00:00Z',
      ['2026-10-24T00:30:00Z', '2026-10-25T00:30:00Z', '2026-10-26T01:30:00Z'],
    ],
    [
      'Europe/Berlin',
      '*/30 * * * *',
      '2026-10-25T00:00:00Z',
      ['2026-10-25T00:30:00Z', '2026-10-25T01:00:00Z', '2026-10-25T01:30:00Z', '2026-10-25T02:00:00Z'],
    ],
    // New York, 8 March 2026: 02:00 becomes 03:00. 1 November: 02:00 becomes 01:00.
    [
      'America/New_York',
      '30 2 * * *',
      '2026-03-07T00:00:00Z',
      ['2026-03-07T07:30:00Z', '2026-03-08T07:00:00Z', '2026-03-09T06:30:00Z'],
    ],
    [
      'America/New_York',
      '30 1 * * *',
      '2026-10-31T00:00:00Z',
      ['2026-10-31T05:30:00Z', '2026-11-01T05:30:00Z', '2026-11-02T06:30:00Z'],
    ],
    [
      'America/New_York',
      '0 * * * *',
      '2026-11-01T04:30:00Z',
      ['2026-11-01T05:00:00Z', '2026-11-01T06:00:00Z', '2026-11-01T07:00:00Z'],
    ],
    // Lord Howe changes by half an hour. 5 April 2026: 02:00 becomes 01:30. 4 October: 02:00 becomes 02:30.
    ['Australia/Lord_Howe', '45 1 * * *', '2026-04-04T00:00:00Z', ['2026-04-04T14:45:00Z', '2026-04-05T15:15:00Z']],
    ['Australia/Lord_Howe', '15 2 * * *', '2026-10-03T00:00:00Z', ['2026-10-03T15:30:00Z', '2026-10-04T15:15:00Z']],
    // São Paulo, 4 November 2018: the day began at 01:00. 18 February: 00:00 became 23:00 of the day before.
    [
      'America/Sao_Paulo',
      '0 0 * * *',
      '2018-11-03T00:00:00Z',
      ['2018-11-03T03:00:00Z', '2018-11-04T03:00:00Z', '2018-11-05T02:00:00Z'],
    ],
    [
      'America/Sao_Paulo',
      '30 23 * * *',
      '2018-02-17T00:00:00Z',
      ['2018-02-17T01:30:00Z', '2018-02-18T01:30:00Z', '2018-02-19T02:30:00Z'],
    ],
  ])('%s, %s after %s', (timezone, cron, after, expected) => {
    expect(first({ cron, timezone }, after, expected.length)).toEqual(expected)
  })

  const MOMENTS = [
    '2026-03-08T07:00:00Z',
    '2026-03-29T01:00:00Z',
    '2026-04-04T15:00:00Z',
    '2026-10-25T01:00:00Z',
    '2026-11-01T06:00:00Z',
  ]

  test('each due time is later than the one before, and the same from wherever one looks', () => {
    const aZone = fc.constantFrom(
      'Europe/Berlin',
      'America/New_York',
      'Australia/Lord_Howe',
      'America/Sao_Paulo',
      'UTC',
    )
    const aCron = fc.constantFrom('30 2 * * *', '0 * * * *', '*/20 1-3 * * *', '15 1,2 * * *', '0 30 1 * * SUN')
    const aMoment = fc.tuple(fc.constantFrom(...MOMENTS), fc.integer({ min: -10_800, max: 10_800 }))
    fc.assert(
      fc.property(aZone, aCron, aMoment, fc.integer({ min: 0, max: 7_200 }), (timezone, cron, [moment, s], more) => {
        const times = dueTimes({ cron, timezone }, 0)
        const after = Date.parse(moment) + s * 1_000
        const due = times.next(after)!
        expect(due).toBeGreaterThan(after)
        const between = Math.min(after + more * 1_000, due - 1)
        expect(times.next(between)).toBe(due)
        expect(times.next(due)!).toBeGreaterThan(due)
      }),
    )
  })
})

test.each([
  ['*/10 * * * * *', ['2026-04-23T00:00:10Z', '2026-04-23T00:00:20Z']],
  ['0 9 * * MON-FRI', ['2026-04-23T09:00:00Z', '2026-04-24T09:00:00Z', '2026-04-27T09:00:00Z']],
  ['0 0 1 jan,JUL *', ['2026-07-01T00:00:00Z', '2027-01-01T00:00:00Z']],
  ['0 0 L * *', ['2026-04-30T00:00:00Z', '2026-05-31T00:00:00Z']],
  ['0 0 * * 5L', ['2026-04-24T00:00:00Z', '2026-05-29T00:00:00Z']],
  ['0 0 * * MON#1', ['2026-05-04T00:00:00Z', '2026-06-01T00:00:00Z']],
  ['0 0 13 * FRI', ['2026-04-24T00:00:00Z', '2026-05-01T00:00:00Z', '2026-05-08T00:00:00Z', '2026-05-13T00:00:00Z']],
  ['0 0 29 2 *', ['2028-02-29T00:00:00Z', '2032-02-29T00:00:00Z']],
  ['@daily', ['2026-04-24T00:00:00Z']],
  ['@hourly', ['2026-04-23T01:00:00Z']],
  ['@weekly', ['2026-04-26T00:00:00Z']],
  ['0 0 30 2 *', []],
])('%s', (cron, expected) => {
  expect(first({ cron }, '2026-04-23T00:00:00Z', Math.max(1, expected.length))).toEqual(expected)
})

test('every counts from start, else from when it was put, and at is one time', () => {
  expect(first({ every: 90_000 }, '2026-04-23T00:00:10Z', 2)).toEqual(['2026-04-23T00:01:40Z', '2026-04-23T00:03:10Z'])
  const start = '2026-04-23T00:00:30Z'
  const end = '2026-04-23T00:03:30Z'
  expect(first({ every: 90_000, start, end }, '2026-04-23T00:00:00Z', 9)).toEqual([
    '2026-04-23T00:00:30Z',
    '2026-04-23T00:02:00Z',
    '2026-04-23T00:03:30Z',
  ])
  expect(first({ at: start }, '2026-04-23T00:00:00Z', 9)).toEqual([start])
  expect(first({ at: start }, start, 9)).toEqual([])
  expect(first({ cron: '* * * * *', start, end }, '2020-01-01T00:00:00Z', 9)).toEqual([
    '2026-04-23T00:01:00Z',
    '2026-04-23T00:02:00Z',
    '2026-04-23T00:03:00Z',
  ])
})

test.each([
  [{ cron: '61 * * * *' }, 'cron: Invalid value for minute: 61 (expected five or six fields, as in "0 3 * * *")'],
  [{ cron: '* * * * * * *' }, 'cron: expected five or six fields, as in "0 3 * * *", got 7'],
  [{ cron: '* * *' }, 'cron: expected five or six fields, as in "0 3 * * *", got 3'],
  [{ cron: '2026-12-01T00:00:00' }, 'cron: expected five or six fields, got a time (give it as at)'],
  [{ cron: '@reboot' }, /^cron: @reboot is not supported/],
  [
    { cron: '0 3 * * *', timezone: 'Europe/Berlln' },
    'timezone: there is no "Europe/Berlln" (expected a name such as "Europe/Berlin" or "UTC")',
  ],
])('refuses %j', (fields, message) => {
  expect(() => dueTimes(fields, 0)).toThrow(message)
})
