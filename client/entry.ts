/** What programs import as `taskmill/client`. */
export {
  type GraphFilter,
  type RerunOptions,
  type RunOptions,
  type SubmitOptions,
  type TaskFilter,
  Taskmill,
  type WaitOptions,
} from './client.ts'
export type { CallOptions, ConnectionOptions } from './connection.ts'
export type * from './contract.ts'
export { type FailureCode, TaskmillError } from './errors.ts'
export type { EventOptions, SubjectEventOptions, TaskmillEvent } from './event-reader.ts'
export type { FollowLogOptions, LogChunk, LogOptions, TaskLog } from './log-reader.ts'
export type { GraphReference, TaskReference } from './references.ts'
