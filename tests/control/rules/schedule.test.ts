/** What becomes of due times: a world with a clock that jumps, a service that is down at times, and graphs that end. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  ended,
  type GivenFields,
  look,
  MAX_COUNTED_DUES,
  MAX_RUNNING,
  MAX_UNTOLD,
  MAX_WAITING_DUES,
  nextStep,
  ON_TIME_MS,
  refused,
  runningAgain,
  type ScheduleProgress,
  skipped,
  submissionTime,
  submitted,
  submitterOf,
} from '../../../control/rules/schedule.ts'
import { dueTimes } from '../../../control/rules/schedule-times.ts'

const START = Date.parse('2026-04-23T00:00:00Z')
const MINUTE = 60_000

const begun = (settled = START): ScheduleProgress => ({ settled, waiting: [], missed: 0, skipped: 0, runs: [] })

const scheduleOf = (fields: GivenFields) => ({ name: 'nightly', fields, times: dueTimes(fields, START) })

const waitingAfter = (fields: GivenFields, now: number) => {
  const { waiting, missed, settled } = look(scheduleOf(fields), begun(), now)
  return { waiting: waiting.map((due) => (due - START) / MINUTE), missed, settled: (settled - START) / MINUTE }
}

test('nothing is due before its time, and looking changes nothing then', () => {
  const progress = begun()
  expect(look(scheduleOf({ every: MINUTE }), progress, START + MINUTE - 1)).toBe(progress)
})

test.each([
  ['none' as const, 10.5, { waiting: [10], missed: 9, settled: 10 }],
  ['last' as const, 10.5, { waiting: [10], missed: 9, settled: 10 }],
  ['all' as const, 3, { waiting: [1, 2, 3], missed: 0, settled: 3 }],
])('catch_up %s after %d minutes', (catch_up, minutes, expected) => {
  expect(waitingAfter({ every: MINUTE, catch_up }, START + minutes * MINUTE)).toEqual(expected)
})

test.each([
  ['none' as const, { waiting: [], missed: 1, settled: 60 }],
  ['last' as const, { waiting: [60], missed: 0, settled: 60 }],
  ['all' as const, { waiting: [60], missed: 0, settled: 60 }],
])('catch_up %s, if the only due time passed too long ago', (catch_up, expected) => {
  expect(waitingAfter({ every: 60 * MINUTE, catch_up }, START + 60 * MINUTE + ON_TIME_MS + 1)).toEqual(expected)
})

test('a run whose graph lives again has no state, and all others stay', () => {
  const run = (graph_id: string, state?: 'success' | 'failed') => ({ graph_id, at: START, ...(state && { state }) })
  const progress = { ...begun(), runs: [run('a', 'failed'), run('b', 'success'), run('c')] }
  expect(runningAgain(progress, (id) => id !== 'b').runs).toEqual([run('a'), run('b', 'success'), run('c')])
  expect(runningAgain(progress, (id) => id === 'c')).toBe(progress)
})

test('after months without a look, the newest due times are caught up, and no look takes long', () => {
  const { waiting, missed, settled } = waitingAfter({ every: MINUTE, catch_up: 'all' }, START + 100_000 * MINUTE)
  expect(waiting).toHaveLength(MAX_WAITING_DUES)
  expect(waiting.at(-1)).toBe(100_000)
  expect(settled).toBe(100_000)
  expect(missed + waiting.length).toBe(MAX_COUNTED_DUES)
})

test('after the clock was set back, nothing is due again', () => {
  const schedule = scheduleOf({ every: MINUTE })
  const progress = look(schedule, begun(), START + 5 * MINUTE)
  expect(look(schedule, progress, START + 2 * MINUTE)).toBe(progress)
  expect(look(schedule, progress, START + 6 * MINUTE).waiting).toEqual([START + 5 * MINUTE, START + 6 * MINUTE])
})

test('jitter delays each due time by the same time at each look, within its bound', () => {
  const delays = Array.from({ length: 1_000 }, (_, i) => submissionTime({ jitter: 500 }, 'a', i * MINUTE) - i * MINUTE)
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(0)
  expect(Math.max(...delays)).toBeLessThanOrEqual(500)
  expect(new Set(delays).size).toBeGreaterThan(300)
  expect(submissionTime({ jitter: 500 }, 'a', MINUTE)).toBe(submissionTime({ jitter: 500 }, 'a', MINUTE))
})

test.each([
  ['skip', 'skip'],
  ['queue', 'rest'],
  ['cancel', 'cancel'],
  ['allow', 'submit'],
] as const)('overlap %s: %s while a graph runs', (overlap, step) => {
  const waiting = { ...begun(), waiting: [START] }
  expect(nextStep(overlap, begun())).toBe('rest')
  expect(nextStep(overlap, waiting)).toBe('submit')
  expect(nextStep(overlap, { ...waiting, runs: [{ graph_id: 'a', at: START }] })).toBe(step)
})

test.each(['allow', 'cancel'] as const)('a schedule with too many graphs skips, with overlap %s', (overlap) => {
  const runs = Array.from({ length: MAX_RUNNING }, (_, i) => ({ graph_id: String(i), at: START }))
  expect(nextStep(overlap, { ...begun(), waiting: [START], runs })).toBe('skip')
})

test('of the ended runs, the last are kept', () => {
  let progress = begun()
  for (const graph_id of ['a', 'b', 'c', 'd']) progress = submitted(progress, { graph_id, at: START })
  for (const graphId of ['b', 'a', 'd'])
    progress = ended({}, progress, { graphId, state: 'success', at: START, maxRuns: 2 })
  expect(progress.runs.map(({ graph_id, state = 'running' }) => `${graph_id} ${state}`)).toEqual([
    'b success',
    'c running',
    'd success',
  ])
  expect(progress.last_success).toBe(START)
})

test('what is missed, refused and failed is to be told, if somebody is to be told, and only the newest of it', () => {
  const fail = (fields: GivenFields) => {
    let progress = look(scheduleOf({ ...fields, every: MINUTE }), begun(), START + 3 * MINUTE)
    progress = submitted(progress, { graph_id: 'a', due: START + 3 * MINUTE, at: START })
    progress = ended(fields, progress, { graphId: 'a', state: 'failed', at: START + 1, maxRuns: 1 })
    progress = refused(fields, { ...progress, waiting: [START] }, { error: 'full', at: START + 2 })
    return progress
  }
  expect(fail({})).not.toHaveProperty('untold')
  const fields = { on_failure: { url: 'http://a.example' } }
  const progress = fail(fields)
  expect(progress.missed).toBe(3)
  expect(progress.untold).toEqual([
    { reason: 'missed', at: START + 3 * MINUTE, due: START + 2 * MINUTE, missed: 2 },
    { reason: 'failed', at: START + 1, due: START + 3 * MINUTE, graph_id: 'a' },
    { reason: 'refused', at: START + 2, due: START, error: 'full' },
  ])
  let full = progress
  for (let i = 0; i < MAX_UNTOLD; i++) full = refused(fields, { ...full, waiting: [i] }, { error: '', at: i })
  expect(full.untold?.map(({ due }) => due)).toEqual(Array.from({ length: MAX_UNTOLD }, (_, i) => i))
})

/** What may happen between two looks. */
const anEvent = fc.oneof(
  fc.record({ kind: fc.constant('passes' as const), ms: fc.integer({ min: 0, max: 3 * MINUTE }) }),
  fc.record({ kind: fc.constant('jumps' as const), ms: fc.integer({ min: -30 * MINUTE, max: 30 * MINUTE }) }),
  fc.record({ kind: fc.constant('graph ends' as const), ms: fc.constant(0) }),
  fc.record({ kind: fc.constant('crashes' as const), ms: fc.integer({ min: 0, max: 30 * MINUTE }) }),
)

const someFields: fc.Arbitrary<GivenFields> = fc
  .record({
    times: fc.constantFrom<GivenFields>({ every: MINUTE }, { cron: '*/2 * * * *' }, { every: 7_000 }),
    overlap: fc.constantFrom('skip', 'queue', 'cancel', 'allow' as const),
    catch_up: fc.constantFrom('none', 'last', 'all' as const),
    jitter: fc.constantFrom(0, 5_000),
  })
  .map(({ times, ...rest }) => ({ ...times, ...rest }))

test('whatever happens, each due time is settled once: submitted, skipped, missed, or waiting', () => {
  fc.assert(
    fc.property(someFields, fc.array(anEvent, { maxLength: 40 }), (fields, events) => {
      const schedule = scheduleOf(fields)
      let now = START
      let progress = begun()
      let onDisk = progress
      const dues: number[] = []
      let running: string[] = []
      for (const { kind, ms } of events) {
        now = Math.max(START, now + ms)
        if (kind === 'crashes') progress = onDisk
        const [oldest] = running
        if (kind === 'graph ends' && oldest !== undefined) {
          progress = ended({}, progress, { graphId: oldest, state: 'success', at: now, maxRuns: 10 })
          running = running.slice(1)
        }
        const before = progress
        progress = look(schedule, progress, now)
        expect(progress.settled).toBeGreaterThanOrEqual(before.settled)
        for (;;) {
          const step = nextStep(fields.overlap, progress)
          const [due] = progress.waiting
          if (step === 'rest' || due === undefined) break
          if (step === 'skip') {
            progress = skipped(progress)
            continue
          }
          if (fields.overlap !== 'allow' && step === 'submit') expect(running).toEqual([])
          expect(submissionTime(fields, 'nightly', due)).toBeLessThanOrEqual(Math.max(now, progress.settled + 5_000))
          const graph_id = String(due)
          progress = submitted(progress, { graph_id, due, at: now })
          dues.push(due)
          running.push(graph_id)
          if (step === 'cancel') {
            for (const graphId of running.slice(0, -1))
              progress = ended({}, progress, { graphId, state: 'cancelled', at: now, maxRuns: 10 })
            running = running.slice(-1)
          }
        }
        onDisk = progress
        expect(progress.waiting.length).toBeLessThanOrEqual(MAX_WAITING_DUES)
      }
      expect(new Set(dues).size).toBe(dues.length)
      expect(dues).toEqual(dues.toSorted((a, b) => a - b))
      let passed = 0
      for (
        let due = schedule.times.next(START);
        due !== undefined && due <= progress.settled;
        due = schedule.times.next(due)
      )
        passed++
      const settled = dues.length + progress.skipped + progress.missed + progress.waiting.length
      if (passed < MAX_COUNTED_DUES) expect(settled).toBe(passed)
      else expect(settled).toBeLessThanOrEqual(passed)
    }),
  )
})

test('each of several services submits for some schedules, always for the same ones', () => {
  const names = Array.from({ length: 30 }, (_, i) => `schedule-${i}`)
  const submitters = names.map((name) => submitterOf(name, [3, 5, 8]))
  expect([...new Set(submitters)].sort()).toEqual([3, 5, 8])
  expect(names.map((name) => submitterOf(name, [3, 5, 8]))).toEqual(submitters)
  expect(submitterOf('a', [])).toBeUndefined()
})
