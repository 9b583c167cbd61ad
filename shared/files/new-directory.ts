/**
 * Creates a data directory, and removes it again if the service does not start.
 *
 * Only directories that this start created are removed, with the files that a start writes before it accepts requests. If
 * there is any other file, or a directory that is not empty, everything stays.
 */
import { mkdirSync, readdirSync, rmdirSync, statSync, unlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { systemCodeOf } from '../contract/errors.ts'
import { isDirectoryLocked, LOCK_FILES, type LockFile } from './directory-lock.ts'

/** Files of both services: with `--with-runtime` the runtime service starts in a directory that control created. */
const START_FILES =
  /^(lock|reserve|format\.json|journal-\d{10}\.log|events-\d{16}\.log|runtime-token|runtime-child\.json|runtime\.lock|runtime\.db(-wal|-shm)?|launchers(\.log)?|launcher-[0-9a-f]+)$/

const START_DIRECTORIES: ReadonlySet<string> = new Set(['results', 'tasks'])

/**
 * Creates the directory `path`, accessible to its owner only, and its missing parents. Returns the created directories,
 * `path` first; none if another process created `path`. Throws the system's error.
 */
export function makeDirectory(path: string): readonly string[] {
  const directory = resolve(path)
  const parent = dirname(directory)
  const firstMade = mkdirSync(parent, { recursive: true, mode: 0o700 })
  // Not recursive, because only a plain mkdir tells whether this process created the directory.
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
 * Removes `made`, the result of `makeDirectory`, if this process exits before the returned function is called. The process
 * has to hold the lock `name` of the directory. Otherwise the files in it may belong to another service.
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
    // The directory is not empty, or is gone: it stays as it is.
  }
}

/** Whether a service of the other kind uses the directory, too. */
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
