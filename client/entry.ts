/** What programs import as `taskmill/client`. */

export type { FileFacts, FilePiece } from '../shared/streams/resumed-file.ts'
export type { SavedFile } from '../shared/streams/saved-file.ts'
export {
  type GraphFilter,
  type ListFilesOptions,
  type PatchOptions,
  type PutScheduleOptions,
  type RerunOptions,
  type RetryOptions,
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
export type { ReadFileOptions, SaveFileOptions } from './file-reader.ts'
export type { FollowLogOptions, LogChunk, LogOptions, TaskLog } from './log-reader.ts'
export type { GraphReference, TaskReference } from './references.ts'
