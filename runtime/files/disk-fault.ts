/** Errors of the database that the disk is to blame for, and the answer to a request that they keep from being stored. Pure. */
import { messageOf, ServiceError, systemCodeOf } from '../../shared/contract/errors.ts'
import { DataDirectoryLost } from '../../shared/files/held-directory.ts'

/** Errors of the disk, which may pass. All others are defects of ours. */
const DISK_FAULTS = /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN|BUSY|LOCKED|NOMEM|PERM|PROTOCOL|CORRUPT|NOTADB)/

/** Errors of the disk that may concern a single page: changes of other pages still succeed. */
const DAMAGE = /^SQLITE_CORRUPT/

const codeOf = (error: unknown): string => String((error as { code?: unknown } | null)?.code)
export const isDiskFault = (error: unknown): boolean => DISK_FAULTS.test(codeOf(error))
export const isDamage = (error: unknown): boolean => DAMAGE.test(codeOf(error))

/** 503 for a request that cannot be stored. */
export function unavailable(cause: unknown): ServiceError {
  const message = messageOf(cause)
  if (cause instanceof DataDirectoryLost) return new ServiceError(503, message, { cause })
  const isMissing = ['ENOENT', 'ENOTDIR'].includes(systemCodeOf(cause) ?? '')
  const remedy = isMissing ? 'restart the service' : 'free some space or mend the disk, then try again'
  return new ServiceError(503, `cannot write to the data directory: ${message} (${remedy})`, { cause })
}
