/**
 * Goal: a deleted record is invisible at once, and its dependents end as its attempt did, or are skipped. Method: deletes of
 * tasks that wait, run and have ended.
 */
import { describe, expect, test } from 'bun:test'
import { acceptGraph } from '../../support/graph.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { after, task, World } from '../../support/scheduler-world.ts'

describe('a delete', () => {
  test('of a pending task keeps it from running and skips its dependents', async () => {
    const world = new World({ maxConcurrency: 1 })
    world.submit([
      task('busy', { hangs: true }),
      task('a'),
      task('b', {}, after('a')),
      task('c', {}, after('b')),
      task('d'),
    ])
    await world.executing(1)
    const a = world.task('a')
    world.scheduler.delete(a)
    expect(world.store.get('a')).toBeUndefined()
    expect(world.graphs[0]!.tasks.slice(2, 4).map(({ errorText }) => errorText)).toEqual([
      'dependency a deleted',
      'dependency b skipped',
    ])
    void world.scheduler.cancel(world.task('busy'))
    await world.over()
    expect(world.executor.starts.map(({ id }) => id)).toEqual(['busy', 'd'])
    expect(a.status).toBe('pending')
  })

  test('of a running task lets it go on and release its dependents, and frees its id at its end', async () => {
    const world = new World()
    world.submit([task('a', { turns: 5 }), task('b', {}, after('a'))])
    await world.executing(1)
    world.scheduler.delete(world.task('a'))
    expect(world.store.get('a')).toBeUndefined()
    expect(() => acceptGraph(world.store, [task('a')])).toThrow('task already active: a')
    await world.over()
    expect(world.task('a').status).toBe('success')
    expect(world.task('b').status).toBe('success')
    world.submit([task('a')])
    await world.over()
    expect(world.store.get('a')?.status).toBe('success')
  })

  test('of a running task that fails skips its dependents as ever', async () => {
    const world = new World()
    world.submit([task('a', { turns: 5, outcomes: ['fail'] }), task('b', {}, after('a'))])
    await world.executing(1)
    world.scheduler.delete(world.task('a'))
    await world.over()
    expect(world.task('b').errorText).toBe('dependency a failed')
  })

  test('of a task that ended changes nothing for those that wait for it', async () => {
    const world = new World()
    world.submit([task('a'), task('slow', { turns: 20 }), task('b', {}, after('a', 'slow'))])
    expect(world.task('a').status).toBe('success')
    world.scheduler.delete(world.task('a'))
    await world.over()
    expect(world.task('b').status).toBe('success')
  })

  test('of the last live task ends its graph', async () => {
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
})
