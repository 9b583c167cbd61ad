/** What a task with retries keeps of its failures, and what the log tells of them. */
import { describe, expect, test } from 'bun:test'
import { FAILURES_PER_LOG_LINE, foldedFailures, LOGGED_FAILURES } from '../../../control/scheduler/folded-failures.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { task, World } from '../../support/scheduler-world.ts'

describe('a task with retries', () => {
  test('that failed keeps what its executor had to say', async () => {
    const { log, lines } = memoryLog()
    const world = new World({ log })
    const graph = world.submit([task('a', { outcomes: ['fail', 'fail'] }, { retry: 1 })])
    await world.over()
    expect(world.task('a')).toMatchObject({
      status: 'failed',
      rare: {
        error: 'task failed after all retries: attempt 2 failed',
        failure: { code: 'exit_nonzero', message: 'attempt 2 failed' },
      },
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
})
