/**
 * Goal: waiting for a task of a large graph holds nobody up. Method: the real store; listeners are counted instead of times.
 */
import { describe, expect, spyOn, test } from 'bun:test'
import { namedTasks } from '../../../control/operations/named-tasks.ts'
import { waitForTasks } from '../../../control/operations/wait.ts'
import type { Task } from '../../../control/task/graph.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { acceptGraph } from '../../support/graph.ts'
import { operationParts } from '../../support/operation-parts.ts'

const COUNT = 10_000
const tasksOf = (prefix: string) => Array.from({ length: COUNT }, (_, i) => ({ id: `${prefix}${i}`, type: 'test' }))

const keeper = { kept: () => undefined }
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
    const parts = operationParts({ store, keeper })
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
