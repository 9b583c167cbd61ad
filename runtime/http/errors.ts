/** Error bodies of the runtime service: `{error: {code, message, details}}`. Source: contract, Runtime service. */

import type { ServiceError } from '../../shared/contract/errors.ts'
import type { ErrorResponse, RefusalCode } from '../../shared/contract/runtime.ts'
import { Refusal } from '../refusal.ts'

/** Codes of the errors that every service has, by HTTP status. */
const CODES: Readonly<Record<number, RefusalCode>> = {
  400: 'invalid_input',
  401: 'unauthenticated',
  403: 'permission_denied',
  404: 'not_found',
  405: 'method_not_allowed',
  413: 'payload_too_large',
  416: 'invalid_input',
  503: 'unavailable',
}

export const errorBody = (error: ServiceError): ErrorResponse => ({
  error: {
    code: error instanceof Refusal ? error.code : (CODES[error.status] ?? 'internal'),
    message: error.message,
    details: error instanceof Refusal ? error.details : null,
  },
})
