/**
 * Goal: a defect of the service neither leaves the scheduler half working nor loses what had ended; what an executor throws
 * is none. Method: the real scheduler with parts that break; a program with the real journal for the end of the process.
 */
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Executor } from '../../../control/executors/executor.ts'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { IdempotencyKeys } from '../../../control/log/idempotency.ts'
import { recover } from '../../../control/log/recovery.ts'
import { Readiness } from '../../../control/operations/readiness.ts'
import { submit } from '../../../control/operations/submit.ts'
import { Scheduler, type SchedulerOptions } from '../../../control/scheduler/scheduler.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { acceptGraph } from '../../support/graph.ts'
import { memoryKeeper } from '../../support/memory-keeper.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { operationParts } from '../../support/operation-parts.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

function world(execute: Executor['execute'], options: Partial<SchedulerOptions> = {}) {
  const store = new TaskStore()
  const { log, lines } = memoryLog()
  const faults: string[] = []
  const executors = new ExecutorRegistry([{ type: 'test', execute }])
  const scheduler = new Scheduler({
    ...{ store, executors, log, maxConcurrency: 1, abandonAfterMs: 60_000, serviceId: 'test' },
    ...{ keeper: memoryKeeper(), onFault: (fault) => void faults.push(fault), ...options },
  })
  const run = (...ids: string[]) => {
    const graph = acceptGraph(
      store,
      ids.map((id) => ({ id, type: 'test' })),
    )
    scheduler.add(graph)
    return graph
  }
  return { store, scheduler, executors, log, lines, faults, run }
}

const WITHOUT_TEXT = () => {
  throw Object.create(null)
}

describe('an executor that throws what has no text', () => {
  test.each<[string, Executor['execute']]>([
    ['at once', WITHOUT_TEXT],
    ['later', async () => WITHOUT_TEXT()],
  ])('%s fails its attempt, and the next tasks run', async (_, fail) => {
    const { scheduler, run, faults } = world((task, context) => (task.id === 'bad' ? fail(task, context) : 'fine'))
    const graph = run('bad', 'good')
    run('later')
    await until(() => graph.live, 0)
    const message = 'internal error: a value that cannot be turned into text was thrown'
    expect(graph.tasks[0]).toMatchObject({ status: 'failed', rare: { failure: { code: 'internal', message } } })
    expect(graph.tasks[1]).toMatchObject({ status: 'success', result: 'fine' })
    await until(() => run('again').tasks[0]!.status, 'success')
    expect(scheduler.fault).toBeUndefined()
    expect(faults).toEqual([])
  })
})

describe('a defect of the service', () => {
  test.each<[string, Executor['execute']]>([
    ['in a turn', () => 'fine'],
    ['when an attempt ends', async () => 'fine'],
  ])('%s stops the scheduler for good, which says why', async (_, execute) => {
    const defect = () => {
      throw new Error('no such state')
    }
    const { store, scheduler, executors, log, lines, faults, run } = world(execute, {
      keeper: memoryKeeper({ keep: defect }),
    })
    run('first', 'second')
    await until(() => scheduler.fault)
    expect(scheduler.fault).toBe('the scheduler has stopped: no such state')
    expect(faults).toEqual([scheduler.fault!])
    expect(lines().filter(({ level }) => level === 'error')).toMatchObject([
      { cause: expect.stringMatching('no such') },
    ])

    const later = run('later')
    expect(later.tasks[0]!.status).toBe('pending')
    const ground = operationParts({
      ...{ store, scheduler, executors, log, callbacks: { check: () => {} } },
      keeper: { keepGraph: async () => {}, assertAccepting: () => {}, keys: new IdempotencyKeys() },
      retention: { makeRoom: () => {}, checkSize: () => {} },
    })
    const parts = { ...ground, readiness: new Readiness(ground, () => true) }
    const refusal = submit(parts, { graph: { tasks: [{ id: 'refused', type: 'test' }] } }, { traceId: 'trace' })
    await expect(refusal).rejects.toMatchObject({ status: 503, message: scheduler.fault! })
    expect(store.get('refused')).toBeUndefined()
  })

  test('ends the process with an exit code, after what had ended is on disk', async () => {
    using dir = tempDir()
    const program = Bun.spawn([process.execPath, join(import.meta.dir, '../../fixtures/faulty-control.ts'), dir.path], {
      stdout: 'pipe',
      stderr: 'inherit',
    })
    const [text, code] = await Promise.all([new Response(program.stdout).text(), program.exited])
    expect(code).toBe(1)
    const lines = text.trim().split('\n')
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({
      level: 'error',
      msg: 'the service ends because of a defect; start it again',
      cause: 'the scheduler has stopped: a value that cannot be turned into text was thrown',
      journal: 'synced',
    })
    const { graphs } = await recover(dir.path)
    expect(graphs[0]!.tasks.map(({ id, status }) => `${id} ${status}`)).toEqual(['first success', 'last pending'])
  })
})
