/**
 * Goal: waiting for a task of a large graph, and cancelling all of one, holds nobody up. Method: the real store and
 * scheduler; listeners are counted, and pauses, instead of times.
 */
import { describe, expect, spyOn, test } from 'bun:test'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import type { Task } from '../../../control/graph/graph.ts'
import { cancelTasks } from '../../../control/operations/cancel.ts'
import { namedTasks } from '../../../control/operations/named-tasks.ts'
import { waitForTasks } from '../../../control/operations/wait.ts'
import { Scheduler } from '../../../control/scheduler/scheduler.ts'
import { TaskStore } from '../../../control/store/tasks.ts'
import { silentLog } from '../../../shared/log.ts'
import { STEPS_PER_YIELD } from '../../../shared/steps.ts'
import { acceptGraph } from '../../support/graph.ts'
import { ScriptedExecutor } from '../../support/scripted-executor.ts'

const COUNT = 10_000
const tasksOf = (prefix: string, more: object = {}) =>
  Array.from({ length: COUNT }, (_, i) => ({ id: `${prefix}${i}`, type: 'test', ...more }))

const persistence = { flush: () => {}, assertWritable: () => {}, durable: async () => {} }
const end = (store: TaskStore, task: Task) => {
  store.apply({ kind: 'attempt-started', task, at: 1 })
  store.apply({ kind: 'ended', task, at: 2, ending: { status: 'success', result: null } })
}

const isSettled = (promise: Promise<unknown>): Promise<boolean> =>
  Promise.race([promise.then(() => true), Bun.sleep(0).then(() => false)])

describe('a wait for any task', () => {
  function world() {
    const store = new TaskStore()
    const graph = acceptGraph(store, tasksOf('t'))
    const caller = new AbortController()
    const parts = { store, persistence, stopping: new AbortController().signal }
    const context = { signal: caller.signal, report: () => {} }
    /** Begins a wait; it is under way when this resolves. */
    const wait = async (named: { task_ids?: string[]; graph_id?: string }) => {
      const tasks = await namedTasks(store, named)
      return { end: waitForTasks(parts, tasks, { until: 'any', timeoutMs: 60_000 }, context, () => {}) }
    }
    return { store, graph, caller, wait }
  }

  test.each<[string, (id: string) => { task_ids?: string[]; graph_id?: string }]>([
    ['of a graph', (graph_id) => ({ graph_id })],
    ['of a thousand', () => ({ task_ids: Array.from({ length: 1_000 }, (_, i) => `t${i}`) })],
  ])('%s has one listener on its signal, and ends with the first', async (_, named) => {
    const { store, graph, wait } = world()
    using added = spyOn(AbortSignal.prototype, 'addEventListener')
    using removed = spyOn(AbortSignal.prototype, 'removeEventListener')
    const waiting = (await wait(named(graph.id))).end
    const isOver = await isSettled(waiting)
    expect(isOver).toBe(false)
    end(store, graph.tasks[999]!)
    await waiting
    expect(added.mock.calls.length).toBeLessThanOrEqual(1)
    expect(removed.mock.calls.length).toBeLessThanOrEqual(1)
  })

  test('ends with the deletion of one, with its caller, and at once where one has ended', async () => {
    const { store, graph, caller, wait } = world()
    const deleted = await wait({ graph_id: graph.id })
    store.apply({ kind: 'deleted', task: graph.tasks[5]!, at: 1 })
    await deleted.end
    const gone = await wait({ graph_id: graph.id })
    expect(await isSettled(gone.end)).toBe(false)
    caller.abort()
    await gone.end
    end(store, graph.tasks[7]!)
    await (await wait({ graph_id: graph.id })).end
  })

  test('goes on when a task ends that is not waited for', async () => {
    const { store, graph, wait } = world()
    const waiting = (await wait({ task_ids: ['t1', 't2'] })).end
    end(store, graph.tasks[3]!)
    expect(await isSettled(waiting)).toBe(false)
    end(store, graph.tasks[2]!)
    await waiting
  })
})

describe('a cancel of a graph', () => {
  function world() {
    const store = new TaskStore()
    const executor = new ScriptedExecutor()
    const scheduler = new Scheduler({
      ...{ store, executors: new ExecutorRegistry([executor]), log: silentLog(), maxConcurrency: 3 },
      ...{ abandonAfterMs: 60_000, serviceId: 'test', flushOrThrow: () => {}, flush: () => {} },
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
    const entries = await cancelTasks({ store, scheduler, persistence }, { graph_id: graph.id })
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
    const entries = await cancelTasks({ store, scheduler, persistence }, { task_ids: ['a'] })
    expect(entries).toEqual([
      { id: 'a', status: 'cancelled' },
      { id: 'b', status: 'skipped' },
    ])
  })
})
