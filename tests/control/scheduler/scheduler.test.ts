/**
 * Goal: graphs of any size end, and progress belongs to the attempt that reports it. Method: an executor that follows a
 * script.
 */
import { describe, expect, test } from 'bun:test'
import { memoryLog } from '../../support/memory-log.ts'
import { after, task, World } from '../../support/scheduler-world.ts'

describe('a task', () => {
  test('whose type has no executor fails and takes its dependents along', async () => {
    const world = new World()
    world.submit([{ id: 'a', type: 'mcp', retry: 1 }, task('b', {}, after('a')), task('c')])
    await world.over()
    expect(world.task('a')).toMatchObject({
      status: 'failed',
      attempt: 2,
      rare: {
        error: 'task failed after all retries: no executor is registered for type mcp',
        failure: { code: 'internal' },
      },
    })
    expect(world.task('b').rare.error).toBe('dependency a failed')
    expect(world.task('c').status).toBe('success')
  })
})

test('the deletion of the last live task ends its graph', async () => {
  const { log, lines } = memoryLog()
  const world = new World({ maxConcurrency: 1, log })
  world.submit([task('busy', { hangs: true })])
  await world.executing(1)
  world.submit([task('a'), task('b', {}, after('a'))])
  world.scheduler.delete(world.task('a'))
  expect(world.graphs[1]!.live).toBe(0)
  expect(lines().filter((line) => line.msg === 'graph ended')).toHaveLength(1)
  world.scheduler.delete(world.task('b'))
  expect([...world.store.graphs]).toEqual([world.graphs[0]!])
  await world.scheduler.stop(0)
})

describe('large graphs', () => {
  const SIZE = 100_000

  test('run 100,000 tasks in a row, giving way to others all the while', async () => {
    const world = new World()
    let turns = 0
    const counting = setInterval(() => turns++, 1)
    world.submit(Array.from({ length: SIZE }, (_, i) => task(`t${i}`, {}, i === 0 ? {} : after(`t${i - 1}`))))
    await world.over()
    clearInterval(counting)
    expect(world.counters.ended.success).toBe(SIZE)
    expect(turns).toBeGreaterThan(5)
  })

  test('run 100,000 tasks that wait for one and that one waits for', async () => {
    const world = new World()
    const middle = Array.from({ length: SIZE }, (_, i) => task(`t${i}`, {}, after('first')))
    world.submit([task('first'), ...middle, task('last', {}, after(...middle.map(({ id }) => id!)))])
    await world.over()
    expect(world.counters.ended.success).toBe(SIZE + 2)
    expect(world.executor.starts.at(-1)!.id).toBe('last')
  })
})

describe('progress', () => {
  test('is kept in the order of the reports, of an attempt that executes only', async () => {
    const world = new World()
    world.submit([task('a', { hangs: true })])
    await world.executing(1)
    const { context } = world.executor.starts[0]!
    context.progress('first')
    context.progress(undefined, { percent: 50 })
    void world.scheduler.cancel(world.task('a'))
    await world.over()
    context.progress('too late')
    expect(world.task('a').rare.progress).toMatchObject([{ message: 'first' }, { data: { percent: 50 } }])
    expect(world.task('a').rare.progress).toHaveLength(2)
  })

  test('of an attempt that is over does not count as that of the next one', async () => {
    const world = new World({}, ({ attempt }) => {
      if (attempt === 2) world.executor.starts[0]!.context.progress('late word of the first attempt')
    })
    world.submit([task('a', { outcomes: ['fail'] }, { retry: 1 })])
    await world.over()
    expect(world.task('a').attempt).toBe(2)
    expect(world.task('a').rare.progress).toBeUndefined()
  })
})
