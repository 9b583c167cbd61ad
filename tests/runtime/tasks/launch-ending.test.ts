/** Goal: the end of a task that left no outcome is told from what was seen, whatever the clock on the wall says. Method: tables. */
import { describe, expect, test } from 'bun:test'
import type { TaskRow } from '../../../runtime/store/tasks.ts'
import { Launch } from '../../../runtime/tasks/launch.ts'
import { lost, type Unfinished } from '../../../runtime/tasks/launch-ending.ts'

const WALL_TIME_MS = 60_000
const HOUR_MS = 3_600_000

const task = (more: Partial<TaskRow> = {}) => ({
  limits: { wall_time_ms: WALL_TIME_MS, stdout_max_bytes: 1, stderr_max_bytes: 1 },
  row: {
    started_at: Date.now(),
    kill_requested_at: null,
    ...more,
  } as TaskRow,
})
const ago = (ms: number) => performance.now() - ms
const ASKED = { program: 'a', workdir: '/', wall_time_ms: WALL_TIME_MS, max_output_bytes: 1 }

const SILENT = { gone: new Promise<never>(() => {}) }

const launched = (ms: number) => new Launch(SILENT, ASKED, ago(ms))

/** Launched and seen to start at that time. */
const seen = (ms: number) => ({ launch: Object.assign(launched(ms), { startedMs: ago(ms) }) })

const adopted = (isForced: boolean, ms: number) => ({
  launch: Object.assign(new Launch(SILENT, undefined, ago(ms)), { isForced }),
})

describe('a task without an outcome', () => {
  test.each([
    ['that ran shorter than its wall time', { ...seen(1_000), task: task() }, 'internal'],
    ['that ran longer', { ...seen(WALL_TIME_MS + 1), task: task() }, 'timeout'],
    ['when the clock is set forward', { ...seen(1_000), task: task({ started_at: Date.now() - HOUR_MS }) }, 'internal'],
    ['when it is set back', { ...seen(HOUR_MS), task: task({ started_at: Date.now() + HOUR_MS }) }, 'timeout'],
    ['that was killed', { ...seen(1_000), task: task({ kill_requested_at: 1 }) }, 'cancelled'],
    ['of an earlier service', { ...adopted(false, HOUR_MS), task: task() }, 'internal'],
    ['of an earlier service that we ended at its wall time', { ...adopted(true, HOUR_MS), task: task() }, 'timeout'],
    [
      'of an earlier service that we ended by a kill',
      { ...adopted(true, 1_000), task: task({ kill_requested_at: 1 }) },
      'cancelled',
    ],
  ])('%s', (_, unfinished, code) => {
    const { error, isTimeout = false } = lost(unfinished)
    expect([error!.code, isTimeout]).toEqual([code as never, code === 'timeout'])
  })

  test('of an earlier service is lost during the restart', () => {
    expect(lost({ ...adopted(false, 1_000), task: task() }).error!.message).toBe('task lost during runtime restart')
  })
})

describe('how long it ran', () => {
  const durationMs = (unfinished: Unfinished) => lost(unfinished).usage!.duration_ms

  test('is measured where its start was seen', () => {
    expect(durationMs({ ...seen(5_000), task: task({ started_at: Date.now() + HOUR_MS }) })).toBeLessThan(60_000)
  })

  test('is never negative where the clock on the wall is all there is', () => {
    expect(durationMs({ ...adopted(false, 1), task: task({ started_at: Date.now() + HOUR_MS }) })).toBe(0)
  })

  test('is not told of one that never started', () => {
    expect(lost({ launch: launched(1), task: task({ started_at: null }) }).usage).toBeUndefined()
  })
})
