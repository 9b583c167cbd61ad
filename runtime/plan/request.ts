/** From the body of POST /api/v1/tasks to a request that can be planned. Control uses the same rules. Pure. */
import { RequestFault } from '../../shared/request/fault.ts'
import type { UnknownFields } from '../../shared/request/unknown-names.ts'
import { readRequest, type TaskRequest } from '../../shared/request/validate.ts'
import { invalidInput, Refusal } from '../refusal.ts'

/** Parses `body`. A request without an id gets `newTaskId`. Throws 400 `invalid_input`. */
export function acceptableRequest(body: Uint8Array, newTaskId: string, unknownFields: UnknownFields): TaskRequest {
  try {
    return readRequest(body, newTaskId, unknownFields)
  } catch (error) {
    throw error instanceof RequestFault ? invalidInput(error.message) : error
  }
}

/**
 * Throws `unsupported_capability` for a request that names files, unless the service runs on Linux: only Linux lets it open files
 * by descriptors.
 */
export function ensureFiles({ inputs, outputs }: Pick<TaskRequest, 'inputs' | 'outputs'>, platform: string): void {
  const field = inputs !== undefined ? 'inputs' : outputs !== undefined ? 'outputs' : undefined
  if (platform === 'linux' || field === undefined) return
  throw new Refusal(
    'unsupported_capability',
    `${field} needs a runtime service on Linux (this one runs on ${platform})`,
  )
}
