/** The directories that the runtime service makes in its data directory. */
import { mkdirSync } from 'node:fs'
import { makeOrRefuse } from '../../shared/files/data-directory.ts'
import { tasksDir } from '../files/task-dir.ts'

/**
 * Makes the directory of all tasks if it is missing. Called once the service may listen: a refused start adds no
 * directory to a data directory that was there before. Throws `UsageError`.
 */
export function makeTasksDir(dataDir: string): void {
  makeOrRefuse(dataDir, () => mkdirSync(tasksDir(dataDir), { recursive: true, mode: 0o700 }))
}
