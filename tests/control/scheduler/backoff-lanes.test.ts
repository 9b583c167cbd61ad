/** Goal: a waiting task is given back when it is due, not before, and never lost. Method: short waits on the real clock. */
import { describe, expect, test } from 'bun:test'
import type { Task } from '../../../control/graph/graph.ts'
import { BackoffLanes } from '../../../control/scheduler/backoff-lanes.ts'
import { graphOf } from '../../support/graph.ts'
import { until } from '../../support/until.ts'

const tasksOf = (count: number) =>
  graphOf(Array.from({ length: count }, (_, i) => ({ id: `t${i}`, type: 'test' }))).tasks

/** Lanes whose due tasks are taken as soon as they say so. */
function takenLanes() {
  const taken: { task: Task; at: number }[] = []
  const ready = { push: (task: Task) => void taken.push({ task, at: performance.now() }) }
  const lanes = new BackoffLanes(ready, () => {
    while (lanes.step());
  })
  return { lanes, taken }
}

describe('a task that waits', () => {
  test('is given back once, and not before its time', async () => {
    const { lanes, taken } = takenLanes()
    const added = new Map<Task, number>()
    const delays = [40, 5, 1, 20, 0, 10, 5, 40]
    for (const [i, task] of tasksOf(40).entries()) {
      const delayMs = delays[i % delays.length]!
      added.set(task, performance.now() + delayMs)
      lanes.add(task, delayMs)
    }
    await until(
      () => taken.length,
      (count) => count >= 40,
    )
    expect(new Set(taken.map(({ task }) => task)).size).toBe(40)
    for (const { task, at } of taken) expect(at).toBeGreaterThanOrEqual(added.get(task)!)
    expect(lanes.step()).toBe(false)
  })

  test('comes before those that began later to wait as long', async () => {
    const { lanes, taken } = takenLanes()
    const tasks = tasksOf(50)
    for (const task of tasks) lanes.add(task, 5)
    await until(
      () => taken.length,
      (count) => count >= 50,
    )
    expect(taken.map(({ task }) => task)).toEqual(tasks)
  })

  test('is not held up by one that waits longer and was there before', async () => {
    const { lanes, taken } = takenLanes()
    const [long, short] = tasksOf(2)
    lanes.add(long!, 3_600_000)
    lanes.add(short!, 1)
    await until(
      () => taken.length,
      (count) => count === 1,
    )
    expect(taken[0]!.task).toBe(short!)
    lanes.stop()
  })

  test('is given back although others were due and taken by the way', async () => {
    const { lanes, taken } = takenLanes()
    const [first, second, third] = tasksOf(3)
    lanes.add(second!, 10)
    lanes.add(first!, 0)
    // Taken without being woken: the timer that was set for it must still serve the others.
    await until(
      () => lanes.step() || taken.length > 0,
      (hasTaken) => hasTaken,
    )
    expect(taken[0]!.task).toBe(first!)
    lanes.add(third!, 10)
    await until(
      () => taken.map(({ task }) => task.id),
      (ids) => ids.includes('t1') && ids.includes('t2'),
    )
  })

  test('is forgotten when the lanes stop', async () => {
    const { lanes, taken } = takenLanes()
    for (const task of tasksOf(3)) lanes.add(task, 1)
    lanes.stop()
    const after = tasksOf(1)[0]!
    const later = takenLanes()
    later.lanes.add(after, 5)
    await until(
      () => later.taken.length,
      (count) => count === 1,
    )
    expect(taken).toEqual([])
    expect(lanes.step()).toBe(false)
  })
})
