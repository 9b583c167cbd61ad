/** Goal: an answer that is no status of a task is told apart, and the field that is wrong is named. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { statusFault } from '../../../../control/executors/runtime/answer-checks.ts'

const status = { task_id: 'a', status: 'failed', stdout: '', stderr: '', error: { code: 'timeout', message: 'why' } }

test.each([
  [
    'no status',
    { ...status, status: undefined },
    'status: expected one of accepted, running, success, failed, cancelled',
  ],
  ['an unknown status', { ...status, status: 'exploded' }, 'got "exploded"'],
  ['a number as stdout', { ...status, stdout: 5 }, 'stdout: expected string, got number'],
  ['a list as stderr', { ...status, stderr: [1] }, 'stderr: expected string, got array'],
  ['a text as exit code', { ...status, exit_code: 'x' }, 'exit_code: expected whole number of 0 or more, got "x"'],
  ['a text as error', { ...status, error: 'why' }, 'error: expected object, got "why"'],
  ['a number as code', { ...status, error: { code: 5 } }, 'error.code: expected string, got number'],
  ['the status of another task', { ...status, task_id: 'b' }, 'task_id: it is of another task, "b"'],
  ['an object as message', { ...status, error: { message: {} } }, 'error.message: expected string, got object'],
])('%s', (_, answer, fault) => {
  expect(statusFault(answer, 'a')).toContain(fault)
})

test.each([
  ['whole', status],
  ['of a newer service', { ...status, error: { code: 'struck_by_lightning', message: 'why', more: 1 }, more: {} }],
  ['with nothing but its state', { status: 'success' }],
  ['with null in the place of absent values', { status: 'success', stdout: null, exit_code: null, error: null }],
])('a status that is %s', (_, answer) => {
  expect(statusFault(answer, 'a')).toBeUndefined()
})

test('a long wrong value is cut', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 6, maxLength: 10_000 }), (text) => {
      expect(statusFault({ status: `${text}!` }, 'a')!.length).toBeLessThan(800)
    }),
  )
})
