/** Goal: faults of a request become refusals of the runtime service, with their own words. Its rules are tested where they are shared. */
import { expect, test } from 'bun:test'
import { acceptableRequest, ensureFiles } from '../../../runtime/plan/request.ts'
import { COMMAND, NEW_TASK_ID, refusalOf, request } from '../../support/runtime-requests.ts'

const accept = (body: unknown) =>
  acceptableRequest(new TextEncoder().encode(JSON.stringify(body)), NEW_TASK_ID, 'refuse')

test('a request without a fault is accepted', () => {
  expect(accept(COMMAND)).toEqual(request())
})

test.each([
  [{}, 'execution is required'],
  [
    { ...COMMAND, limits: { pids_max: 'x' } },
    'invalid JSON: limits.pids_max: expected whole number above 0, got string',
  ],
  [{ ...COMMAND, sandbx: {} }, 'unknown field sandbx (did you mean sandbox?)'],
])('%j is refused as invalid input', (body, message) => {
  expect(refusalOf(() => accept(body))).toMatchObject({ code: 'invalid_input', status: 400, message, details: null })
})

test('files of workspaces need Linux', () => {
  expect(() => ensureFiles({ outputs: ['a'] }, 'darwin')).toThrow(
    'outputs needs a runtime service on Linux (this one runs on darwin)',
  )
  expect(() => ensureFiles({ inputs: {}, outputs: [] }, 'darwin')).toThrow('inputs needs')
  ensureFiles({ outputs: ['a'] }, 'linux')
  ensureFiles({}, 'darwin')
})
