/**
 * Goal: a stop lets attempts finish in time, interrupts the others, and loses no task and no retry. Method: attempts that
 * finish, hang and do not listen; another scheduler resumes the graphs.
 */
import { describe, expect, test } from 'bun:test'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { Scheduler } from '../../../control/scheduler/scheduler.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { acceptGraph, taskIn } from '../../support/graph.ts'
import { memoryKeeper } from '../../support/memory-keeper.ts'
import { task, World } from '../../support/scheduler-world.ts'

describe('a stop', () => {
  test('does not wait for tasks between two attempts, which count as running until the next start', async () => {
    const world = new World()
    world.submit([task('a', { outcomes: ['fail'] }, { retry: 1 })])
    await world.scheduler.stop(60_000)
    expect(world.task('a')).toMatchObject({
      status: 'running',
      attempt: 1,
      usedAttempts: 1,
      rare: { isBackingOff: true },
    })
  })

  test('keeps what fails meanwhile for the next start', async () => {
    const world = new World()
    world.submit([task('a', { turns: 3, outcomes: ['fail'] }, { retry: 1 })])
    await world.executing(1)
    await world.scheduler.stop(60_000)
    expect(world.task('a')).toMatchObject({ status: 'running', attempt: 1, rare: { isBackingOff: true } })
  })

  test('gives up executors that do not return', async () => {
    const deaf = { type: 'deaf', execute: () => new Promise(() => {}) }
    const store = new TaskStore()
    const scheduler = new Scheduler({
      store,
      executors: new ExecutorRegistry([{ ...deaf, type: 'test' }]),
      maxConcurrency: 1,
      log: silentLog(),
      abandonAfterMs: 1,
      serviceId: 'test',
      keeper: memoryKeeper(),
    })
    const graph = acceptGraph(store, [task('a')])
    scheduler.add(graph)
    await scheduler.stop(0)
    expect(taskIn(graph, 'a')).toMatchObject({ status: 'pending', rare: { interrupted_attempts: 1 } })
  })
})
