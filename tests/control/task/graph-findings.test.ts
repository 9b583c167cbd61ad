/**
 * Goal: the summary of a graph, its state, its first failure and what that took with it are as its tasks say.
 * Method: tables of graphs whose tasks are put into states, and a comparison of both ways to a state.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Graph, Task } from '../../../control/task/graph.ts'
import { examineGraph } from '../../../control/task/graph-findings.ts'
import { endState, graphSummary, graphTotals } from '../../../control/task/graph-summary.ts'
import { graphTask } from '../../../control/task/graph-task.ts'
import { commandsAfterFailure, failureTail } from '../../../control/task/root-cause.ts'
import { MAX_GRAPH_EDGES, MAX_GRAPH_ERROR_CHARACTERS, MAX_GRAPH_TASKS } from '../../../shared/contract/graphs.ts'
import { TASK_STATUSES, type TaskStatus } from '../../../shared/contract/task-status.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { isoTime } from '../../../shared/text/iso-time.ts'
import { graphOf, taskIn, taskOf } from '../../support/graph.ts'

const AT = Date.parse('2026-01-31T12:00:00.000Z')

/** A graph with a task in each of these states; ended if all of them are final. */
function graphWith(statuses: readonly TaskStatus[], endedAt?: number): Graph {
  const graph = graphOf(
    statuses.map((_, i) => ({ id: `t${i}`, type: 'test' })),
    AT,
  )
  statuses.forEach((status, i) => {
    graph.tasks[i]!.status = status
  })
  graph.endedAt = endedAt
  return graph
}

const examine = (graph: Graph) => runSync(examineGraph(graph, AT + 1_000))

describe('the state of a graph', () => {
  test.each<[string, TaskStatus[], boolean, string]>([
    ['has not ended', ['success', 'pending'], false, 'running'],
    ['has a failed task and has not ended', ['failed', 'running'], false, 'running'],
    ['succeeded', ['success', 'success'], true, 'success'],
    ['has a failed task', ['success', 'failed', 'skipped', 'cancelled'], true, 'failed'],
    ['has a cancelled task', ['success', 'cancelled', 'skipped'], true, 'cancelled'],
    ['has a skipped task', ['success', 'skipped'], true, 'cancelled'],
  ])('that %s', (_, statuses, isEnded, state) => {
    expect(runSync(graphSummary(graphWith(statuses, isEnded ? AT : undefined))).state).toBe(state as never)
  })

  test('is the same with and without counting', () => {
    const ends = fc.constantFrom<TaskStatus>('success', 'failed', 'skipped', 'cancelled')
    fc.assert(
      fc.property(fc.array(ends, { minLength: 1, maxLength: 600 }), fc.array(fc.nat(599)), (statuses, deleted) => {
        const graph = graphWith(statuses, AT)
        for (const i of deleted) if (graph.tasks[i] !== undefined) graph.tasks[i]!.removal = 'deleted'
        expect(runSync(endState(graph))).toBe(runSync(graphSummary(graph)).state as never)
      }),
    )
  })
})

describe('the summary of a graph', () => {
  test('counts tasks by state, without those that were deleted', () => {
    const graph = graphWith([...TASK_STATUSES, 'success', 'failed'])
    graph.tasks.at(-1)!.removal = 'deleted'
    const { task_count, counts } = runSync(graphSummary(graph))
    expect(task_count).toBe(TASK_STATUSES.length + 1)
    expect(counts).toEqual({ pending: 1, running: 1, success: 2, failed: 1, skipped: 1, cancelling: 1, cancelled: 1 })
  })

  test('counts a task as in its backoff until that is over', () => {
    const graph = graphWith(['running', 'running', 'pending'])
    Object.assign(graph.tasks[0]!, {
      attempt: 1,
      rare: { isBackingOff: true, attempts: [{ finished_at: isoTime(AT) }] },
    })
    const waitingAt = (at: number) => runSync(graphTotals(graph, at)).waiting
    expect([waitingAt(AT + 99), waitingAt(AT + 100)]).toEqual([{ backoff: 1 }, {}])
  })

  test('has the times of its first start and its last end', () => {
    const graph = graphWith(['success', 'skipped', 'success'], AT + 900)
    graph.tasks[0]!.startedAt = AT + 300
    graph.tasks[2]!.startedAt = AT + 200
    expect(runSync(graphSummary(graph))).toEqual({
      ...{ graph_id: graph.id, trace_id: graph.traceId, state: 'cancelled', task_count: 3 },
      counts: { success: 2, skipped: 1 },
      ...{ created_at: '2026-01-31T12:00:00.000Z', started_at: '2026-01-31T12:00:00.200Z' },
      ...{ finished_at: '2026-01-31T12:00:00.900Z', duration_ms: 700 },
    })
  })

  test('has no times of what did not happen', () => {
    const running = runSync(graphSummary(graphWith(['pending'])))
    expect(Object.keys(running)).not.toContain('started_at')
    expect(Object.keys(running)).not.toContain('finished_at')
    expect(Object.keys(runSync(graphSummary(graphWith(['cancelled'], AT))))).not.toContain('duration_ms')
  })
})

describe('the first failure', () => {
  /** a -> b -> d, a -> c, e -> c; f stands alone. */
  function failing(ends: Readonly<Record<string, readonly [TaskStatus, number]>>): Graph {
    const graph = graphOf([
      { id: 'a', type: 'test' },
      { id: 'b', type: 'test', depends_on: ['a'] },
      { id: 'c', type: 'test', depends_on: ['a', 'e'] },
      { id: 'd', type: 'test', depends_on: ['b', 'b'] },
      { id: 'e', type: 'test' },
      { id: 'f', type: 'test' },
    ])
    for (const [id, [status, at]] of Object.entries(ends)) {
      Object.assign(taskIn(graph, id), { status, finishedAt: AT + at, seq: at })
    }
    return graph
  }

  test.each<[string, Parameters<typeof failing>[0], [string, number] | undefined]>([
    ['of a graph without one', { a: ['success', 1] }, undefined],
    ['takes what depends on it, and what depends on that', { a: ['failed', 1], ...skipped('b', 'c', 'd') }, ['a', 3]],
    ['takes only what was skipped', { a: ['success', 1], b: ['failed', 2], ...skipped('d') }, ['b', 1]],
    ['is the first in time', { e: ['failed', 5], f: ['failed', 2], ...skipped('c') }, ['f', 0]],
    ['is no cancelled task', { a: ['cancelled', 1], f: ['failed', 3], ...skipped('b', 'c', 'd') }, ['f', 0]],
  ])('%s', (_, ends, expected) => {
    const { failure } = examine(failing(ends))
    expect(failure && [failure.task.id, failure.skipped]).toEqual(expected)
  })

  function skipped(...ids: string[]): Record<string, [TaskStatus, number]> {
    return Object.fromEntries(ids.map((id) => [id, ['skipped', 9]]))
  }

  test('is found the same once the graph has freed its edges', () => {
    const graph = failing({ a: ['failed', 1], ...skipped('b', 'c', 'd') })
    const before = examine(graph)
    graph.releaseEdges()
    const after = examine(graph)
    expect(after.failure).toEqual(before.failure!)
    expect(after.edges).toEqual(before.edges)
    expect(after.shown).toEqual(before.shown)
  })
})

describe('the last lines of a failed task', () => {
  const withAttempts = (...tails: string[]): Task =>
    Object.assign(taskOf({}), { rare: { attempts: tails.map((tail, i) => ({ attempt: i + 1, tail })) } })

  test('are those of its last attempt', () => {
    expect(failureTail(withAttempts('one', 'two'), { stderr: 'other' })).toBe('two')
  })

  test('are those of its result if it had one attempt', () => {
    expect(failureTail(taskOf({}), { stdout: 'out\n', stderr: 'no such file\n', exit_code: 2 })).toBe('no such file')
    expect(failureTail(taskOf({}), undefined)).toBeUndefined()
  })
})

describe('the commands to try next', () => {
  test.each([
    ['build', (graph: string) => `taskmill logs ${graph}/build`],
    ['a b', (graph: string) => `taskmill logs '${graph}/a b'`],
    ["it's; rm -rf $HOME", (graph: string) => `taskmill logs '${graph}/it'\\''s; rm -rf $HOME'`],
  ])('quote the id %p', (id, expected) => {
    const task = taskOf({ id })
    expect(commandsAfterFailure(task)).toEqual([
      expected(task.graph.id),
      expected(task.graph.id).replace('logs', 'get'),
      `taskmill graph ${task.graph.id}`,
    ])
  })

  test('do not name a task whose id a terminal would obey', () => {
    const task = taskOf({ id: '\u001b[2J' })
    expect(commandsAfterFailure(task)).toEqual([`taskmill graph ${task.graph.id}`])
  })
})

describe('the tasks of an answer', () => {
  test('end before the one that is too many', () => {
    const tasks = (count: number) => Array.from({ length: count }, (_, i) => ({ id: `t${i}`, type: 'test' }))
    expect(examine(graphOf(tasks(MAX_GRAPH_TASKS))).isTruncated).toBe(false)
    const { shown, isTruncated } = examine(graphOf(tasks(MAX_GRAPH_TASKS + 1)))
    expect(isTruncated).toBe(true)
    expect(shown.map(({ id }) => id)).toEqual(tasks(MAX_GRAPH_TASKS).map(({ id }) => id))
  })

  test('end before the one with a dependency too many, so that all dependencies are shown', () => {
    const width = 400
    const first = Array.from({ length: width }, (_, i) => ({ id: `a${i}`, type: 'test' }))
    const depends_on = first.map(({ id }) => id)
    const second = Array.from({ length: width }, (_, i) => ({ id: `b${i}`, type: 'test', depends_on }))
    const { shown, isTruncated } = examine(graphOf([...first, ...second]))
    expect(isTruncated).toBe(true)
    expect(shown).toHaveLength(width + MAX_GRAPH_EDGES / width)
  })

  test('leave out those that were deleted', () => {
    const graph = graphWith(['success', 'failed'])
    graph.tasks[1]!.removal = 'deleted'
    const { shown, failure } = examine(graph)
    expect(shown).toEqual([graph.tasks[0]!])
    expect(failure).toBeUndefined()
  })

  test('have what callers need, with an error that is not too long', () => {
    const task = taskOf({ id: 'x', type: 'shell' })
    expect(graphTask(task, AT)).toEqual({ id: 'x', type: 'os', tool_name: 'shell', status: 'pending' })
    Object.assign(task, { status: 'failed', startedAt: AT, finishedAt: AT + 20, attempt: 2 })
    task.setRare('error', 'x'.repeat(2 * MAX_GRAPH_ERROR_CHARACTERS))
    task.setRare('failure', { code: 'timeout', message: 'late' })
    expect(graphTask(task, AT + 50)).toEqual({
      ...{ id: 'x', type: 'os', tool_name: 'shell', status: 'failed', attempt: 2, duration_ms: 20, code: 'timeout' },
      ...{ started_at: '2026-01-31T12:00:00.000Z', finished_at: '2026-01-31T12:00:00.020Z' },
      error: 'x'.repeat(MAX_GRAPH_ERROR_CHARACTERS),
    })
  })

  test('that run have taken as long as until now', () => {
    const task = Object.assign(taskOf({}), { status: 'running', startedAt: AT })
    expect(graphTask(task, AT + 50).duration_ms).toBe(50)
  })
})
