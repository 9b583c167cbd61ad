/**
 * The data directory of the start, and whether it is still there under its path.
 *
 * Open files outlive a directory that was deleted or replaced: writes and syncs go on to succeed, and the next start finds
 * none of them. So the directory and the file that acknowledged changes go to are looked at before anything is
 * acknowledged. The open descriptor keeps the inode number from being given to a new directory.
 */
import { closeSync, fstatSync, openSync, statSync } from 'node:fs'
import { systemCodeOf } from './errors.ts'

/** The data directory, or the file in it that changes go to, is gone. Nothing ends this condition but a restart. */
export class DataDirectoryLost extends Error {
  override name = 'DataDirectoryLost'
}

export class HeldDirectory {
  readonly #path: string
  readonly #fd: number
  readonly #dev: number
  readonly #ino: number
  /** Some file systems in user space report 0 links for all that exists. */
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
   * Throws `DataDirectoryLost` when the path leads to no directory or to another one, or when the open file `fd` was
   * deleted from it, and what the system says when it cannot be asked. Takes 1 to 2 µs.
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
