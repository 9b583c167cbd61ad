/**
 * What few tasks have, in objects of their own: a task has one only when it needs it.
 *
 * There may be a million tasks, and a field that is undefined takes as much room as any other.
 */
import type { ProgressEntry } from '../../shared/contract/control.ts'
import type { ProcessIdentity } from '../../shared/processes.ts'
import type { Failure, Handle } from './task.ts'
import type { ValidTask } from './validate.ts'

/** What a caller may leave out of a task, and mostly does. */
export interface Extras {
  readonly retry: number
  readonly timeout: number | undefined
  readonly annotations: Readonly<Record<string, string>> | undefined
}

const NO_EXTRAS: Extras = { retry: 0, timeout: undefined, annotations: undefined }

export const extrasOf = ({ retry, timeout, annotations }: ValidTask): Extras =>
  retry == null && timeout == null && annotations == null
    ? NO_EXTRAS
    : { retry: retry ?? 0, timeout: int64Of(timeout), annotations: annotations ?? undefined }

/** The largest number that is an int64: the int64s above it, all of which are read as 2^63, become this one. */
const MAX_INT64_NUMBER = 2 ** 63 - 1024

const int64Of = (number: number | null | undefined): number | undefined =>
  number == null ? undefined : Math.min(number, MAX_INT64_NUMBER)

/** What most tasks never have. */
export class Rarities {
  isBackingOff = false
  interruptedAttempts = 0
  ownCreatedAt: number | undefined = undefined
  failure: Failure | undefined = undefined
  errorText: string | undefined = undefined
  progress: ProgressEntry[] | undefined = undefined
  process: ProcessIdentity | undefined = undefined
  handle: Handle | undefined = undefined
}
