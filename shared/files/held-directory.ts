/**
 * Checks that the data directory is still the one that the service started with.
 *
 * Writes and syncs to open files succeed even after their directory was deleted or replaced, and the next start finds nothing.
 * So the directory and the file of acknowledged changes are checked before each acknowledgement. The open descriptor keeps
 * the kernel from reusing the inode number for a new directory.
 */
import { closeSync, fstatSync, openSync, statSync } from 'node:fs'
import { systemCodeOf } from '../contract/errors.ts'

/** The data directory, or the file of acknowledged changes, is gone. Only a restart helps. */
export class DataDirectoryLost extends Error {
  override name = 'DataDirectoryLost'
}

export class HeldDirectory {
  readonly #path: string
  readonly #fd: number
  readonly #dev: number
  readonly #ino: number
  /** Some FUSE file systems report 0 links for existing files. */
  readonly #countsLinks: boolean

  constructor(path: string) {
    this.#path = path
    this.#fd = openSync(path, 'r')
    const { dev, ino, nlink } = fstatSync(this.#fd)
    this.#dev = dev
    this.#ino = ino
    this.#countsLinks = nlink > 0
  }

  /**
   * Throws `DataDirectoryLost` if the path leads to no directory or to another one, or if the open file `fd` was deleted
   * from it. Throws the system's error if the check fails. Takes 1 to 2 µs.
   */
  check(fd: number): void {
    const found = statOf(this.#path)
    if (found === undefined) throw this.#lost('was deleted or moved')
    if (found.ino !== this.#ino || found.dev !== this.#dev) throw this.#lost('was replaced by another one')
    if (this.#countsLinks && fstatSync(fd).nlink === 0) throw this.#lost('was emptied')
  }

  close(): void {
    closeSync(this.#fd)
  }

  #lost(how: string): DataDirectoryLost {
    return new DataDirectoryLost(
      `the data directory ${this.#path} (--data-dir) ${how} while the service ran: restart the service`,
    )
  }
}

function statOf(path: string): { readonly dev: number; readonly ino: number } | undefined {
  try {
    return statSync(path)
  } catch (error) {
    const code = systemCodeOf(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error
  }
}
