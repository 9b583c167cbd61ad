/** Goal: no submission is accepted that its caller gave up. Method: times given, and the real clock for the format. */
import { expect, test } from 'bun:test'
import { BAR_MS, LateSubmissions, MAX_BARRED_IDS } from '../../../runtime/tasks/late-submissions.ts'

const world = () => {
  const times = { monotonicMs: 1_000, wallMs: 1_700_000_000_000 }
  const late = new LateSubmissions(() => times)
  const outcome = (id: string, notAfter?: string) => {
    try {
      late.check(id, notAfter)
      return 'accepted'
    } catch (error) {
      const { status, details } = error as { status: number; details: unknown }
      return `${status} ${JSON.stringify(details)}`
    }
  }
  return { times, late, outcome }
}
const LATE = '409 {"refused_as":"late"}'
const BARRED = '409 {"refused_as":"barred"}'

test.each([
  ['in time', 100, 100, 'accepted'],
  ['late by the clock that nobody sets', 101, 0, LATE],
  ['late by the other one: the machine was suspended', 0, 101, LATE],
  ['while the other one is set back', 100, -3_600_000, 'accepted'],
  ['while the other one is set back, late', 101, -3_600_000, LATE],
])('a submission with 100 ms: %s', (_, monotonicMs, wallMs, expected) => {
  const { times, late, outcome } = world()
  const notAfter = `${late.clock}+100`
  times.monotonicMs += monotonicMs
  times.wallMs += wallMs
  expect(outcome('a', notAfter)).toBe(expected)
  expect(outcome('a')).toBe('accepted')
})

test('a reading of another process is over, and anything else is no time', () => {
  const { outcome } = world()
  expect(outcome('a', `${new LateSubmissions().clock}+1000000`)).toBe(LATE)
  for (const text of ['', '5', '1+1', 'x.1.1+1', '0000000g.1.1+1', '00000000.1.1+', '00000000.1.1+-1'])
    expect(outcome('a', text)).toBe('400 null')
})

test('a barred id is refused for BAR_MS, others are not', () => {
  const { times, late, outcome } = world()
  expect(late.bar('a')).toBe(true)
  times.monotonicMs += BAR_MS - 1
  expect([outcome('a'), outcome('b')]).toEqual([BARRED, 'accepted'])
  late.bar('a') // holds anew
  times.monotonicMs += 1
  expect(outcome('a', `${late.clock}+1000`)).toBe(BARRED)
  times.monotonicMs += BAR_MS
  expect(outcome('a')).toBe('accepted')
})

test('beyond MAX_BARRED_IDS none is barred, until old ones are over', () => {
  const { times, late, outcome } = world()
  for (let i = 0; i < MAX_BARRED_IDS; i++) late.bar(`id-${i}`)
  expect(late.bar('more')).toBe(false)
  expect([outcome('more'), outcome('id-0')]).toEqual(['accepted', BARRED])
  times.monotonicMs += BAR_MS
  expect(late.bar('more')).toBe(true)
})
