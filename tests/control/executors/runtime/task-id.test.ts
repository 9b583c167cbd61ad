/** Goal: an id that the runtime service takes, the same for the same attempt and another for any other. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { runtimeTaskId } from '../../../../control/executors/runtime/task-id.ts'

const GRAPH = 'be627f09-f864-41fc-89c4-5ee518c0fcf6'

test.each([
  ['build', GRAPH, 1, `build-${GRAPH}-1`],
  ['a.b_c-D9', GRAPH, 12, `a.b_c-D9-${GRAPH}-12`],
])('of a name that fits has that name: %s', (task, graph, attempt, id) => {
  expect(runtimeTaskId(task, graph, attempt)).toBe(id)
})

const name = fc.oneof(
  fc.string({ minLength: 1, maxLength: 300, unit: 'binary' }),
  fc.constantFrom('a b', 'a_b', 'a/b', '.', '..', 'x'.repeat(90), 'x'.repeat(91), `${'x'.repeat(400)}y`),
)
const attempt = fc.tuple(name, fc.oneof(fc.uuid(), name), fc.integer({ min: 1, max: 10_000 }))

test('is what the runtime service takes', () => {
  fc.assert(
    fc.property(attempt, (of) => {
      expect(runtimeTaskId(...of)).toMatch(/^[A-Za-z0-9_.-]{1,128}$/)
      expect(runtimeTaskId(...of)).toEndWith(`-${of[2]}`)
      expect(runtimeTaskId(...of)).toBe(runtimeTaskId(...of))
    }),
  )
})

test('differs where the task, its graph or its attempt does', () => {
  fc.assert(
    fc.property(attempt, attempt, ([taskA, graphA, a], [taskB, graphB, b]) => {
      // The graph is a UUID wherever it is ours.
      fc.pre(taskA !== taskB || a !== b)
      expect(runtimeTaskId(taskA, GRAPH, a)).not.toBe(runtimeTaskId(taskB, GRAPH, b))
      fc.pre(graphA !== graphB && /^[0-9a-f-]{36}$/.test(graphA) && /^[0-9a-f-]{36}$/.test(graphB))
      expect(runtimeTaskId(taskA, graphA, 1)).not.toBe(runtimeTaskId(taskA, graphB, 1))
    }),
  )
})
