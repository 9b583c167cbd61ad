/** The entries of an open directory, by name, up to a limit. */
import { lstat, opendir } from 'node:fs/promises'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import type { WorkspaceFileEntry } from '../../shared/contract/runtime.ts'
import { pathAt } from './workspace-path.ts'

/** Entries in one answer. */
export const MAX_LISTED = 1_000

export interface DirectoryList {
  readonly entries: readonly WorkspaceFileEntry[]
  readonly truncated: boolean
}

/**
 * Lists one directory at a time, because the runtime reads a directory of any size into memory as a whole. Further lists
 * wait.
 */
export class DirectoryLists {
  #last: Promise<unknown> = Promise.resolve()

  /**
   * The list of the directory `fd`, undefined if it was removed meanwhile. Which entries a list that is cut off has is up to
   * the file system.
   */
  list(fd: number): Promise<DirectoryList | undefined> {
    const list = this.#last.then(() => listDirectory(fd))
    this.#last = list.catch(() => undefined)
    return list
  }
}

async function listDirectory(fd: number): Promise<DirectoryList | undefined> {
  const names = await namesIn(fd)
  if (names === undefined) return undefined
  const found = await Promise.all(names.slice(0, MAX_LISTED).map((name) => entryAt(fd, name)))
  const entries = found.filter((entry) => entry !== undefined)
  return { entries: entries.toSorted(byName), truncated: names.length > MAX_LISTED }
}

/** The first names, one more than are listed. Undefined if the directory was removed. */
async function namesIn(fd: number): Promise<string[] | undefined> {
  const names: string[] = []
  try {
    for await (const { name } of await opendir(`/proc/self/fd/${fd}`)) {
      names.push(name)
      if (names.length > MAX_LISTED) break
    }
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined
    throw error
  }
  return names
}

const byName = (a: WorkspaceFileEntry, b: WorkspaceFileEntry) => (a.name < b.name ? -1 : 1)

/** Undefined if it is gone by now. */
async function entryAt(fd: number, name: string): Promise<WorkspaceFileEntry | undefined> {
  const status = await lstat(pathAt(fd, name)).catch(() => undefined)
  if (status === undefined) return undefined
  if (status.isFile()) return { name, type: 'file', size: status.size }
  if (status.isDirectory()) return { name, type: 'directory' }
  return { name, type: status.isSymbolicLink() ? 'symlink' : 'other' }
}
