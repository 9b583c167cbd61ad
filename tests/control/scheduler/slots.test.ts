/**
 * Goal: as many attempts execute as the limit allows, and never more. Method: attempts that hang.
 */
import { describe, expect, test } from 'bun:test'
import { task, World } from '../../support/scheduler-world.ts'
import { until } from '../../support/until.ts'

describe('the limit on attempts', () => {
  test('is used in full and never exceeded; those beyond it are counted as queued', async () => {
    const world = new World({ maxConcurrency: 3 })
    world.submit(Array.from({ length: 2_000 }, (_, i) => task(`t${i}`, { hangs: true })))
    await until(
      () => world.scheduler.queueLength,
      (queued) => queued === 1_024,
    )
    expect(world.executor.executing).toBe(3)
    expect(world.counters.tasksRunning).toBe(3)
    await world.scheduler.stop(0)
    expect(world.executor.starts).toHaveLength(3)
  })

  test('counts attempts of all graphs together', async () => {
    const world = new World({ maxConcurrency: 2 })
    for (const id of ['a', 'b', 'c']) world.submit([task(id, { hangs: true })])
    await world.executing(2)
    expect(world.graphs.map((graph) => graph.tasks[0]!.status)).toEqual(['running', 'running', 'pending'])
    expect(world.scheduler.queueLength).toBe(1)
    await world.scheduler.stop(0)
  })
})
