/** Goal: a waiting task is given back when it is due, not before, never lost, and not once it was removed. Method: short waits on the real clock. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { DueQueue } from '../../../control/scheduler/due-queue.ts'
import type { Task } from '../../../control/task/graph.ts'
import { graphOf } from '../../support/graph.ts'
import { until } from '../../support/until.ts'

const tasksOf = (count: number) =>
  graphOf(Array.from({ length: count }, (_, i) => ({ id: `t${i}`, type: 'test' }))).tasks

/** A queue whose due tasks are taken as soon as it says so. */
function takenFrom() {
  const taken: { task: Task; at: number }[] = []
  const queue = new DueQueue<Task>(
    (task) => void taken.push({ task, at: performance.now() }),
    () => {
      while (queue.step());
    },
  )
  return { queue, taken }
}

describe('a task that waits', () => {
  test('is given back once, and not before its time', async () => {
    const { queue, taken } = takenFrom()
    const added = new Map<Task, number>()
    const delays = [40, 5, 1, 20, 0, 10, 5, 40]
    for (const [i, task] of tasksOf(40).entries()) {
      const delayMs = delays[i % delays.length]!
      added.set(task, performance.now() + delayMs)
      queue.add(task, delayMs)
    }
    await until(
      () => taken.length,
      (count) => count >= 40,
    )
    expect(new Set(taken.map(({ task }) => task)).size).toBe(40)
    for (const { task, at } of taken) expect(at).toBeGreaterThanOrEqual(added.get(task)!)
    expect(queue.step()).toBe(false)
  })

  test('comes before those that began later to wait as long', async () => {
    const { queue, taken } = takenFrom()
    const tasks = tasksOf(50)
    for (const task of tasks) queue.add(task, 5)
    await until(
      () => taken.length,
      (count) => count >= 50,
    )
    expect(taken.map(({ task }) => task)).toEqual(tasks)
  })

  test('is not held up by one that waits longer and was there before', async () => {
    const { queue, taken } = takenFrom()
    const [long, short] = tasksOf(2)
    queue.add(long!, 3_600_000)
    queue.add(short!, 1)
    await until(() => taken.length, 1)
    expect(taken[0]!.task).toBe(short!)
    queue.stop()
  })

  test('is given back although others were due and taken by the way', async () => {
    const { queue, taken } = takenFrom()
    const [first, second, third] = tasksOf(3)
    queue.add(second!, 10)
    queue.add(first!, 0)
    // Taken without being woken: the timer that was set for it must still serve the others.
    await until(() => queue.step() || taken.length > 0)
    expect(taken[0]!.task).toBe(first!)
    queue.add(third!, 10)
    await until(
      () => taken.map(({ task }) => task.id),
      (ids) => ids.includes('t1') && ids.includes('t2'),
    )
  })

  test('comes in the order of due times, whatever the waits are', async () => {
    const { queue, taken } = takenFrom()
    const dueAt = new Map<Task, number>()
    for (const [i, task] of tasksOf(500).entries()) {
      const delayMs = (i * 7919) % 41
      dueAt.set(task, queue.add(task, delayMs).dueAt)
    }
    await until(
      () => taken.length,
      (count) => count >= 500,
    )
    const moments = taken.map(({ task }) => dueAt.get(task)!)
    expect(moments.filter((moment, i) => i > 0 && moment < moments[i - 1]!)).toEqual([])
  })

  test('is forgotten when the queue stops', async () => {
    const { queue, taken } = takenFrom()
    for (const task of tasksOf(3)) queue.add(task, 1)
    queue.stop()
    const after = tasksOf(1)[0]!
    const later = takenFrom()
    later.queue.add(after, 5)
    await until(() => later.taken.length, 1)
    expect(taken).toEqual([])
    expect(queue.step()).toBe(false)
  })

  test('does not come once it was removed, and the others keep their order', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ delay: fc.integer({ min: -1_000, max: -1 }), isRemoved: fc.boolean() }), {
          maxLength: 60,
        }),
        (all) => {
          const taken: number[] = []
          const queue = new DueQueue<number>(
            (i) => void taken.push(i),
            () => {},
          )
          const dues = all.map(({ delay }, i) => queue.add(i, delay))
          for (const [i, { isRemoved }] of all.entries()) if (isRemoved) queue.remove(dues[i]!)
          for (const [i, { isRemoved }] of all.entries()) if (isRemoved) queue.remove(dues[i]!) // changes nothing
          while (queue.step());
          queue.stop()
          const kept = [...all.keys()].filter((i) => !all[i]!.isRemoved)
          expect(taken).toEqual(kept.toSorted((a, b) => dues[a]!.dueAt - dues[b]!.dueAt || a - b))
        },
      ),
    )
  })
})
