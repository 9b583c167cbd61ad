/** The data directory of a service: which one it may have, created if missing, and locked. */
import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { messageOf, UsageError } from '../contract/errors.ts'
import { type LockFile, lockDirectory } from './directory-lock.ts'
import { makeDirectory, removeUnlessStarted } from './new-directory.ts'
import { writeRemedy } from './write-remedy.ts'

export interface DataDirectory {
  /** Absolute, without links. */
  readonly path: string
  /** A process that inherits this descriptor holds the lock, too. */
  readonly lockFd: number
  /** To be called once the service has started. Otherwise the exit removes a directory that this start made. */
  readonly keep: () => void
}

/** Makes the data directory if it is missing, and takes its lock. Throws `UsageError`, also if another service has it. */
export function claimDataDirectory(given: string, lock: LockFile): DataDirectory {
  refuseSystemDirectory(given)
  const made = makeOrRefuse(given, () => makeDirectory(given))
  const path = realpathSync(given)
  return { path, lockFd: lockDirectory(path, lock), keep: removeUnlessStarted(made, lock) }
}

/** Calls `make`, which makes the data directory `path` or something in it. Throws `UsageError` with the remedy. */
export function makeOrRefuse<T>(path: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new UsageError(
      `cannot make the data directory ${path}: ${messageOf(error)} (${writeRemedy(error)}, or choose another with --data-dir)`,
    )
  }
}

/** Programs, and so sandboxes, need these directories. But a sandbox hides the data directory of the service. */
const SYSTEM_DIRECTORIES = [
  ...['/bin', '/boot', '/dev', '/etc', '/lib', '/lib32', '/lib64', '/libx32'],
  ...['/proc', '/sbin', '/sys', '/usr'],
]

/** Throws `UsageError` for a directory of the system and for one that holds such a directory. Follows links. */
export function refuseSystemDirectory(dataDir: string): void {
  const path = realPath(resolve(dataDir))
  const system = SYSTEM_DIRECTORIES.map((directory) => ({ directory, real: realPath(directory) }))
  const held = system.find(({ real }) => isWithin(real, path))?.directory
  if (held === undefined) return
  const fault = system.some(({ real }) => real === path) ? 'is a directory of the system' : `holds ${held}`
  throw new UsageError(
    `--data-dir ${dataDir} ${fault}: the files of a service need a directory of their own, such as ${EXAMPLE}`,
  )
}

const EXAMPLE = '/var/lib/taskmill'

const isWithin = (path: string, top: string): boolean => `${path}/`.startsWith(top === '/' ? top : `${top}/`)

/** The path itself if it does not exist: then it holds nothing either. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
