/** Why an attempt failed. */
import type { ErrorCode } from '../../shared/contract/error-codes.ts'

export interface Failure {
  readonly code: ErrorCode
  /** The cause alone. The `error` of the task may say more. */
  readonly message: string
  readonly retryable?: boolean
  readonly source?: string
  readonly details?: unknown
}
