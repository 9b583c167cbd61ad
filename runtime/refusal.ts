/** A request that the runtime service refuses. `onError` turns it into the body `{"error": {code, message, details}}`. */

import { ServiceError } from '../shared/contract/errors.ts'
import type { RefusalCode } from '../shared/contract/runtime.ts'

const STATUS: Readonly<Record<RefusalCode, number>> = {
  invalid_input: 400,
  unsupported_capability: 400,
  insufficient_resources: 400,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  payload_too_large: 413,
  resource_limit_exceeded: 429,
  internal: 500,
  unavailable: 503,
}

export class Refusal extends ServiceError {
  override name = 'Refusal'
  constructor(
    readonly code: RefusalCode,
    message: string,
    /** Machine-readable details. */
    readonly details: unknown = null,
  ) {
    super(STATUS[code], message)
  }
}

export const invalidInput = (message: string, details: unknown = null) => new Refusal('invalid_input', message, details)
