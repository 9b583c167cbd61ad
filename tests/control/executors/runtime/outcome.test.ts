/** Goal: each end and each refusal of the runtime service becomes the outcome that stands for it. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ExecutionError } from '../../../../control/executors/executor.ts'
import {
  failureOf,
  isRefusal,
  MAX_RESULT_STREAM_BYTES,
  outcomeOf,
  resultOf,
} from '../../../../control/executors/runtime/outcome.ts'
import { REFUSAL_CODES, TASK_ERROR_CODES, type TaskStatusResponse } from '../../../../shared/contract/runtime.ts'
import { CallFailed } from '../../../../shared/http/client.ts'

const URL = 'http://127.0.0.1:18080'
const PLACE = { name: 'default', url: URL }

const statusOf = (more: Partial<TaskStatusResponse>) =>
  ({
    ...{ task_id: 'a-1', handle_id: 'a-1', status: 'success', stdout: '', stderr: '', exit_code: 0 },
    ...{ stdout_truncated: false, stderr_truncated: false, ...more },
  }) as TaskStatusResponse

function thrownBy(work: () => unknown): ExecutionError {
  try {
    work()
  } catch (error) {
    if (error instanceof ExecutionError) return error
  }
  throw new Error('nothing was thrown, or something else')
}

test.each([...TASK_ERROR_CODES])('the code of a task that did not succeed is kept: %s', (code) => {
  const status = statusOf({ status: 'failed', error: { code, message: 'why', details: { step: 'x' } } })
  const error = thrownBy(() => outcomeOf(status, PLACE))
  expect(error).toMatchObject({ code, message: 'why', source: 'runtime', details: { step: 'x' } })
  expect(error.result).toEqual(resultOf(status, PLACE))
})

test('a code of a newer service is unknown, and one that is missing too', () => {
  const newer = statusOf({ status: 'failed', error: { code: 'struck_by_lightning' as never, message: 'why' } })
  expect(thrownBy(() => outcomeOf(newer, PLACE))).toMatchObject({ code: 'unknown', message: 'why' })
  expect(thrownBy(() => outcomeOf(statusOf({ status: 'failed' }), PLACE))).toMatchObject({
    ...{ code: 'unknown', message: 'the task ended as failed' },
  })
})

describe('output', () => {
  test('is the beginning of what was there, cut between two characters', () => {
    fc.assert(
      fc.property(
        fc.nat(5),
        fc.constantFrom('a', 'ß', '測', '😀'),
        fc.integer({ min: -3, max: 3 }),
        (lead, unit, more) => {
          const size = Buffer.byteLength(unit)
          const stdout = 'x'.repeat(lead) + unit.repeat(Math.ceil(MAX_RESULT_STREAM_BYTES / size) + more)
          const cut = resultOf(statusOf({ stdout }), PLACE)
          const isMore = Buffer.byteLength(stdout) > MAX_RESULT_STREAM_BYTES
          expect(stdout.startsWith(cut.stdout!)).toBe(true)
          expect([cut.truncated, cut.stdout_truncated]).toEqual([isMore, isMore])
          expect(Buffer.byteLength(cut.stdout!)).toBeLessThanOrEqual(MAX_RESULT_STREAM_BYTES)
          if (isMore) expect(Buffer.byteLength(cut.stdout!)).toBeGreaterThan(MAX_RESULT_STREAM_BYTES - size)
          else expect(cut.stdout).toBe(stdout)
        },
      ),
      { numRuns: 50 },
    )
  })

  test('that was cut there already is cut here too', () => {
    expect(resultOf(statusOf({ stderr: 'e', stderr_truncated: true }), PLACE)).toMatchObject({
      ...{ stderr: 'e', stderr_truncated: true, stdout_truncated: false, truncated: true },
      logs: { stderr: `${URL}/api/v1/tasks/a-1/logs?stream=stderr` },
    })
  })
})

const refusal = (status: number, code: string, details: unknown = null) =>
  new CallFailed('POST /api/v1/tasks answered', {
    statusCode: status,
    body: JSON.stringify({ error: { code, message: 'because', details } }),
  })

describe('a refusal', () => {
  test.each([...REFUSAL_CODES])('has a code of ours, and its own in the details: %s', (code) => {
    const error = failureOf(refusal(400, code, { capability: 'x' }))
    expect(error).toMatchObject({ message: 'because', source: 'runtime' })
    expect(error.details).toEqual({ status_code: 400, code, details: { capability: 'x' } })
    expect(typeof error.retryable).toBe('boolean')
  })

  test.each([
    ['insufficient_resources', 'resource_limit_exceeded', false],
    ['resource_limit_exceeded', 'resource_limit_exceeded', true],
    ['unsupported_capability', 'denied', false],
    ['unavailable', 'external_failure', true],
    ['invalid_input', 'invalid_input', false],
  ])('%s is %s', (code, ours, retryable) => {
    expect(failureOf(refusal(400, code))).toMatchObject({ code: ours, retryable })
  })

  test.each([
    [404, false],
    [500, true],
    [504, true],
  ])('of something that is no runtime service is its own words: %d', (statusCode, retryable) => {
    const error = failureOf(new CallFailed('it answered', { statusCode, body: '<html>' }))
    expect(error).toMatchObject({ code: 'external_failure', message: 'it answered', retryable })
  })

  test('of nobody is a failure that may pass', () => {
    expect(failureOf(new CallFailed('cannot reach'))).toMatchObject({
      ...{ code: 'external_failure', message: 'cannot reach', retryable: true, source: undefined },
    })
  })
})

test.each([
  [429, '{"error":{"code":"resource_limit_exceeded","message":"full"}}', true],
  [503, '{"error":{"code":"unavailable","message":"the service is stopping"}}', true],
  [401, 'no', true],
  [503, 'upstream connect error or disconnect/reset before headers', false],
  [503, '{"error":"no"}', false],
  [502, '', false],
  [504, '<html>', false],
  [500, '', false],
  [0, '', false],
])('an answer %d with %s is a refusal: %p', (statusCode, body, expected) => {
  expect(isRefusal(new CallFailed('x', { statusCode, body }))).toBe(expected)
})
