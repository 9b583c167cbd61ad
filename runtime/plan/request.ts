/** From the body of POST /api/v1/tasks to a request that can be planned. Control uses the same rules. Pure. */
import { RequestFault } from '../../shared/request/fault.ts'
import type { UnknownFields } from '../../shared/request/unknown-names.ts'
import { readRequest, type TaskRequest } from '../../shared/request/validate.ts'
import { invalidInput } from '../refusal.ts'

/** Parses `body`. A request without an id gets `newTaskId`. Throws 400 `invalid_input`. */
export function acceptableRequest(body: Uint8Array, newTaskId: string, unknownFields: UnknownFields): TaskRequest {
  try {
    return readRequest(body, newTaskId, unknownFields)
  } catch (error) {
    throw error instanceof RequestFault ? invalidInput(error.message) : error
  }
}
