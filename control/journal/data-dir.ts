/** The data directory at a start: made if missing, and locked against a second service. */
import { refuseSystemDirectory } from '../../shared/data-directory.ts'
import { LOCK_FILES, lockDirectory } from '../../shared/directory-lock.ts'
import { messageOf, UsageError } from '../../shared/errors.ts'
import { makeDirectory, removeUnlessStarted } from '../../shared/new-directory.ts'

/**
 * Makes the data directory if it is missing, accessible to its owner alone, and locks it. Returns a function to call once
 * the service has started. Without that call, an exit removes a directory that this start made. Throws `UsageError`.
 */
export function takeDataDir(dataDir: string): () => void {
  refuseSystemDirectory(dataDir)
  const made = makeDataDir(dataDir)
  lockDirectory(dataDir, LOCK_FILES.control)
  return removeUnlessStarted(made, LOCK_FILES.control)
}

/** Makes the directory if it is missing. Returns the directories that it made. Throws `UsageError`. */
export function makeDataDir(dataDir: string): readonly string[] {
  try {
    return makeDirectory(dataDir)
  } catch (error) {
    throw new UsageError(
      `cannot make the data directory ${dataDir}: ${messageOf(error)} (choose another with --data-dir)`,
    )
  }
}
