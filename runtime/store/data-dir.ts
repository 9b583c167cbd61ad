/** The data directory of the runtime service: made if missing, and locked for one service. */
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
  /** To be called once the service has started. Without that call the exit removes a directory that this start made. */
  readonly keepDataDir: () => void
}

/** Makes the data directory if it is missing, and takes its lock. Throws `UsageError`, also when another service has it. */
export function takeDataDir(path: string): DataDir {
  refuseSystemDirectory(path)
  const { dataDir, made } = explained(path, () => ({ made: makeDirectory(path), dataDir: realpathSync(path) }))
  const lockFd = lockDirectory(dataDir, LOCK_FILES.runtime)
  return { dataDir, lockFd, keepDataDir: removeUnlessStarted(made, LOCK_FILES.runtime) }
}

/**
 * Makes the directory of all tasks if it is missing. Called once the service may listen: a refused start adds no
 * directory to a data directory that was there before. Throws `UsageError`.
 */
export function makeTasksDir(dataDir: string): void {
  explained(dataDir, () => mkdirSync(tasksDir(dataDir), { recursive: true, mode: 0o700 }))
}

function explained<T>(path: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new UsageError(
      `cannot make the data directory ${path}: ${messageOf(error)} (let the user of the service write there, or choose another with --data-dir)`,
    )
  }
}
