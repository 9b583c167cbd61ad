/** The data directory of the runtime service: made, taken for one service alone, and what names that service. */
import { mkdirSync, realpathSync } from 'node:fs'
import { refuseSystemDirectory } from '../../shared/data-directory.ts'
import { LOCK_FILES, lockDirectory } from '../../shared/directory-lock.ts'
import { messageOf, UsageError } from '../../shared/errors.ts'
import { makeDirectory, removeUnlessStarted } from '../../shared/new-directory.ts'
import { tasksDir } from './task-dir.ts'

export interface DataDir {
  /** Absolute. */
  readonly dataDir: string
  /** A process that inherits this descriptor holds the lock of the directory as well. */
  readonly lockFd: number
  /** To be called once the service has started; without it the exit removes a directory that this start made. */
  readonly keepDataDir: () => void
}

/** Makes the data directory if it is missing, and takes its lock. Throws `UsageError`, also when another service has it. */
export function takeDataDir(path: string): DataDir {
  refuseSystemDirectory(path)
  const { dataDir, made } = makeDataDir(path)
  const lockFd = lockDirectory(dataDir, LOCK_FILES.runtime)
  return { dataDir, lockFd, keepDataDir: removeUnlessStarted(made, LOCK_FILES.runtime) }
}

function makeDataDir(path: string): { readonly dataDir: string; readonly made: readonly string[] } {
  try {
    const made = makeDirectory(path)
    const dataDir = realpathSync(path)
    mkdirSync(tasksDir(dataDir), { recursive: true, mode: 0o700 })
    return { dataDir, made }
  } catch (error) {
    throw new UsageError(
      `cannot make the data directory ${path}: ${messageOf(error)} (let the user of the service write there, or choose another with --data-dir)`,
    )
  }
}
