/**
 * Goal: the journal gives back the state of each task, whether it has a row of its own or shares one.
 * Method: states written out, then random tasks together and each alone.
 */

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { decodeStates, encodeStates, groupsOf } from '../../../control/log/journaled-state.ts'
import { ResultFile } from '../../../control/rules/result-file.ts'
import type { Task } from '../../../control/task/graph.ts'
import { NO_RARE_STATE } from '../../../control/task/rare-state.ts'
import { TASK_STATUSES } from '../../../shared/contract/task-status.ts'
import { graphOf } from '../../support/graph.ts'

const statesIn = (tasks: readonly Task[]) => decodeStates(encodeStates(groupsOf(tasks))).states

const NOW = Date.parse('2026-01-02T03:04:05.678Z')

/** Tasks of one graph, in the states given. */
function tasksIn(states: readonly Partial<Task>[]): Task[] {
  const graph = graphOf(states.map((_, i) => ({ id: `task-${i}`, type: 'test' })))
  return graph.tasks.map((task, i) => Object.assign(task, { seq: 10 + i }, states[i]))
}

const ended = {
  status: 'success',
  attempt: 1,
  startedAt: NOW,
  attemptStartedAt: NOW,
  updatedAt: NOW,
  finishedAt: NOW,
} as const

describe('a state in the journal', () => {
  test.each<[string, Partial<Task>, object]>([
    ['pending', { updatedAt: NOW }, { status: 'pending', updated_at: NOW }],
    [
      'pending, and its condition was met',
      { updatedAt: NOW, rare: { condition_met: true } },
      { status: 'pending', condition_met: true, updated_at: NOW },
    ],
    [
      'pending, and waits for an approval since',
      { updatedAt: NOW, rare: { asked_at: NOW - 7 } },
      { status: 'pending', asked_at: NOW - 7, updated_at: NOW },
    ],
    [
      'running, the second time',
      { status: 'running', attempt: 2, startedAt: NOW - 500, attemptStartedAt: NOW - 20, updatedAt: NOW },
      {
        status: 'running',
        run_status: 'running',
        attempt: 2,
        updated_at: NOW,
        started_at: NOW - 500,
        attempt_started_at: NOW - 20,
      },
    ],
    [
      'successful without a result',
      { ...ended, result: null },
      {
        status: 'success',
        run_status: 'success',
        attempt: 1,
        result: null,
        updated_at: NOW,
        started_at: NOW,
        finished_at: NOW,
        attempt_started_at: NOW,
      },
    ],
    [
      'failed with a result, a report and an interrupted attempt',
      {
        ...ended,
        status: 'failed',
        attempt: 3,
        result: { exit: 2 },
        rare: {
          interrupted_attempts: 1,
          failure: { code: 'exit_nonzero', message: 'no' },
          error: 'no, thrice',
          progress: [{ timestamp: 't', message: 'half' }],
          attempts: [{ attempt: 1, error: 'no', exit_code: 2, tail: 'last' }],
        },
      },
      {
        status: 'failed',
        run_status: 'failed',
        attempt: 3,
        interrupted_attempts: 1,
        result: { exit: 2 },
        error: 'no, thrice',
        progress: [{ timestamp: 't', message: 'half' }],
        attempts: [{ attempt: 1, error: 'no', exit_code: 2, tail: 'last' }],
        updated_at: NOW,
        started_at: NOW,
        finished_at: NOW,
        attempt_started_at: NOW,
        failure: { code: 'exit_nonzero', message: 'no' },
      },
    ],
    [
      'deleted, with its result in a file',
      { ...ended, result: new ResultFile('1-0-1.json'), removal: 'deleted' },
      {
        status: 'success',
        run_status: 'success',
        attempt: 1,
        result_file: '1-0-1.json',
        deleted: true,
        updated_at: NOW,
        started_at: NOW,
        finished_at: NOW,
        attempt_started_at: NOW,
      },
    ],
  ])('of a task that is %s', (_, state, expected) => {
    const [task] = tasksIn([state])
    expect(statesIn([task!])).toEqual([
      { id: 'task-0', seq: 10, graph_ordinal: task!.graph.ordinal, ...expected } as never,
    ])
  })

  test('of a deleted task that goes on elsewhere has all that a restart needs to submit it again', () => {
    const fields = {
      ...{ params: { script: 'true' }, secrets: { A: 'a', B: { name: 'b', file: 'c' } }, queue_timeout: 9 },
      ...{ retry: 2, retry_on: ['timeout' as const], backoff: { initial_ms: 1 }, timeout: 7, annotations: { x: 'y' } },
    }
    const [task] = graphOf([{ id: 'a', type: 'runtime.script', ...fields }]).tasks
    const handle = { id: 'h', isTaken: false }
    Object.assign(task!, { ...ended, status: 'running', finishedAt: undefined, removal: 'deleted', rare: { handle } })
    expect(statesIn([task!])[0]?.record).toMatchObject({ type: 'runtime', tool_name: 'script', ...fields })
  })

  test('is the same in a row of its own and in one that neighbours share', () => {
    const shared = [null, 'x', { ok: true }, undefined]
    const state = fc.record({
      status: fc.constantFrom(...TASK_STATUSES),
      attempt: fc.constantFrom(0, 1, 1, 1),
      removal: fc.constantFrom(undefined, undefined, undefined, 'deleted'),
      updatedAt: fc.constantFrom(NOW, NOW, NOW + 1),
      startedAt: fc.constantFrom(NOW, NOW, undefined),
      finishedAt: fc.constantFrom(NOW, NOW, undefined),
      result: fc.constantFrom(...shared, shared[2], new ResultFile('1-0-1.json')),
      rare: fc.oneof(
        fc.constant(NO_RARE_STATE),
        fc.record({
          interrupted_attempts: fc.constantFrom(undefined, 1),
          isBackingOff: fc.constantFrom(undefined, undefined, true as const),
          condition_met: fc.constantFrom(undefined, undefined, true as const),
          asked_at: fc.constantFrom(undefined, undefined, NOW),
          error: fc.constantFrom(undefined, undefined, undefined, 'skipped'),
        }),
      ),
    })
    fc.assert(
      fc.property(
        fc.array(fc.tuple(state, fc.integer({ min: 1, max: 4 })), { minLength: 1, maxLength: 12 }),
        (runs) => {
          const tasks = tasksIn(runs.flatMap(([each, count]) => new Array(count).fill(each)))
          expect(statesIn(tasks)).toEqual(tasks.flatMap((task) => statesIn([task])))
        },
      ),
    )
  })

  test('of a task of another graph has a row of its own', () => {
    const tasks = [...tasksIn([ended]), ...tasksIn([ended])]
    expect(statesIn(tasks).map((state) => state.graph_ordinal)).toEqual(tasks.map((task) => task.graph.ordinal))
  })

  test('takes little room where many tasks end alike', () => {
    const result = { ok: true, message: '' }
    const tasks = tasksIn(new Array(1_000).fill({ ...ended, result }))
    expect(encodeStates(groupsOf(tasks)).length).toBeLessThan(20 * tasks.length)
    expect(statesIn(tasks).map(({ id, seq, result }) => ({ id, seq, result }))).toEqual(
      tasks.map(({ id, seq }) => ({ id, seq, result })),
    )
  })
})
