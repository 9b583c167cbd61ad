/**
 * Goal: a stop lets attempts finish in time, interrupts the others, and loses no task and no retry. Method: attempts that
 * finish, hang and do not listen; another scheduler resumes the graphs.
 */
import { describe, expect, test } from 'bun:test'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { Scheduler } from '../../../control/scheduler/scheduler.ts'
import { TaskStore } from '../../../control/store/tasks.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { nextTurn } from '../../../shared/process/steps.ts'
import { acceptGraph, taskIn } from '../../support/graph.ts'
import { memoryKeeper } from '../../support/memory-keeper.ts'
import { after, task, World } from '../../support/scheduler-world.ts'

describe('a stop', () => {
  test('lets attempts finish that do so in time, and starts nothing any more', async () => {
    const world = new World({ maxConcurrency: 2 })
    world.submit([task('a', { turns: 5 }), task('b', { turns: 9 }), task('c'), task('d', {}, after('a'))])
    await world.executing(2)
    await world.scheduler.stop(60_000)
    expect(world.graphs[0]!.tasks.map(({ status }) => status)).toEqual(['success', 'success', 'pending', 'pending'])
    expect(world.executor.starts).toHaveLength(2)
    world.submit([task('e')])
    await nextTurn()
    expect(world.executor.starts).toHaveLength(2)
  })

  test('ends what does not finish in time; its tasks are pending again and lose no retry', async () => {
    const world = new World()
    world.submit([task('a', { hangs: true, outcomes: ['fail'] }, { retry: 1 }), task('b', {}, after('a'))])
    await world.executing(1)
    await world.scheduler.stop(0)
    expect(world.task('a')).toMatchObject({
      status: 'pending',
      attempt: 1,
      rare: { interrupted_attempts: 1 },
      runStatus: 'accepted',
    })
    expect(world.task('b')).toMatchObject({ status: 'pending', attempt: 0 })

    world.executor.holds = false
    world.newScheduler().resume(world.graphs[0]!)
    await world.over()
    expect(world.task('a')).toMatchObject({ status: 'success', attempt: 3, usedAttempts: 2 })
    expect(world.task('b').status).toBe('success')
  })

  test('need not wait any longer once it is told so', async () => {
    const world = new World()
    world.submit([task('a', { hangs: true })])
    await world.executing(1)
    const stopping = world.scheduler.stop(3_600_000)
    world.scheduler.interrupt()
    await stopping
    expect(world.task('a').status).toBe('pending')
  })

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
