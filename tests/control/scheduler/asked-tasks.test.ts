/**
 * Goal: an approval counts only within its time, however busy the service is; a wait ends by the first of its times.
 * Method: the class alone, with tasks that an earlier run has asked for.
 */
import { expect, test } from 'bun:test'
import { AskedTasks } from '../../../control/scheduler/asked-tasks.ts'
import { taskOf } from '../../support/graph.ts'

/** Approvals that an earlier run asked for at `askedAt`, of which `arrived` were looked at. */
function asked(askedAt: readonly number[], arrived: number) {
  const expired: string[] = []
  const unexpected = () => {
    throw new Error('nothing else should happen')
  }
  const approvals = new AskedTasks({
    ...{ inputs: { resolve: unexpected }, onAsked: unexpected, onFault: unexpected, onDefect: unexpected },
    onExpired: (task) => expired.push(task.id),
    onMet: unexpected,
    look: unexpected,
    parks: unexpected,
    wake: () => {},
  })
  const tasks = askedAt.map((at, i) => {
    const task = taskOf({ id: `t${i}`, type: 'approval', timeout: 3_000 })
    task.setRare('asked_at', at)
    approvals.push(task)
    return task
  })
  for (let i = 0; i < arrived; i++) approvals.step()
  return { approvals, tasks, expired }
}

test('an approval whose time is over takes no answer, also if nothing has ended it yet', () => {
  const now = Date.now()
  const { approvals, tasks, expired } = asked([now + 60_000, now + 60_000, now - 3_001], 2)
  expect(approvals.isAsked(tasks[0]!)).toBe(true)
  tasks[1]!.setRare('asked_at', now - 3_001) // as if the service had been busy for long
  expect(approvals.isAsked(tasks[1]!)).toBe(false)
  expect(expired).toEqual(['t1'])
  expect(approvals.approvals).toBe(1)
  approvals.stop()
})

test('an approval ends in time while thousands of others arrive', () => {
  const now = Date.now()
  const { approvals, expired } = asked([now - 3_001, ...Array.from({ length: 5_000 }, () => now + 60_000)], 3)
  expect(expired).toEqual(['t0'])
  approvals.stop()
})

test.each<{ until?: number | string; timeout: number; ends: string[] }>([
  { until: 1_000, timeout: 2_000, ends: ['due'] },
  { until: 2_000, timeout: 1_000, ends: ['expired'] },
  { until: 1_000, timeout: 1_000, ends: ['due'] },
  { until: '2001-02-03T04:05:06Z', timeout: 0, ends: ['due'] },
  { timeout: 1_000, ends: ['expired'] },
  { until: 600_000, timeout: 0, ends: [] },
])('a wait until $until with the timeout $timeout, asked for a minute ago: $ends', ({ until, timeout, ends }) => {
  const ended: string[] = []
  const unexpected = () => {
    throw new Error('nothing else should happen')
  }
  const waits = new AskedTasks({
    ...{ inputs: { resolve: unexpected }, onAsked: unexpected, onFault: unexpected, onDefect: unexpected },
    onExpired: () => ended.push('expired'),
    onMet: () => ended.push('due'),
    look: unexpected,
    parks: unexpected,
    wake: () => {},
  })
  const task = taskOf({ id: 'w', type: 'wait', timeout, params: until === undefined ? {} : { until } })
  task.setRare('asked_at', Date.now() - 60_000)
  waits.push(task)
  while (waits.step());
  expect(ended).toEqual(ends)
  expect(waits.isAsked(task)).toBe(ends.length === 0)
  expect(waits.approvals).toBe(0)
  waits.stop()
})

test('a paused one is not asked for', () => {
  const unexpected = () => {
    throw new Error('nothing should happen')
  }
  const parked: string[] = []
  const asked = new AskedTasks({
    ...{ inputs: { resolve: unexpected }, onAsked: unexpected, onFault: unexpected, onDefect: unexpected },
    ...{ onExpired: unexpected, onMet: unexpected, look: unexpected, wake: () => {} },
    parks: ({ id }) => parked.push(id) > 0,
  })
  asked.push(taskOf({ id: 'a', type: 'approval', input: {} }))
  while (asked.step());
  expect([parked, asked.approvals]).toEqual([['a'], 0])
  asked.stop()
})
