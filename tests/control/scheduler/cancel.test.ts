/**
 * Goal: a cancel ends the task and skips its dependents, whatever the task is doing. Method: cancels of tasks that wait, run,
 * back off and have ended.
 */
import { describe, expect, test } from 'bun:test'
import { FanOut, newChildren, type Task } from '../../../control/graph/graph.ts'
import { nextTurn, runSync } from '../../../shared/process/steps.ts'
import { acceptGraph } from '../../support/graph.ts'
import { after, task, World } from '../../support/scheduler-world.ts'
import { until } from '../../support/until.ts'

/** Gives a pending task the children that an earlier run of the service has made. */
function makeChildren(parent: Task): void {
  const fanOut: FanOut = new FanOut(parent, [1, 2], 2)
  parent.fanOut = fanOut
  parent.graph.addChildren(fanOut, runSync(newChildren(fanOut)))
  parent.graph.live += 2
}

describe('a cancel', () => {
  test('of a pending task ends it and gives all that it takes along, in the order in which they are reached', async () => {
    const world = new World({ maxConcurrency: 1 })
    world.submit([
      task('busy', { hangs: true }),
      task('a'),
      task('c', {}, after('b')),
      task('b', {}, after('a')),
      task('d', {}, after('busy')),
    ])
    await world.executing(1)
    const skipped = await world.scheduler.cancel(world.task('a'))
    expect(skipped.map(({ id }) => id)).toEqual(['b', 'c'])
    expect(world.graphs[0]!.tasks.map(({ id, status, errorText }) => [id, status, errorText])).toEqual([
      ['busy', 'running', undefined],
      ['a', 'cancelled', 'task cancelled'],
      ['c', 'skipped', 'dependency b skipped'],
      ['b', 'skipped', 'dependency a cancelled'],
      ['d', 'pending', undefined],
    ])
    expect(world.executor.starts.map(({ id }) => id)).toEqual(['busy'])
    await world.scheduler.stop(0)
  })

  test('of a running task ends it once its executor has returned, with no further attempt', async () => {
    const world = new World()
    world.submit([task('a', { hangs: true }, { retry: 3 }), task('b', {}, after('a'))])
    await world.executing(1)
    expect(await world.scheduler.cancel(world.task('a'))).toEqual([])
    expect(world.task('a')).toMatchObject({ status: 'cancelling', runStatus: 'running' })
    expect(world.task('b').status).toBe('pending')
    await world.over()
    expect(world.task('a')).toMatchObject({
      status: 'cancelled',
      attempt: 1,
      failure: { code: 'cancelled', message: 'task cancelled' },
      result: 'stopped',
    })
    expect(world.task('b').errorText).toBe('dependency a cancelled')
    expect(world.counters.ended).toMatchObject({ success: 0, failed: 0, cancelled: 1, skipped: 1 })
  })

  test('of a task between two attempts ends it at once', async () => {
    const world = new World()
    world.submit([task('a', { outcomes: ['fail'] }, { retry: 1 }), task('b', {}, after('a'))])
    expect(world.task('a').isBackingOff).toBe(true)
    const skipped = await world.scheduler.cancel(world.task('a'))
    expect(skipped.map(({ id }) => id)).toEqual(['b'])
    expect(world.task('a').status).toBe('cancelled')
    // One that waits as long from now on is due later than the cancelled one would have been.
    world.submit([task('later', { outcomes: ['fail'] }, { retry: 1 })])
    await world.over()
    expect(world.executor.startsOf('a')).toHaveLength(1)
  })

  test('of a task with for_each ends its children too, also before a restart has come to it', async () => {
    const world = new World()
    const graph = acceptGraph(world.store, [task('map', {}, { for_each: [1, 2] }), task('b', {}, after('map'))])
    makeChildren(graph.tasks[0]!)
    await world.scheduler.cancel(graph.tasks[0]!)
    world.scheduler.resume(graph)
    await until(
      () => graph.live,
      (live) => live === 0,
    )
    expect(graph.tasks.map(({ id, status }) => [id, status])).toEqual([
      ['map', 'cancelled'],
      ['b', 'skipped'],
      ['map[0]', 'cancelled'],
      ['map[1]', 'cancelled'],
    ])
    expect(world.executor.starts).toEqual([])
  })

  test('of a task that has ended changes nothing', async () => {
    const world = new World()
    world.submit([task('a')])
    const { seq } = world.store
    expect(await world.scheduler.cancel(world.task('a'))).toEqual([])
    expect(world.store.seq).toBe(seq)
  })

  test('gives all 100,000 tasks that it takes along, whatever else goes on', async () => {
    const world = new World({ maxConcurrency: 1 })
    world.submit([task('busy', { hangs: true })])
    await world.executing(1)
    const rest = Array.from({ length: 100_000 }, (_, i) => task(`t${i}`, {}, after(i % 2 === 0 ? 'a' : `t${i - 1}`)))
    world.submit([task('a'), ...rest])
    let isOver = false
    const cancelling = world.scheduler.cancel(world.task('a')).finally(() => {
      isOver = true
    })
    for (let i = 0; !isOver; i++) {
      world.submit([task(`other ${i}`)])
      await nextTurn()
    }
    expect(await cancelling).toHaveLength(rest.length)
    await world.scheduler.stop(0)
  })
})
