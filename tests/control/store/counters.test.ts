/** Goal: the counters tell what happened since the start, once each. Method: changes applied one by one to a store. */
import { describe, expect, test } from 'bun:test'
import type { Task } from '../../../control/graph/graph.ts'
import { Counters } from '../../../control/store/counters.ts'
import { TaskStore } from '../../../control/store/tasks.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { acceptGraph, graphOf, taskIn } from '../../support/graph.ts'

const at = Date.UTC(2026, 0, 1)
const failure = { code: 'timeout', message: 'late' } as const

function counted() {
  const store = new TaskStore()
  return {
    store,
    counters: new Counters(store),
    start: (task: Task) => store.apply({ kind: 'attempt-started', task, at }),
    succeed: (task: Task) => store.apply({ kind: 'ended', task, at, ending: { status: 'success', result: null } }),
    fail: (task: Task) =>
      store.apply({ kind: 'ended', task, at, ending: { status: 'failed', failure, error: 'late' } }),
    skip: (task: Task) =>
      store.apply({ kind: 'ended', task, at, ending: { status: 'skipped', error: 'dependency a failed' } }),
  }
}

describe('the counters', () => {
  test('begin at zero', () => {
    const { counters } = counted()
    expect(counters).toMatchObject({ tasksTotal: 0, tasksRunning: 0, byType: new Map() })
    expect(counters.ended).toEqual({ success: 0, failed: 0, skipped: 0, cancelled: 0 })
  })

  test('count accepted tasks by their stored type, refused ones not at all', () => {
    const { store, counters } = counted()
    acceptGraph(store, [
      { id: 'a', type: 'shell' },
      { id: 'b', type: 'os.file' },
      { id: 'c', type: 'mcp' },
    ])
    acceptGraph(store, [{ id: 'd', type: 'http' }])
    expect(() => acceptGraph(store, [{ id: 'a', type: 'mcp' }])).toThrow('task already active: a')
    expect(counters.tasksTotal).toBe(4)
    expect([...counters.byType]).toEqual([
      ['os', 3],
      ['mcp', 1],
    ])
  })

  test('count a task as running from its first attempt to its end, retries and all', () => {
    const { store, counters, start, succeed, fail } = counted()
    const { tasks } = acceptGraph(store, [
      { id: 'a', type: 'test', retry: 1 },
      { id: 'b', type: 'test' },
    ])
    const [a, b] = tasks as [Task, Task]
    start(a)
    start(b)
    expect(counters.tasksRunning).toBe(2)
    store.apply({ kind: 'attempt-failed', task: a, at, failure })
    expect(counters.tasksRunning).toBe(2)
    start(a)
    expect(counters.tasksRunning).toBe(2)
    fail(a)
    succeed(b)
    expect(counters.tasksRunning).toBe(0)
    expect(counters.ended).toMatchObject({ success: 1, failed: 1 })
  })

  test('take an interrupted task for one that does not run, and count it again when it goes on', () => {
    const { store, counters, start, succeed } = counted()
    const task = acceptGraph(store, [{ id: 'a', type: 'test' }]).tasks[0]!
    start(task)
    store.apply({ kind: 'attempt-interrupted', reason: 'stopped', task, at })
    expect(counters.tasksRunning).toBe(0)
    start(task)
    expect(counters.tasksRunning).toBe(1)
    succeed(task)
    expect(counters).toMatchObject({ tasksTotal: 1, tasksRunning: 0, ended: { success: 1 } })
  })

  test('count skipped and cancelled tasks as neither succeeded nor failed', () => {
    const { store, counters, start, skip } = counted()
    const graph = acceptGraph(store, [
      { id: 'a', type: 'test' },
      { id: 'b', type: 'test' },
      { id: 'c', type: 'test' },
    ])
    const cancel = (task: Task) =>
      store.apply({
        kind: 'ended',
        task,
        at,
        ending: {
          status: 'cancelled',
          failure: { code: 'cancelled', message: 'task cancelled' },
          error: 'task cancelled',
        },
      })
    skip(taskIn(graph, 'a'))
    cancel(taskIn(graph, 'b'))
    start(taskIn(graph, 'c'))
    store.apply({ kind: 'cancel-requested', task: taskIn(graph, 'c'), at })
    expect(counters.tasksRunning).toBe(1)
    cancel(taskIn(graph, 'c'))
    expect(counters.tasksRunning).toBe(0)
    expect(counters.ended).toEqual({ success: 0, failed: 0, skipped: 1, cancelled: 2 })
  })

  test('count a deleted task as running until it has ended', () => {
    const { store, counters, start, succeed } = counted()
    const task = acceptGraph(store, [{ id: 'a', type: 'test' }]).tasks[0]!
    start(task)
    store.apply({ kind: 'deleted', task, at })
    expect(counters.tasksRunning).toBe(1)
    succeed(task)
    expect(counters).toMatchObject({ tasksTotal: 1, tasksRunning: 0, ended: { success: 1 } })
  })

  test('count recovered tasks only when they end', () => {
    const { store, counters, start, succeed } = counted()
    const graph = graphOf([{ id: 'a', type: 'test' }])
    runSync(store.recover(graph))
    expect(counters).toMatchObject({ tasksTotal: 0, byType: new Map() })
    start(taskIn(graph, 'a'))
    expect(counters.tasksRunning).toBe(1)
    succeed(taskIn(graph, 'a'))
    expect(counters).toMatchObject({ tasksTotal: 0, tasksRunning: 0, ended: { success: 1 } })
    expect([...counters.byType]).toEqual([])
  })
})
