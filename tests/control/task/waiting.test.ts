/** Goal: a task that does not execute says why. Method: tasks put into states, by a table. */
import { describe, expect, test } from 'bun:test'
import type { Graph } from '../../../control/task/graph.ts'
import { type SlotUse, waitingOf } from '../../../control/task/waiting.ts'
import { MAX_WAITING_GRAPHS, MAX_WAITING_TASKS } from '../../../shared/contract/waiting.ts'
import { isoTime } from '../../../shared/text/iso-time.ts'
import { graphOf, taskIn, taskOf } from '../../support/graph.ts'

const NOW = Date.parse('2026-01-31T12:00:00.000Z')
const BUSY: SlotUse = { taken: 4, count: 4, hold: undefined, paused: new Map() }

const waits = (graph: Graph, id: string) => waitingOf(taskIn(graph, id), BUSY, NOW)

/** What the scheduler does when a task succeeds. */
function succeed(graph: Graph, id: string): void {
  const task = taskIn(graph, id)
  task.status = 'success'
  for (let i = 0; i < graph.dependentCount(task); i++) graph.missing[graph.dependent(task, i).position]!--
}

describe('a pending task', () => {
  const diamond = () =>
    graphOf([
      { id: 'a', type: 'test' },
      { id: 'b', type: 'test' },
      { id: 'c', type: 'test', depends_on: ['a', 'b', 'a'] },
    ])

  test('waits for the dependencies that have not succeeded, each named once', () => {
    const graph = diamond()
    expect(waits(graph, 'c')).toEqual({ reason: 'dependencies', tasks: ['a', 'b'] })
    succeed(graph, 'a')
    expect(waits(graph, 'c')).toEqual({ reason: 'dependencies', tasks: ['b'] })
    succeed(graph, 'b')
    expect(waits(graph, 'c')?.reason).toBe('concurrency')
  })

  test('names the first of many dependencies, and their number', () => {
    const many = Array.from({ length: 30 }, (_, i) => ({ id: `d${i}`, type: 'test' }))
    const graph = graphOf([...many, { id: 'last', type: 'test', depends_on: many.map(({ id }) => id) }])
    succeed(graph, 'd0')
    expect(waits(graph, 'last')).toEqual({
      reason: 'dependencies',
      tasks: many.slice(1, 1 + MAX_WAITING_TASKS).map(({ id }) => id),
      detail: '29 tasks have to succeed first',
    })
  })

  test('waits for a place of the group of its graph before anything else', () => {
    const graph = graphOf(
      [
        { id: 'c', type: 'test' },
        { id: 'd', type: 'test', depends_on: ['c'] },
      ],
      NOW,
      undefined,
      {
        concurrency: { group: 'g' },
      },
    )
    const holders = Array.from({ length: MAX_WAITING_GRAPHS + 1 }, () => graphOf([{ id: 'a', type: 'test' }]))
    graph.waitsFor = new Set(holders)
    const graphs = holders.slice(0, MAX_WAITING_GRAPHS).map(({ id }) => id)
    for (const id of ['c', 'd']) expect(waits(graph, id)).toEqual({ reason: 'group', group: 'g', graphs })
  })

  test('waits for a slot, or says why none is given', () => {
    const task = taskOf({})
    expect(waitingOf(task, BUSY, NOW)).toEqual({
      reason: 'concurrency',
      detail: '4 of 4 slots are taken (--max-concurrency)',
    })
    expect(waitingOf(task, { ...BUSY, hold: 'the service is stopping' }, NOW)).toEqual({
      reason: 'concurrency',
      detail: 'the service is stopping',
    })
  })
})

describe('a running task', () => {
  const failedAt = (at: number, more: object = {}) =>
    Object.assign(taskOf({ retry: 3 }), {
      ...{ status: 'running', attempt: 2 },
      rare: { isBackingOff: true, attempts: [{ attempt: 2, finished_at: isoTime(at) }], ...more },
    })

  test('waits for the end of its backoff, then for a slot', () => {
    const task = failedAt(NOW - 50)
    expect(waitingOf(task, BUSY, NOW)).toEqual({
      reason: 'backoff',
      until: isoTime(NOW + 150),
      detail: 'attempt 3 of 4 follows',
    })
    expect(waitingOf(task, BUSY, NOW + 149)?.reason).toBe('backoff')
    expect(waitingOf(task, BUSY, NOW + 150)?.reason).toBe('concurrency')
  })

  test('counts interrupted attempts, which use up no retry', () => {
    expect(waitingOf(failedAt(NOW, { interrupted_attempts: 1 }), BUSY, NOW)).toEqual({
      reason: 'backoff',
      until: isoTime(NOW + 100),
      detail: 'attempt 3 of 5 follows',
    })
  })

  test('does not wait while it executes', () => {
    expect(waitingOf(failedAt(NOW, { isBackingOff: undefined }), BUSY, NOW)).toBeUndefined()
  })
})

test.each(['cancelling', 'success', 'failed', 'skipped', 'cancelled'] as const)(
  'a task that is %s does not wait',
  (status) => {
    expect(waitingOf(Object.assign(taskOf({}), { status }), BUSY, NOW)).toBeUndefined()
  },
)
