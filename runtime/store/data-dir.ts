/** The data directory of the runtime service: made, taken for one service alone, and what names that service. */
import { mkdirSync, realpathSync, statSync } from 'node:fs'
import { lockDirectory } from '../../shared/directory-lock.ts'
import { messageOf, UsageError } from '../../shared/errors.ts'
import { tasksDir } from './task-dir.ts'

/** The lock: a control service may have its files beside ours. */
export const LOCK_FILE = 'runtime.lock'

/** The absolute path of the data directory, made if it was not there. Throws `UsageError`. */
export function makeDataDir(path: string): string {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    const dataDir = realpathSync(path)
    mkdirSync(tasksDir(dataDir), { recursive: true, mode: 0o700 })
    return dataDir
  } catch (error) {
    throw new UsageError(
      `cannot make the data directory ${path}: ${messageOf(error)} (let the user of the service write there, or choose another with --data-dir)`,
    )
  }
}

/** The lock's descriptor: a process that inherits it holds the lock as well. Throws `UsageError` when another has it. */
export const lockDataDir = (dataDir: string): number => lockDirectory(dataDir, LOCK_FILE)

/** Names the service among those of this machine, for as long as its data directory is there. */
export function serviceIdOf(dataDir: string): string {
  const { dev, ino } = statSync(dataDir)
  return `${dev}-${ino}`
}
