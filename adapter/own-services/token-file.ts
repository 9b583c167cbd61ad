/** The file with the token of the services that `taskmill up` started. */
import { lstatSync } from 'node:fs'
import { ACCESS_OF_OTHERS } from '../../shared/token.ts'

/** What is wrong with the access to the file, with the remedy. Undefined if nothing is, or if there is no file yet. */
export function tokenFileFault(path: string): string | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return undefined
  if (!stat.isFile()) return `the token file ${path} is not a file: remove it, and taskmill up makes a new one`
  if ((stat.mode & ACCESS_OF_OTHERS) === 0) return undefined
  return `other users can read the token file ${path}: delete it, then taskmill down and taskmill up make a new one`
}
