/** Errors for files in the data directory that a start cannot read. The start ends and leaves the files as they are. */
import { messageOf, UsageError } from '../../shared/contract/errors.ts'

/** The content of the file is invalid. */
export const refuseFile = (what: string, path: string) => (detail: string) =>
  new UsageError(`cannot read the ${what} ${path}: ${detail}; it is left as it is: repair it or move it away`)

/** The system denies access to the file. The message does not advise to move the file, whose content may be valid. */
export const refuseAccess = (what: string, path: string, error: unknown) =>
  new UsageError(`cannot read the ${what} ${path}: ${messageOf(error)} (let the user of the service read it)`)
