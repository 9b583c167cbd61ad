/**
 * Goal: a task that waits for too long loses that attempt, and nothing else.
 * Method: one slot, which a task holds that the test ends.
 */
import { describe, expect, test } from 'bun:test'
import { ExecutionError } from '../../../control/executors/executor.ts'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { task, World } from '../../support/scheduler-world.ts'
import { until } from '../../support/until.ts'

const ended = (world: World, id: string) =>
  until(
    () => world.task(id),
    ({ isTerminal }) => isTerminal,
  )

const missed = (world: World, id: string) =>
  until(
    () => world.task(id),
    ({ rare }) => rare.isBackingOff === true,
  )

/** An executor whose attempts last until `end`. */
function held(end: Promise<unknown>, started: string[]): ExecutorRegistry {
  const execute = ({ id }: { readonly id: string }) => {
    started.push(id)
    return end
  }
  return new ExecutorRegistry([{ type: 'test', execute }])
}

const LONG_BACKOFF = { initial_ms: 600_000, max_ms: 600_000 }

describe('with fail_fast, a child', () => {
  test('that is about to be cancelled misses no attempt', async () => {
    const others = Array.from({ length: 1_000 }, (_, i) => task(`other${i}`, { hangs: true }))
    const world = new World({ maxConcurrency: 1 }, ({ id }) => {
      if (id === 'map[0]') steps.next() // between two steps of a cancel, no child is cancelled
    })
    const first = world.submit([task('first', { hangs: true })])
    await world.executing(1)
    const queue_timeout = 1_500 // what comes before the end of `late` takes so long on no machine
    const map = { for_each: [1, 2], fail_fast: true, queue_timeout, retry: 1, backoff: LONG_BACKOFF }
    world.submit([task('map', { outcomes: ['fail'] }, { ...map, retry_on: ['timeout'] })])
    await until(() => world.scheduler.queueLength, 2)
    const graph = world.submit([
      task('blocker', { hangs: true }),
      task('late', {}, { queue_timeout }),
      ...others.map((other) => ({ ...other, depends_on: ['blocker'] })),
    ])
    const steps = world.scheduler.cancelAll(graph.tasks.slice(2), () => {})
    await world.scheduler.cancel(first.tasks[0]!)
    await ended(world, 'late')
    expect(world.task('map[1]')).toMatchObject({ status: 'pending', attempt: 0 })
    while (!steps.next().done) world.scheduler.startAgain()
    await ended(world, 'map')
    expect(world.task('map[1]')).toMatchObject({ status: 'cancelled', attempt: 0 })
    await world.scheduler.cancel(world.task('blocker'))
    await world.over()
    expect(world.scheduler.queueLength).toBe(0)
  })

  test.each([
    ['in its backoff', 300],
    ['for a slot', 0],
  ])('that missed its first attempt, and waits %s, does not start', async (_, initial_ms) => {
    const { promise, reject } = Promise.withResolvers()
    const started: string[] = []
    const world = new World({ executors: held(promise, started), maxConcurrency: 1 })
    const waiting = { queue_timeout: 50, retry: 1_000, retry_on: ['timeout' as const], backoff: { initial_ms } }
    world.submit([task('map', {}, { for_each: [1, 2], fail_fast: true, ...waiting })])
    await until(() => started.length, 1)
    await missed(world, 'map[1]')
    reject(new ExecutionError('exit_nonzero', 'exit status 3'))
    await world.over()
    const { status, startedAt, rare } = world.task('map[1]')
    const errorText = rare.error
    expect([status, startedAt, errorText]).toEqual([
      'cancelled',
      undefined,
      'task cancelled: map[0] failed (fail_fast)',
    ])
    expect([started, world.scheduler.queueLength]).toEqual([['map[0]'], 0])
  })
})

test('a child that missed its first attempt does not start once its parent is deleted', async () => {
  const { promise, resolve } = Promise.withResolvers()
  const started: string[] = []
  const world = new World({ executors: held(promise, started), maxConcurrency: 1 })
  const waiting = { queue_timeout: 50, retry: 1_000, backoff: { initial_ms: 0 } }
  world.submit([task('map', {}, { for_each: [1, 2], ...waiting })])
  await until(() => started.length, 1)
  await missed(world, 'map[1]')
  world.scheduler.delete(world.task('map'))
  resolve('done')
  await world.over()
  expect([started, world.task('map[1]').status, world.scheduler.queueLength]).toEqual([['map[0]'], 'cancelled', 0])
})

describe('a task that missed its first attempt', () => {
  test('takes over an outcome of its key when it starts', async () => {
    const { promise, resolve } = Promise.withResolvers()
    const started: string[] = []
    const world = new World({ executors: held(promise, started), maxConcurrency: 1 })
    const cache = { key: 'k' }
    world.submit([task('source', {}, { cache })])
    world.submit([task('late', {}, { cache, queue_timeout: 20, retry: 1_000, backoff: { initial_ms: 0 } })])
    await missed(world, 'late')
    resolve('done')
    await world.over()
    expect(world.task('late')).toMatchObject({ status: 'success', rare: { reused_from: { task_id: 'source' } } })
    expect(started).toEqual(['source'])
  })
})
