/**
 * Goal: cancelling all of a large graph holds nobody up. Method: the real store and scheduler; pauses are counted instead of
 * times.
 */
import { describe, expect, test } from 'bun:test'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { Scheduler } from '../../../control/scheduler/scheduler.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { STEPS_PER_YIELD } from '../../../shared/process/steps.ts'
import { acceptGraph } from '../../support/graph.ts'
import { memoryKeeper } from '../../support/memory-keeper.ts'
import { ScriptedExecutor } from '../../support/scripted-executor.ts'

const COUNT = 10_000
const tasksOf = (prefix: string, more: object = {}) =>
  Array.from({ length: COUNT }, (_, i) => ({ id: `${prefix}${i}`, type: 'test', ...more }))

describe('a cancel of a graph', () => {
  function world() {
    const store = new TaskStore()
    const executor = new ScriptedExecutor()
    const scheduler = new Scheduler({
      ...{ store, executors: new ExecutorRegistry([executor]), log: silentLog(), maxConcurrency: 3 },
      ...{ abandonAfterMs: 60_000, serviceId: 'test', keeper: memoryKeeper() },
    })
    const graph = acceptGraph(store, [
      ...tasksOf('running', { params: { hangs: true } }),
      ...tasksOf('waiting', { depends_on: ['running0'] }),
    ])
    scheduler.add(graph)
    return { store, executor, scheduler, graph }
  }

  test('pauses after every few hundred tasks, and starts none of them in between', async () => {
    const { executor, scheduler, graph } = world()
    const started = executor.starts.length
    const cancelled: string[] = []
    const steps = scheduler.cancelAll(graph.tasks, (task) => cancelled.push(task.id))
    let pauses = 0
    let step = steps.next()
    for (; !step.done; step = steps.next()) {
      pauses++
      await new Promise(setImmediate)
    }
    expect(pauses).toBeGreaterThanOrEqual((2 * COUNT) / STEPS_PER_YIELD)
    expect(await step.value.skipped).toEqual([])
    expect(cancelled.length).toBe(2 * COUNT)
    expect(executor.starts.length).toBe(started)
  })
})
