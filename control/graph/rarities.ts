/**
 * What few tasks have, in objects of their own: a task has one only when it needs it.
 *
 * There may be a million tasks, and a field that is undefined takes as much room as any other.
 */
import type { AttemptRecord, ProgressEntry } from '../../shared/contract/control.ts'
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
  !retry && timeout == null && annotations == null
    ? NO_EXTRAS
    : { retry: retry ?? 0, timeout: timeout ?? undefined, annotations: annotations ?? undefined }

/** What most tasks never have. */
export class Rarities {
  isBackingOff = false
  interruptedAttempts = 0
  ownCreatedAt: number | undefined = undefined
  failure: Failure | undefined = undefined
  errorText: string | undefined = undefined
  progress: ProgressEntry[] | undefined = undefined
  attempts: readonly AttemptRecord[] | undefined = undefined
  process: ProcessIdentity | undefined = undefined
  handle: Handle | undefined = undefined
}
