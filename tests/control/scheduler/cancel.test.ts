/**
 * Goal: a cancel takes children and all dependents along, whatever else goes on, and holds nobody up: pauses are counted
 * instead of times. tests/contract/cancel.test.ts has the rest.
 */
import { describe, expect, test } from 'bun:test'
import { FanOut } from '../../../control/task/fan-out.ts'
import type { Task } from '../../../control/task/graph.ts'
import { newChildren } from '../../../control/task/new-children.ts'
import { nextTurn, runSync, STEPS_PER_YIELD } from '../../../shared/process/steps.ts'
import { acceptGraph } from '../../support/graph.ts'
import { endingsOf } from '../../support/ruled-graph.ts'
import { after, task, World } from '../../support/scheduler-world.ts'
import { until } from '../../support/until.ts'

/** Gives a pending task the children that an earlier run of the service has made. */
function makeChildren(parent: Task): void {
  const fanOut: FanOut<Task> = new FanOut(parent, [1, 2], 2)
  parent.fanOut = fanOut
  parent.graph.addChildren(fanOut, runSync(newChildren(fanOut)))
  parent.graph.live += 2
}

describe('a cancel', () => {
  test('of a task with for_each ends its children too, also before a restart has come to it', async () => {
    const world = new World()
    const graph = acceptGraph(world.store, [task('map', {}, { for_each: [1, 2] }), task('b', {}, after('map'))])
    makeChildren(graph.tasks[0]!)
    await world.scheduler.cancel(graph.tasks[0]!)
    world.scheduler.resume(graph)
    await until(() => graph.live, 0)
    expect(graph.tasks.map(({ id, status }) => [id, status])).toEqual([
      ['map', 'cancelled'],
      ['b', 'skipped'],
      ['map[0]', 'cancelled'],
      ['map[1]', 'cancelled'],
    ])
    expect(world.executor.starts).toEqual([])
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

  test('of a large graph pauses after every few hundred tasks, and starts none of them in between', async () => {
    const world = new World({ maxConcurrency: 3 })
    const count = 10_000
    const tasksOf = (prefix: string, script: object, more: object = {}) =>
      Array.from({ length: count }, (_, i) => task(`${prefix}${i}`, script, more))
    const graph = world.submit([...tasksOf('running', { hangs: true }), ...tasksOf('waiting', {}, after('running0'))])
    const started = world.executor.starts.length
    const cancelled: string[] = []
    const steps = world.scheduler.cancelAll(graph.tasks, ({ id }) => cancelled.push(id))
    let pauses = 0
    let step = steps.next()
    for (; !step.done; step = steps.next()) {
      pauses++
      await new Promise(setImmediate)
    }
    expect(pauses).toBeGreaterThanOrEqual((2 * count) / STEPS_PER_YIELD)
    expect(await step.value.skipped).toEqual([])
    expect(cancelled.length).toBe(2 * count)
    expect(world.executor.starts.length).toBe(started)
  })

  test('of a graph that its group refuses late leaves nothing to do at its end', async () => {
    const world = new World()
    const { on_end, tasks } = endingsOf(['always'])
    const options = { scope: 'graph', on_end, concurrency: { group: 'g', on_full: 'refuse' } } as const
    const waits = ({ graph }: Task) => {
      graph.waitsFor = new Set([{ id: 'another' }])
    }
    const graph = world.submit([task('a'), ...tasks], waits, options)
    world.scheduler.groups.onCancel(graph, 'another')
    await world.over()
    expect(graph.tasks.map(({ status }) => status)).toEqual(['cancelled', 'cancelled'])
  })
})
