/** Goal: a request that is repeated because nobody knows what became of it makes no second graph. */
import { expect, test } from 'bun:test'
import { RequestKey } from '../../../control/dashboard/model/request-key.ts'

test('the same request has the same key until it was answered', () => {
  const key = new RequestKey()
  const first = key.of('/tasks {}')
  expect(first).toMatch(/^[0-9a-f]{32}$/)
  expect(key.of('/tasks {}')).toBe(first)
  key.answered()
  expect(key.of('/tasks {}')).not.toBe(first)
})

test('another request has another key', () => {
  const key = new RequestKey()
  const first = key.of('/tasks {}')
  expect(key.of('/graphs/a/rerun {}')).not.toBe(first)
  expect(new RequestKey().of('/tasks {}')).not.toBe(first)
})
