/** Goal: children start once their list is on disk, at most as many as may, and nothing of it is lost or done twice. */
import { describe, expect, test } from 'bun:test'
import type { Graph, Task } from '../../../control/task/graph.ts'
import { taskIn } from '../../support/graph.ts'
import { memoryKeeper } from '../../support/memory-keeper.ts'
import { after, task, World } from '../../support/scheduler-world.ts'
import { until } from '../../support/until.ts'

const statuses = ({ tasks }: Graph) => tasks.map(({ id, status }) => `${id} ${status}`)

/** A journal that takes the list of a task when the test says so. */
class HeldJournal {
  readonly lists: { readonly id: string; readonly count: number }[] = []
  #answer: PromiseWithResolvers<void> | undefined

  readonly keepFanOut = (task: Task, { count }: { readonly count: number }): Promise<void> => {
    this.lists.push({ id: task.id, count })
    this.#answer = Promise.withResolvers<void>()
    return this.#answer.promise
  }

  async asked(times: number): Promise<void> {
    await until(() => this.lists.length, times)
  }

  takes(): void {
    this.#answer!.resolve()
  }

  refuses(): void {
    this.#answer!.reject(new Error('the disk is full'))
  }
}

const map = (more: object = {}) => task('map', {}, { for_each: [1, 2, 3], ...more })

describe('the list of a task', () => {
  test('is on disk before its children exist; a journal that refuses it is asked again', async () => {
    const journal = new HeldJournal()
    const world = new World({ keeper: memoryKeeper({}, journal) })
    const graph = world.submit([map()], undefined, { scope: 'graph' })
    await journal.asked(1)
    expect([statuses(graph), world.store.taskCount]).toEqual([['map pending'], 1])
    journal.refuses()
    await journal.asked(2)
    expect([statuses(graph), world.executor.starts.length]).toEqual([['map pending'], 0])
    journal.takes()
    await world.over()
    expect(journal.lists).toEqual([
      { id: 'map', count: 3 },
      { id: 'map', count: 3 },
    ])
    expect(statuses(graph)).toEqual(['map success', 'map[0] success', 'map[1] success', 'map[2] success'])
    expect([world.store.taskCount, world.executor.starts.length]).toEqual([4, 3])
    expect(world.counters).toMatchObject({ tasksTotal: 4, tasksRunning: 0, ended: { success: 4 } })
  })

  test('is of no use if the task was cancelled or deleted before it was on disk', async () => {
    for (const end of ['cancel', 'delete'] as const) {
      const journal = new HeldJournal()
      const world = new World({ keeper: memoryKeeper({}, journal) })
      const graph = world.submit([map(), task('next', {}, after('map'))], undefined, { scope: 'graph' })
      await journal.asked(1)
      void world.scheduler[end](taskIn(graph, 'map'))
      journal.takes()
      await world.over()
      const state = end === 'cancel' ? 'cancelled' : 'pending'
      expect(statuses(graph)).toEqual([`map ${state}`, 'next skipped'])
      expect(world.executor.starts).toEqual([])
    }
  })

  test('is of no use if the task is cancelled in the moment in which it is on disk', async () => {
    for (let jobs = 0; jobs < 8; jobs++) {
      const journal = new HeldJournal()
      const world = new World({ keeper: memoryKeeper({}, journal) })
      const slow = task('map', { turns: 1 }, { for_each: [1, 2] })
      const graph = world.submit([slow], undefined, { scope: 'graph' })
      await journal.asked(1)
      journal.takes()
      for (let job = 0; job < jobs; job++) await undefined
      void world.scheduler.cancel(taskIn(graph, 'map'))
      await world.over()
      expect([world.scheduler.fault, graph.submitted[0]!.status]).toEqual([undefined, 'cancelled'])
    }
  })

  test('is not asked for again once the scheduler stops', async () => {
    const journal = new HeldJournal()
    const world = new World({ keeper: memoryKeeper({}, journal) })
    const graph = world.submit([map()], undefined, { scope: 'graph' })
    await journal.asked(1)
    await world.scheduler.stop(0)
    journal.takes()
    await Bun.sleep(0)
    expect(statuses(graph)).toEqual(['map pending'])
  })
})

describe('children', () => {
  test('are found by their ids, also in a graph that becomes too large to be searched', async () => {
    const world = new World()
    const before = Array.from({ length: 200 }, (_, i) => task(`t${i}`))
    for (const options of [{ scope: 'graph' as const }, undefined]) {
      const graph = world.submit([...before, map({ for_each: Array(100).fill(1) })], undefined, options)
      await world.over()
      for (const { id } of graph.tasks) expect(world.store.taskIn(graph, id)?.id).toBe(id)
      expect(world.store.get('map[0]')).toBeUndefined()
      expect([...world.store.visibleTasks([graph])].length).toBe(options === undefined ? 201 : 0)
      expect([...world.store.recordedTasks([graph])].length).toBe(301)
    }
  })

  test('run at most as many at a time as there are slots, and as max_parallel says, 10,000 of them', async () => {
    for (const [max_parallel, peak] of [
      [3, 3],
      [undefined, 10],
    ]) {
      const world = new World()
      const for_each = Array(10_000).fill(1)
      world.submit([task('map', { turns: 1 }, { for_each, ...(max_parallel !== undefined && { max_parallel }) })])
      await world.over()
      expect(world.executor.peak).toBe(peak!)
      expect(world.counters.ended).toMatchObject({ success: 10_001 })
    }
  })

  test('in the midst of a cancel of their graph start no more', async () => {
    const world = new World()
    const graph = world.submit([
      task('map', { hangs: true }, { for_each: Array(2_000).fill(1), max_parallel: 5 }),
      task('clean', {}, { ...after('map'), run_if: 'always' }),
    ])
    await world.executing(5)
    const steps = world.scheduler.cancelAll([...graph.tasks], () => {})
    // Other graphs make the scheduler take turns between the steps.
    while (!steps.next().done) world.scheduler.startAgain()
    await world.over()
    expect(world.counters.ended).toMatchObject({ cancelled: 2_002 })
    expect(world.executor.starts).toHaveLength(5)
  })
})
