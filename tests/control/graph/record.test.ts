/** Goal: a task's record on the wire in every state. Method: tasks set into a state by hand, whole records compared. */
import { describe, expect, test } from 'bun:test'
import { taskRecord } from '../../../control/graph/record.ts'
import { isoTime } from '../../../shared/text/iso-time.ts'
import { graphOf } from '../../support/graph.ts'

const AT = Date.UTC(2026, 0, 2, 3, 4, 5, 6)
const AT_TEXT = '2026-01-02T03:04:05.006Z'
const after = (ms: number) => new Date(AT + ms).toISOString()

const made = (input: object = {}) => {
  const graph = graphOf([{ id: 'a', type: 'shell', ...input }], AT)
  return { task: graph.tasks[0]!, graph }
}

describe('the record', () => {
  test('of a pending task has no more than was given', () => {
    const { task, graph } = made()
    const record = {
      id: 'a',
      type: 'os',
      tool_name: 'shell',
      execution_category: 'os',
      retry: 0,
      graph_id: graph.id,
      status: 'pending',
      created_at: AT_TEXT,
      updated_at: AT_TEXT,
    } as const
    expect(taskRecord(task)).toStrictEqual(record)
  })

  test('keeps everything that was given, input beside params', () => {
    const { task } = made({
      params: { command: 'ls' },
      depends_on: [],
      retry: 2,
      timeout: 0,
      annotations: { who: 'me' },
      tool_name: 'ignored',
    })
    expect(taskRecord(task)).toMatchObject({
      tool_name: 'shell',
      params: { command: 'ls' },
      input: { command: 'ls' },
      depends_on: [],
      retry: 2,
      timeout: 0,
      annotations: { who: 'me' },
    })
    const both = made({ params: 1, input: 2 }).task
    expect(taskRecord(both)).toMatchObject({ params: 1, input: 2 })
    const nothing = taskRecord(made({ params: null, input: null, timeout: null, annotations: null }).task)
    expect(Object.keys(nothing)).toEqual(Object.keys(taskRecord(made().task)))
    const inputOnly = taskRecord(made({ input: 0 }).task)
    expect(inputOnly.input).toBe(0)
    expect(inputOnly).not.toHaveProperty('params')
  })

  test('of a running task shows its attempt', () => {
    const { task } = made()
    Object.assign(task, {
      status: 'running',
      attempt: 2,
      startedAt: AT + 1,
      attemptStartedAt: AT + 300,
      updatedAt: AT + 300,
    })
    expect(taskRecord(task)).toMatchObject({
      status: 'running',
      run_status: 'running',
      attempt: 2,
      started_at: after(1),
      updated_at: after(300),
      runtime: { status: 'running', attempt: 2, started_at: after(300) },
    })
    expect(taskRecord(task)).not.toHaveProperty('finished_at')
  })

  test('between two attempts shows what the last one failed of', () => {
    const failure = { code: 'exit_nonzero', message: 'command failed: exit status 1' } as const
    const { task } = made({ retry: 1 })
    Object.assign(task, {
      status: 'running',
      attempt: 1,
      startedAt: AT,
      attemptStartedAt: AT,
      rare: { isBackingOff: true, failure },
    })
    const record = taskRecord(task)
    expect(record).toMatchObject({
      status: 'running',
      run_status: 'accepted',
      runtime: { status: 'accepted', attempt: 1, error: failure },
    })
    expect(record).not.toHaveProperty('error')
  })

  test('of an interrupted task is that of one that waits to go on', () => {
    const { task } = made()
    Object.assign(task, {
      status: 'pending',
      attempt: 1,
      rare: { interrupted_attempts: 1 },
      startedAt: AT,
      attemptStartedAt: AT,
    })
    expect(taskRecord(task)).toMatchObject({ status: 'pending', run_status: 'accepted', attempt: 1 })
  })

  test('of a task that is being cancelled says so in both places', () => {
    const { task } = made()
    Object.assign(task, { status: 'cancelling', attempt: 1, startedAt: AT, attemptStartedAt: AT })
    expect(taskRecord(task)).toMatchObject({
      status: 'cancelling',
      run_status: 'running',
      runtime: { status: 'cancelling' },
    })
  })

  test.each(['success', 'failed', 'cancelled'] as const)(
    'of a task that ran and ended as %s has a duration',
    (status) => {
      const failure = status === 'success' ? undefined : { code: 'timeout', message: 'late' }
      const { task } = made()
      Object.assign(task, {
        ...{ status, attempt: 2, startedAt: AT, attemptStartedAt: AT + 200, finishedAt: AT + 250 },
        ...{ result: { ok: true }, rare: { failure, error: failure && 'task failed after all retries: late' } },
      })
      const record = taskRecord(task)
      expect(record).toMatchObject({ status, run_status: status, result: { ok: true }, finished_at: after(250) })
      expect(record.runtime).toStrictEqual({
        ...{ status, attempt: 2, started_at: after(200), finished_at: after(250), duration_ms: 50 },
        ...(status !== 'success' && { error: { code: 'timeout', message: 'late' } as const }),
      })
      expect(record.error).toBe(failure && 'task failed after all retries: late')
    },
  )

  test('never has a negative duration, whatever the clock did', () => {
    const { task } = made()
    Object.assign(task, { status: 'success', attempt: 1, startedAt: AT, attemptStartedAt: AT, finishedAt: AT - 5_000 })
    expect(taskRecord(task).runtime?.duration_ms).toBe(0)
  })

  test('of a task that never started has neither run_status nor runtime', () => {
    for (const status of ['skipped', 'cancelled'] as const) {
      const { task } = made()
      Object.assign(task, { status, finishedAt: AT + 9, rare: { error: 'dependency b failed' } })
      const record = taskRecord(task)
      expect(record).toMatchObject({ status, error: 'dependency b failed', finished_at: after(9) })
      for (const field of ['run_status', 'runtime', 'attempt', 'started_at']) expect(record).not.toHaveProperty(field)
    }
  })
})

test('times are RFC 3339 in UTC, one after the other', () => {
  expect([AT, AT, AT + 1, AT, 0].map(isoTime)).toEqual([
    AT_TEXT,
    AT_TEXT,
    after(1),
    AT_TEXT,
    '1970-01-01T00:00:00.000Z',
  ])
})
