/** The reason why data could not be read, as the page shows it. */
import { ApiError } from './api.ts'

export interface Fault {
  /** HTTP status of the answer; 0 without one. */
  readonly status: number
  readonly message: string
}

export const faultOf = (error: unknown): Fault =>
  error instanceof ApiError
    ? { status: error.status, message: error.message }
    : { status: 0, message: error instanceof Error ? error.message : String(error) }
