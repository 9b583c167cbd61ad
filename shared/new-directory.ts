/**
 * A data directory that may have to be made, and that goes again when the start of its service is refused.
 *
 * Only what this start made is removed: the directory, those above it that were missing, and in it the files that a start
 * makes before it takes any request. One file of another name, or one entry in a directory, and all of it stays.
 */
import { mkdirSync, readdirSync, rmdirSync, statSync, unlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isDirectoryLocked, LOCK_FILES, type LockFile } from './directory-lock.ts'
import { systemCodeOf } from './errors.ts'

/** Files of both services: `--with-runtime` lets the runtime service start in the directory that control has made. */
const START_FILES =
  /^(lock|reserve|journal-\d{10}\.log|runtime-token|runtime-child\.json|runtime\.lock|runtime\.db(-wal|-shm)?|launchers(\.log)?|launcher-[0-9a-f]+)$/

const START_DIRECTORIES: ReadonlySet<string> = new Set(['results', 'tasks'])

/**
 * Makes the directory `path` for its owner alone, and all above it. Returns the directories that this call made: `path`
 * first, then those above it; none when another process made `path`. Throws what the system says.
 */
export function makeDirectory(path: string): readonly string[] {
  const directory = resolve(path)
  const parent = dirname(directory)
  const firstMade = mkdirSync(parent, { recursive: true, mode: 0o700 })
  // Not recursive: only that reports whether this process made the directory or found it.
  try {
    mkdirSync(directory, { mode: 0o700 })
  } catch (error) {
    if (systemCodeOf(error) === 'EEXIST' && statSync(directory).isDirectory()) return []
    throw error
  }
  const made = [directory]
  for (let at = parent; firstMade !== undefined && at.length >= firstMade.length; at = dirname(at)) made.push(at)
  return made
}

/**
 * Removes `made`, the result of `makeDirectory`, when this process exits before the returned function is called. The
 * process must hold the lock `name` of the directory: without it, files in there may belong to another service.
 */
export function removeUnlessStarted(made: readonly string[], name: LockFile): () => void {
  const remove = () => removeMade(made, name)
  if (made.length > 0) process.on('exit', remove)
  return () => void process.off('exit', remove)
}

function removeMade(made: readonly string[], name: LockFile): void {
  const [directory] = made
  try {
    if (directory === undefined || isUsedByOther(directory, name)) return
    emptyAfterStart(directory)
    for (const path of made) rmdirSync(path)
  } catch {
    // Somebody else has put something there: it stays.
  }
}

/** Whether a service of another kind has the directory too. */
const isUsedByOther = (directory: string, name: LockFile): boolean =>
  Object.values(LOCK_FILES).some((other) => other !== name && isDirectoryLocked(directory, other))

function emptyAfterStart(directory: string): void {
  const entries = readdirSync(directory, { withFileTypes: true })
  const foreign = entries.some((entry) =>
    entry.isDirectory()
      ? !START_DIRECTORIES.has(entry.name) || readdirSync(join(directory, entry.name)).length > 0
      : !START_FILES.test(entry.name),
  )
  if (foreign) return
  for (const entry of entries) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) rmdirSync(path)
    else unlinkSync(path)
  }
}
