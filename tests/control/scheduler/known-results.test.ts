/**
 * Goal: a task whose result is known ends as one that is executed, and only such a task is not executed.
 * Method: two executors that give the same results, one of which knows them.
 */
import { describe, expect, test } from 'bun:test'
import type { Executor } from '../../../control/executors/executor.ts'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import type { SchedulerOptions } from '../../../control/scheduler/scheduler.ts'
import type { TaskInput } from '../../../shared/contract/submission.ts'
import { after, World } from '../../support/scheduler-world.ts'

const RESULT = Object.freeze({ ok: true })

/** Counts the tasks that it executes. */
class Knowing implements Executor {
  readonly type: string = 'test'
  executed: string[] = []
  execute({ id }: { readonly id: string }): unknown {
    this.executed.push(id)
    return RESULT
  }
  knownResult?({ input }: { readonly input: unknown }): unknown
}

const knowing = (): Knowing =>
  Object.assign(new Knowing(), {
    knownResult: ({ input }: { readonly input: unknown }) => (input === undefined ? RESULT : undefined),
  })

const worldOf = (executor: Executor, options: Partial<SchedulerOptions> = {}) =>
  new World({ executors: new ExecutorRegistry([executor]), ...options })

const TASKS: readonly TaskInput[] = [
  { id: 'a', type: 'test' },
  { id: 'b', type: 'test', ...after('a') },
  { id: 'c', type: 'test', ...after('a') },
  { id: 'd', type: 'test', ...after('b', 'c') },
]

/** What is left of a graph that has run. */
async function traceOf(executor: Executor, options?: Partial<SchedulerOptions>) {
  const world = worldOf(executor, options)
  const graph = world.submit([...TASKS])
  await world.over()
  const { ended, tasksRunning, tasksTotal, taskSeconds } = world.counters
  const tasks = graph.tasks.map(
    ({ id, status, runStatus, attempt, result, rare, startedAt, attemptStartedAt, finishedAt }) => ({
      ...{ id, status, runStatus, attempt, result, failure: rare.failure },
      ...{ hasTimes: [startedAt, attemptStartedAt, finishedAt].every((time) => typeof time === 'number') },
    }),
  )
  const { live, storedBytes, endedAt } = graph
  return {
    tasks,
    live,
    storedBytes,
    hasEnded: endedAt !== undefined,
    ended,
    tasksRunning,
    tasksTotal,
    count: taskSeconds.count,
  }
}

describe('a task with a known result', () => {
  test('ends as one that is executed', async () => {
    const executor = knowing()
    const known = await traceOf(executor)
    expect(known).toEqual(await traceOf(new Knowing()))
    expect(known.tasks.map(({ status }) => status)).toEqual(['success', 'success', 'success', 'success'])
    expect(executor.executed).toEqual([])
  })

  test('fails where its graph has no room for the result, as one that is executed', async () => {
    const known = await traceOf(knowing(), { maxGraphResultBytes: 8 })
    expect(known).toEqual(await traceOf(new Knowing(), { maxGraphResultBytes: 8 }))
    expect(known.tasks[0]!.failure?.code).toBe('resource_limit_exceeded')
  })

  test('starts in no slot that another task has', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const executor = Object.assign(knowing(), { execute: () => promise })
    const world = worldOf(executor, { maxConcurrency: 1 })
    world.submit([{ id: 'slow', type: 'test', input: {} }])
    world.submit([{ id: 'quick', type: 'test' }])
    expect(world.task('quick').status).toBe('pending')
    resolve()
    await world.over()
    expect(world.task('quick').status).toBe('success')
  })

  test.each<[string, TaskInput]>([
    ['an input', { input: {} }],
    ['another attempt', { retry: 1 }],
    ['a time limit', { timeout: 60_000 }],
    ['a bound of its wait', { queue_timeout: 60_000 }],
    ['a key for its outcome', { cache: { key: 'k' } }],
  ])('is executed if it has %s', async (_, more) => {
    const executor = knowing()
    const world = worldOf(executor)
    world.submit([{ id: 'a', type: 'test', ...more }])
    await world.over()
    expect(executor.executed).toEqual(['a'])
    expect(world.task('a')).toMatchObject({ status: 'success', attempt: 1, result: RESULT })
  })

  test('is executed by an executor with hooks', async () => {
    const called: string[] = []
    const executor = Object.assign(knowing(), { beforeExecute: () => void called.push('before') })
    const world = worldOf(executor)
    world.submit([{ id: 'a', type: 'test' }])
    await world.over()
    expect({ called, executed: executor.executed }).toEqual({ called: ['before'], executed: ['a'] })
  })

  test('is executed if asking for the result fails', async () => {
    const executor = Object.assign(new Knowing(), {
      knownResult: () => {
        throw new Error('broken')
      },
    })
    const world = worldOf(executor)
    world.submit([{ id: 'a', type: 'test' }])
    await world.over()
    expect(executor.executed).toEqual(['a'])
  })
})
