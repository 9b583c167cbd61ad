/** Why an attempt failed. */
import type { ErrorCode } from '../../shared/contract/control.ts'

export interface Failure {
  readonly code: ErrorCode
  /** The cause alone. The task's `errorText` may say more. */
  readonly message: string
  readonly retryable?: boolean
  readonly source?: string
  readonly details?: unknown
}
