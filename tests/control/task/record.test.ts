/** Goal: a task's record on the wire in every state. Method: tasks set into a state by hand, whole records compared. */
import { describe, expect, test } from 'bun:test'
import { taskRecord } from '../../../control/task/record.ts'
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

  test('never has a negative duration, whatever the clock did', () => {
    const { task } = made()
    Object.assign(task, { status: 'success', attempt: 1, startedAt: AT, attemptStartedAt: AT, finishedAt: AT - 5_000 })
    expect(taskRecord(task).runtime?.duration_ms).toBe(0)
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
