/**
 * Goal: cancelling all of a large graph holds nobody up. Method: the real store and scheduler; pauses are counted instead of
 * times.
 */
import { describe, expect, test } from 'bun:test'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { cancelTasks } from '../../../control/operations/cancel.ts'
import { Scheduler } from '../../../control/scheduler/scheduler.ts'
import { TaskStore } from '../../../control/store/tasks.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { STEPS_PER_YIELD } from '../../../shared/process/steps.ts'
import { acceptGraph } from '../../support/graph.ts'
import { memoryKeeper } from '../../support/memory-keeper.ts'
import { ScriptedExecutor } from '../../support/scripted-executor.ts'

const COUNT = 10_000
const tasksOf = (prefix: string, more: object = {}) =>
  Array.from({ length: COUNT }, (_, i) => ({ id: `${prefix}${i}`, type: 'test', ...more }))

const keeper = { assertWritableWithReserve: () => {}, kept: async () => {} }

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

  test('gives each task and its status, and ends with all of them ended', async () => {
    const { store, executor, scheduler, graph } = world()
    await Bun.sleep(0)
    const running = executor.executing
    expect(running).toBe(3)
    const [first] = graph.tasks
    const entries = await cancelTasks({ store, scheduler, keeper }, { graph_id: graph.id })
    expect(entries.map(({ id }) => id)).toEqual(graph.tasks.map(({ id }) => id))
    expect(entries.filter(({ status }) => status === 'cancelling').length).toBe(running)
    expect(entries.filter(({ status }) => status === 'cancelled').length).toBe(2 * COUNT - running)
    expect(entries[0]).toEqual({ id: first!.id, status: 'cancelling' })
    while (graph.live > 0) await new Promise(setImmediate)
    expect(graph.tasks.every(({ status }) => status === 'cancelled')).toBe(true)
  })

  test('of one task gives those that are skipped by it after it', async () => {
    const { store, scheduler } = world()
    acceptGraph(store, [
      { id: 'a', type: 'test' },
      { id: 'b', type: 'test', depends_on: ['a'] },
    ])
    const entries = await cancelTasks({ store, scheduler, keeper }, { task_ids: ['a'] })
    expect(entries).toEqual([
      { id: 'a', status: 'cancelled' },
      { id: 'b', status: 'skipped' },
    ])
  })
})
