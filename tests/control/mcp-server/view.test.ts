/** Tasks as the tools show them: never more than there is room for. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { MAX_RESULTS_CHARACTERS, ResultRoom, viewWithResult, waitAnswer } from '../../../control/mcp-server/view.ts'
import { ResultFile } from '../../../control/rules/result-file.ts'
import type { Task } from '../../../control/task/graph.ts'
import { TASK_STATUSES } from '../../../shared/contract/task-status.ts'
import { graphOf, taskOf } from '../../support/graph.ts'

const withState = (task: Task, state: Partial<Task>): Task => Object.assign(task, state)

test('results together never have more characters than an answer has room for', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(12_000), { maxLength: 12 }), (sizes) => {
      const room = new ResultRoom()
      const results = sizes.map((size) => 'x'.repeat(size)).filter((result) => room.takes(result))
      const characters = results.reduce((sum, result) => sum + JSON.stringify(result).length, 0)
      expect(characters).toBeLessThanOrEqual(MAX_RESULTS_CHARACTERS)
      expect(results.every((result) => result.length <= 8_000)).toBe(true)
      if (sizes.length > 0 && sizes.every((size) => size < 2_000)) expect(results.length).toBe(sizes.length)
    }),
  )
})

test('text that is longer as JSON counts as that', () => {
  expect(new ResultRoom().takes('"'.repeat(7_000))).toBe(true)
  const room = new ResultRoom(40_000)
  expect(room.takes('\u0001'.repeat(6_000))).toBe(false)
})

test('a result in a file is pointed at', () => {
  const task = withState(taskOf({ id: 'a "b"' }), { status: 'success', result: new ResultFile('1-0-1.json') })
  expect(viewWithResult(task, new ResultRoom()).result_omitted).toBe('call get_logs with {"task_id": "a \\"b\\""}')
})

test('what did not succeed comes first, and the counts are those of all', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...TASK_STATUSES), { minLength: 1, maxLength: 250 }), (statuses) => {
      const graph = graphOf(statuses.map((_, i) => ({ id: `t${i}`, type: 'os' })))
      for (const [i, status] of statuses.entries()) withState(graph.tasks[i]!, { status })
      const answer = waitAnswer(graph.tasks)
      expect(Object.values(answer.counts).reduce((sum, count) => sum + count, 0)).toBe(statuses.length)
      expect(answer.tasks.length + (answer.tasks_omitted ?? 0)).toBe(statuses.length)
      expect(answer.tasks.length).toBeLessThanOrEqual(100)
      const failed = statuses.filter((status) => status === 'failed').length
      const first = answer.tasks.slice(0, failed).map(({ status }) => status)
      expect(first).toEqual(Array(Math.min(failed, 100)).fill('failed'))
      expect(answer.all_terminal).toBe(answer.next === undefined)
    }),
  )
})
