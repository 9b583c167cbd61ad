/**
 * Goal: a runtime task is warned of where the runtime service refuses it for its request alone, in the same words, and nowhere else.
 * Method: random inputs, right and wrong ones, go the way of a submission, and as JSON the way of a request; both must agree.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { ExecutionError } from '../../../../control/executors/executor.ts'
import { runtimeRequest } from '../../../../control/executors/runtime/request.ts'
import {
  MAX_REVIEWED_CHARACTERS,
  MAX_REVIEWED_VALUES,
  reviewRequest,
} from '../../../../control/executors/runtime/request-review.ts'
import { acceptableRequest } from '../../../../runtime/plan/request.ts'
import { Refusal } from '../../../../runtime/refusal.ts'
import { executableTask } from '../../../support/executor-context.ts'
import { NEW_TASK_ID, randomRequest } from '../../../support/runtime-requests.ts'

const NOBODY = { tenant: undefined, owner: undefined }

/** What `work` fails with; undefined where it does not. */
function failureOf(work: () => unknown): string | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    if (error instanceof ExecutionError || error instanceof Refusal) return error.message
    throw error
  }
}

const bodyOf = (input: unknown) =>
  runtimeRequest(executableTask({ type: 'runtime', input }), { runtimeId: 'id-1', defaults: NOBODY }).body
const warning = (body: object) => failureOf(() => reviewRequest(body))
const refusal = (body: object) =>
  failureOf(() => acceptableRequest(new TextEncoder().encode(JSON.stringify(body)), NEW_TASK_ID, 'refuse'))

const PARTS = ['execution', 'limits', 'sandbox', 'policy', 'control_context', 'metadata']
const oddValue = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>('', 0, -0, -1, 1.5, 1e308 * 10, -1e308 * 10, '..', '\0', '\ud800', [], [1e308 * 10], {}),
)

test('the warning of a random request is the refusal of the runtime service', () => {
  let faults = 0
  fc.assert(
    fc.property(randomRequest, fc.nat(), fc.nat(), oddValue, (given, pick, innerPick, value) => {
      const input = structuredClone(given)
      const part = PARTS[pick % PARTS.length]!
      const inner = input[part]
      const names = typeof inner === 'object' && inner !== null ? Object.keys(inner) : []
      const name = names[innerPick % (names.length + 1)]
      if (name === undefined) input[part] = value
      else (inner as Record<string, unknown>)[name] = value
      const body = failureOf(() => bodyOf(input)) === undefined ? bodyOf(input) : undefined
      if (body === undefined) return
      const expected = refusal(body)
      if (expected !== undefined) faults++
      expect(warning(body)).toBe(expected)
    }),
    { numRuns: 3_000 },
  )
  expect(faults).toBeGreaterThan(100)
})

test('a request with many values or characters is not looked at, so that it does not hold the event loop', () => {
  const args = (count: number) => bodyOf({ program: 'ls', args: new Array(count).fill(''), limits: { pids_max: 0 } })
  expect(warning(args(MAX_REVIEWED_VALUES / 2))).toBe('limits.pids_max must be greater than 0')
  expect(warning(args(MAX_REVIEWED_VALUES))).toBeUndefined()
  const script = (length: number) => bodyOf({ script: 'x'.repeat(length), limits: { pids_max: 0 } })
  expect(warning(script(MAX_REVIEWED_CHARACTERS / 2))).toBe('limits.pids_max must be greater than 0')
  expect(warning(script(MAX_REVIEWED_CHARACTERS))).toBeUndefined()
})
