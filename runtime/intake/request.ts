/** From the body of POST /api/v1/tasks to a request that can be planned. Control uses the same rules. Pure. */
import { RequestFault } from '../../shared/runtime-request/fault.ts'
import { readRequest, type TaskRequest } from '../../shared/runtime-request/validate.ts'
import type { UnknownFields } from '../../shared/unknown-names.ts'
import { invalidInput } from '../refusal.ts'

/** Parses `body`. A request without an id gets `newTaskId`. Throws 400 `invalid_input`. */
export function acceptableRequest(body: Uint8Array, newTaskId: string, unknownFields: UnknownFields): TaskRequest {
  try {
    return readRequest(body, newTaskId, unknownFields)
  } catch (error) {
    throw error instanceof RequestFault ? invalidInput(error.message) : error
  }
}
