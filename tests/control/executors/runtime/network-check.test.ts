/** Answers of runtime services about the network of a task. */
import { expect, test } from 'bun:test'
import { networkIn } from '../../../../control/executors/runtime/answer-checks.ts'

const usage = { connections_allowed: 1, connections_refused: 0, bytes_sent: 1, bytes_received: 1 }
const connection = { at: 'now', verdict: 'allowed', message: 'it is allowed' }

test.each([
  { open: 0, connections: [], unlisted: 0 },
  { open: 1, connections: [connection], unlisted: 2, usage, newer: 'field' },
])('%j is one', (answer) => {
  expect(networkIn(answer)).toEqual(answer as object as ReturnType<typeof networkIn>)
})

test('a null is an absent field', () => {
  expect(networkIn({ open: 0, connections: [], unlisted: 0, usage: null })).toEqual({
    ...{ open: 0, connections: [], unlisted: 0 },
  })
})

test.each([
  {},
  { open: -1, connections: [], unlisted: 0 },
  { open: 0, connections: [{ ...connection, verdict: '<b>' }], unlisted: 0 },
  { open: 0, connections: [{ ...connection, host: { toString: 1 } }], unlisted: 0 },
  { open: 0, connections: [], unlisted: 0, usage: { ...usage, bytes_sent: '1' } },
])('%j is none', (answer) => {
  expect(networkIn(answer)).toBeUndefined()
})
