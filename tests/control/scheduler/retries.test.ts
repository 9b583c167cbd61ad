/**
 * Goal: a failed attempt is followed by another one after its backoff while retries are left, and the backoff holds no slot.
 * Method: scripts that fail, on the real clock.
 */
import { describe, expect, test } from 'bun:test'
import { FAILURES_PER_LOG_LINE, foldedFailures, LOGGED_FAILURES } from '../../../control/scheduler/folded-failures.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { task, World } from '../../support/scheduler-world.ts'
import { until } from '../../support/until.ts'

describe('a task with retries', () => {
  test('that failed keeps what its executor had to say', async () => {
    const { log, lines } = memoryLog()
    const world = new World({ log })
    const graph = world.submit([task('a', { outcomes: ['fail', 'fail'] }, { retry: 1 })])
    await world.over()
    expect(world.task('a')).toMatchObject({
      status: 'failed',
      errorText: 'task failed after all retries: attempt 2 failed',
      failure: { code: 'exit_nonzero', message: 'attempt 2 failed' },
      result: { attempt: 2 },
    })
    const common = { trace_id: graph.traceId, graph_id: graph.id }
    expect(lines()).toMatchObject([
      {
        msg: 'attempt failed, will be retried',
        ...common,
        task_id: 'a',
        attempt: 1,
        error: 'attempt 1 failed',
        attempts_left: 1,
      },
      { msg: 'task failed after all retries', ...common, task_id: 'a', attempt: 2, code: 'exit_nonzero' },
      { msg: 'graph ended', ...common, tasks: 1 },
    ])
  })

  test('that fails again and again has few log lines, which count the others', async () => {
    const { log, lines } = memoryLog()
    const world = new World({ log })
    const failures = 2 * FAILURES_PER_LOG_LINE + 5
    const outcomes = Array<'fail'>(failures).fill('fail')
    world.submit([task('a', { outcomes }, { retry: failures - 1, backoff: { initial_ms: 0 } })])
    await world.over()
    const retried = lines().filter(({ msg }) => msg === 'attempt failed, will be retried')
    expect(retried.map(({ attempt }) => attempt)).toEqual([
      ...Array.from({ length: LOGGED_FAILURES }, (_, i) => i + 1),
      ...[FAILURES_PER_LOG_LINE, 2 * FAILURES_PER_LOG_LINE],
    ])
    const folded = retried.reduce((sum, line) => sum + Number(line.folded ?? 0), 0)
    expect(retried.length + folded).toBe(2 * FAILURES_PER_LOG_LINE)
    expect(foldedFailures(10_000)).toBe(FAILURES_PER_LOG_LINE - 1)
  })

  test('holds no slot between two attempts', async () => {
    const world = new World({ maxConcurrency: 1 })
    const ids = Array.from({ length: 20 }, (_, i) => `t${i}`)
    const failing = task(
      'failing',
      { outcomes: ['fail'] },
      { retry: 1, backoff: { initial_ms: 600_000, max_ms: 600_000 } },
    )
    world.submit([failing, ...ids.map((id) => task(id, { turns: 1 }))])
    await until(
      () => ids.map((id) => world.task(id).status),
      (statuses) => statuses.every((status) => status === 'success'),
    )
    expect(world.task('failing')).toMatchObject({
      status: 'running',
      isBackingOff: true,
      runStatus: 'accepted',
      attempt: 1,
    })
    expect(world.counters.tasksRunning).toBe(1)
    await world.scheduler.cancel(world.task('failing'))
    await world.over()
  })

  test('waits at least its backoff before it is tried again', async () => {
    const times: number[] = []
    const world = new World({}, () => times.push(performance.now()))
    world.submit([task('a', { outcomes: ['fail', 'break', 'fail'] }, { retry: 2 })])
    await world.over()
    expect(times).toHaveLength(3)
    expect(times[1]! - times[0]!).toBeGreaterThanOrEqual(100)
    expect(times[2]! - times[1]!).toBeGreaterThanOrEqual(200)
  })
})
