/** The file with the token of the services that `taskmill up` started. */
import { lstatSync } from 'node:fs'
import { ACCESS_OF_OTHERS } from '../../shared/http/token.ts'

export interface TokenFileFault {
  readonly what: string
  readonly remedy: string
}

/** What is wrong with the access to the file. Undefined if nothing is, or if there is no file. Throws the system's error. */
export function tokenFileFault(path: string): TokenFileFault | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return undefined
  if (!stat.isFile()) return { what: `${path} is not a file`, remedy: 'remove it, and taskmill up makes a new token' }
  if ((stat.mode & ACCESS_OF_OTHERS) === 0) return undefined
  const remedy = 'delete it, then taskmill down and taskmill up make a new one'
  return { what: `other users can read the token file ${path}`, remedy }
}
