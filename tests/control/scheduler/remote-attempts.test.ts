/**
 * Goal: an attempt in another service goes on there when this one stops, and is ended there when nobody wants it any more.
 * Method: an executor that hands its attempts over and records which of them it is to kill.
 */
import { describe, expect, test } from 'bun:test'
import type { ExecutableTask, Executor, ExecutorContext } from '../../../control/executors/executor.ts'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { Scheduler } from '../../../control/scheduler/scheduler.ts'
import type { Handle } from '../../../control/task/rare-state.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import type { TaskInput } from '../../../shared/contract/submission.ts'
import type { TaskStatus } from '../../../shared/contract/task-status.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { acceptGraph, taskIn } from '../../support/graph.ts'
import { memoryKeeper } from '../../support/memory-keeper.ts'
import { task } from '../../support/scheduler-world.ts'

describe('an attempt that another service carries out', () => {
  const HANDLE = { id: 'there', isTaken: true }

  /** Hands its attempts over, and remembers which of them are to be ended although nobody waits for them. */
  class Elsewhere implements Executor {
    readonly type = 'test'
    readonly boundsItsStop = true
    readonly killed: string[] = []
    readonly #stopped = Promise.withResolvers<void>()
    readonly #isDeaf: boolean

    constructor({ isDeaf = false } = {}) {
      this.#isDeaf = isDeaf
    }

    /** Resolves when an attempt is told to stop. */
    get stopped(): Promise<void> {
      return this.#stopped.promise
    }

    execute(_: ExecutableTask, context: ExecutorContext): Promise<unknown> {
      const { signal } = context
      context.handOver(HANDLE)
      signal.addEventListener('abort', () => this.#stopped.resolve())
      return new Promise((resolve) => {
        if (!this.#isDeaf) signal.addEventListener('abort', () => setImmediate(resolve))
      })
    }

    killRemote(_: ExecutableTask, { id }: Handle): void {
      this.killed.push(id)
    }
  }

  const running = (executor: Elsewhere, more: TaskInput = {}) => {
    const store = new TaskStore()
    const options = { store, maxConcurrency: 1, log: silentLog(), abandonAfterMs: 1, serviceId: 'test' }
    const executors = new ExecutorRegistry([executor])
    const scheduler = new Scheduler({ ...options, executors, keeper: memoryKeeper() })
    const graph = acceptGraph(store, [task('a', {}, more)])
    scheduler.add(graph)
    return { scheduler, a: taskIn(graph, 'a') }
  }

  test('goes on there when the service stops', async () => {
    const executor = new Elsewhere()
    const { scheduler, a } = running(executor)
    await scheduler.stop(0)
    expect(a).toMatchObject({ status: 'pending', rare: { handle: HANDLE } })
    expect(executor.killed).toEqual([])
  })

  test('is ended there when it is cancelled just when the service stops', async () => {
    const executor = new Elsewhere()
    const { scheduler, a } = running(executor)
    const stopping = scheduler.stop(60_000)
    scheduler.interrupt()
    await scheduler.cancel(a)
    expect(a.status).toBe('cancelling')
    await stopping
    expect(a.status).toBe('cancelled')
    expect(executor.killed).toEqual(['there'])
  })

  test.each(['cancelled', 'failed'])('that is not seen to end is ended there once it is %s', async (status) => {
    const executor = new Elsewhere({ isDeaf: true })
    const { scheduler, a } = running(executor, { timeout: status === 'failed' ? 1 : 0 })
    if (status === 'cancelled') await scheduler.cancel(a)
    else await executor.stopped
    await scheduler.stop(0)
    expect(a.status).toBe(status as TaskStatus)
    expect(executor.killed).toEqual(['there'])
  })

  test('is ended there when its record is deleted after its cancel: no restart would know of it', async () => {
    const executor = new Elsewhere()
    const { scheduler, a } = running(executor)
    await scheduler.cancel(a)
    expect(executor.killed).toEqual([])
    scheduler.delete(a)
    expect(executor.killed).toEqual(['there'])
    await scheduler.stop(0)
  })

  test('goes on there when its record is deleted', async () => {
    const executor = new Elsewhere()
    const { scheduler, a } = running(executor)
    scheduler.delete(a)
    await scheduler.stop(0)
    expect(executor.killed).toEqual([])
  })
})
