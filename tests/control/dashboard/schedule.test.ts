/** Goal: the page says of a schedule what the service keeps, and its form sends what is typed. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { hashOf, placeOf, type SchedulesPlace } from '../../../control/dashboard/model/place.ts'
import {
  bodyOf,
  draftOf,
  faultAt,
  NEW_DRAFT,
  ruleText,
  timeIn,
  troubles,
  zoneOf,
} from '../../../control/dashboard/model/schedule.ts'
import type { Schedule } from '../../../shared/contract/schedules.ts'

const GRAPH = { tasks: [{ id: 'a', type: 'noop' }] }

const schedule = (more: object): Schedule =>
  ({
    ...{
      name: 's',
      overlap: 'skip',
      catch_up: 'none',
      paused: false,
      created_at: '',
      updated_at: '',
      next: [],
      runs: [],
    },
    ...{ running: 0, waiting: 0, missed: 0, skipped: 0, graph: GRAPH },
    ...more,
  }) as Schedule

test('the rule is said in words, and the zone is that of cron alone', () => {
  const cases: [object, string, string | undefined][] = [
    [{ cron: '0 3 * * *', timezone: 'Europe/Berlin' }, 'cron 0 3 * * * in Europe/Berlin', 'Europe/Berlin'],
    [{ cron: '@daily' }, 'cron @daily in UTC', 'UTC'],
    [{ every: 5_400_000 }, 'every 1 h 30 m', undefined],
    [{ at: '2030-01-31T09:30:00Z' }, 'once, at 2030-01-31T09:30:00Z', undefined],
  ]
  for (const [given, text, zone] of cases) {
    expect([ruleText(given), zoneOf(given)]).toEqual([text, zone!])
  }
})

test('a time is told on the clock of a zone, and not at all in one that nobody knows', () => {
  expect(timeIn('2026-03-29T00:30:00Z', 'Europe/Berlin')).toBe('2026-03-29 01:30:00')
  expect(timeIn('2026-03-29T01:30:00Z', 'Europe/Berlin')).toBe('2026-03-29 03:30:00')
  expect(timeIn('2026-03-29T01:30:00Z', 'No/Where')).toBe('')
})

test('what went wrong or waits is told, and nothing else', () => {
  expect(troubles(schedule({}))).toEqual([])
  expect(troubles(schedule({ waiting: 1 }))).toEqual(['1 due time waits for the end of a graph, or for room.'])
  expect(troubles(schedule({ missed: 1, skipped: 1_200, waiting: 2, last_error: 'full' }))).toEqual([
    '1 due time missed: nobody looked, or the graph was refused.',
    '1,200 due times skipped: a graph of the schedule ran.',
    '2 due times wait for the end of a graph, or for room.',
    'The last graph was refused: full',
  ])
})

describe('the form', () => {
  const sent = (draft: Parameters<typeof bodyOf>[0]) => {
    const answer = bodyOf(draft)
    return 'body' in answer ? (JSON.parse(answer.body) as unknown) : answer
  }

  test('of a schedule sends what the schedule has', () => {
    const defaults = { overlap: 'skip', catch_up: 'none', paused: false, graph: GRAPH }
    const cases = [
      { cron: '0 3 * * MON', timezone: 'Asia/Tokyo' },
      { every: 1_500, overlap: 'queue', catch_up: 'all', paused: true },
      { at: '2030-01-31T09:30:00Z', start: '2029-01-01T00:00:00Z', end: '2031-01-01T00:00:00Z' },
      { every: 60_000, jitter: 250, keep: 7, params: { day: 1 }, on_failure: { url: 'https://a.example/hook' } },
    ]
    for (const given of cases) expect(sent(draftOf(schedule(given)))).toEqual({ ...defaults, ...given })
  })

  test('sends a text that is no number as it is, for the service to refuse, and tells what is not JSON', () => {
    expect(sent({ ...NEW_DRAFT, rule: 'every', when: 'soon', jitter: '1.5' })).toMatchObject({
      every: 'soon',
      jitter: 1_500,
    })
    expect(sent({ ...NEW_DRAFT, rule: 'every', when: '' })).toMatchObject({ every: '' })
    expect(sent({ ...NEW_DRAFT, graph: '{' })).toMatchObject({
      field: 'graph',
      message: expect.stringMatching(/^This is not JSON: /),
    })
    expect(sent({ ...NEW_DRAFT, params: 'x' })).toMatchObject({ field: 'params' })
  })

  test('shows an error of the service at the field that it names', () => {
    const at = (message: string, rule: 'cron' | 'every' | 'at' = 'cron') => faultAt(message, rule).field
    expect(at('cron: Invalid value for hour: 25 (expected …)')).toBe('when')
    expect(at('invalid JSON: every: expected integer', 'every')).toBe('when')
    expect(at('at: 2020-01-01T00:00:00Z is over', 'at')).toBe('when')
    expect(at('timezone: there is no "X"')).toBe('timezone')
    expect(at('graph: task a: duplicate')).toBe('graph')
    expect(at('invalid JSON: graph: expected object')).toBe('graph')
    expect(at('on_failure.url: expected an http: or https: address')).toBe('on_failure')
    expect(at('catch_up: "all" requires overlap')).toBe('catch_up')
    expect(at('there are 1 schedules already (--max-schedules): delete one')).toBeUndefined()
    expect(at('the service cannot be reached')).toBeUndefined()
  })
})

test('the address of a schedule is the place that it was made from', () => {
  const place = fc.record(
    {
      at: fc.constant('schedules' as const),
      name: fc.string({ minLength: 1, unit: 'grapheme' }),
      isEditing: fc.constant(true as const),
    },
    { requiredKeys: ['at'] },
  )
  fc.assert(fc.property(place, (given: SchedulesPlace) => expect(placeOf(hashOf(given))).toEqual(given)))
})
