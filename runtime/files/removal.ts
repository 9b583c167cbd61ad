/**
 * Removes the files of a task in which nothing runs any more, whatever the task made of them.
 *
 * Directories may be nested deeper than the longest path. Bun's rm can remove them, but starts from the top again for
 * each directory more than a few levels down; thousands of levels would take hours. So deep directories are first moved
 * up to the top. Links are not followed, and names are handled as bytes, since not all are valid text.
 *
 * Without root, nothing in a directory of mode 000 can be removed, not even by its owner. In that case all directories
 * are opened on the way.
 */
import { closeSync, constants, openSync } from 'node:fs'
import { chmod, lstat, readdir, rename, rm } from 'node:fs/promises'
import { systemCodeOf } from '../../shared/contract/errors.ts'

const OPEN_MODE = 0o700

/** Levels below the top that rm removes efficiently. */
const MAX_LEVEL = 8

/** Decodes each byte of a name as one character. */
const NAME_ENCODING = 'latin1'

/** Other tasks with the same user may have no more time in between, or have ended. The pauses add up to 0.3 s. */
const MAX_TRIES = 6
const FIRST_PAUSE_MS = 10

/** Errors that say that the tree was changed while it was removed. */
const DISTURBED: readonly string[] = ['ENOENT', 'ENOTDIR', 'ENOTEMPTY', 'EEXIST', 'ELOOP']

/** Removes `path` and all below it, if it is there. A task may have replaced its directory by anything. */
export const removeTree = (path: string | Buffer): Promise<void> => untilUndisturbed(() => removeOnce(path))

/** Tries `remove` again, after growing pauses, while others change what it removes. */
export async function untilUndisturbed(remove: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await remove()
    } catch (error) {
      if (tries === MAX_TRIES || !DISTURBED.includes(systemCodeOf(error) ?? '')) throw error
    }
    await Bun.sleep(FIRST_PAUSE_MS * 2 ** (tries - 1))
  }
}

async function removeOnce(path: string | Buffer): Promise<void> {
  if (!(await isDirectory(path))) return await rm(path, { force: true })
  try {
    await removeDirectory(path, false)
  } catch (error) {
    if (!isClosed(error)) throw error
    await removeDirectory(path, true)
  }
}

async function isDirectory(path: string | Buffer): Promise<boolean> {
  try {
    return (await lstat(path)).isDirectory()
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return false
    throw error
  }
}

const isClosed = (error: unknown): boolean => ['EACCES', 'EPERM'].includes(systemCodeOf(error) ?? '')

async function removeDirectory(path: string | Buffer, isToOpen: boolean): Promise<void> {
  try {
    await flatten(path, isToOpen)
  } catch (error) {
    // A full disk has no room to move directories. rm frees some, however long it takes.
    if (isClosed(error) && !isToOpen) throw error
  }
  await rm(path, { recursive: true, force: true })
}

/** Leaves no directory deeper than `MAX_LEVEL`, and with `isToOpen` none that is closed. */
async function flatten(top: string | Buffer, isToOpen: boolean): Promise<void> {
  using root = Directory.open(Buffer.from(top))
  const prefix = `moved-${crypto.randomUUID()}-`
  /** Directories that are still to be read, as names from the top. */
  const found: Buffer[][] = [[]]
  let moved = 0
  for (let names = found.pop(); names !== undefined; names = found.pop()) {
    using directory = root.descend(names)
    if (directory === undefined) continue
    if (isToOpen) await chmod(directory.path, OPEN_MODE)
    for (const entry of await readdir(directory.path, { encoding: NAME_ENCODING, withFileTypes: true })) {
      if (!entry.isDirectory()) continue
      const name = Buffer.from(entry.name, NAME_ENCODING)
      if (names.length < MAX_LEVEL) {
        found.push([...names, name])
        continue
      }
      using inner = isToOpen ? directory.descend([name]) : undefined
      if (inner !== undefined) await chmod(inner.path, OPEN_MODE) // moving a directory writes into it
      const up = Buffer.from(`${prefix}${moved++}`)
      await rename(directory.at(name), root.at(up))
      found.push([up])
    }
  }
}

/** Missing in node:fs; the same on all architectures. */
const O_PATH = 0o10000000

/**
 * An open directory, entered without following a link.
 *
 * Another task with the same user may still be in the tree and replace a directory by a link, so that a path leads out
 * of the tree. Names are therefore relative to descriptors: `/proc/self/fd/N/name`. Systems without that have no
 * sandbox whose tasks have fewer rights than the service; there the path counts.
 */
class Directory implements Disposable {
  readonly path: Buffer
  readonly #fd: number | undefined

  private constructor(path: Buffer, fd?: number) {
    this.path = fd === undefined ? path : Buffer.from(`/proc/self/fd/${fd}`)
    this.#fd = fd
  }

  static open(path: Buffer): Directory {
    if (process.platform !== 'linux') return new Directory(path)
    return new Directory(path, openSync(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW))
  }

  /** The path of `name` in it. The last name of a path to rename is not followed. */
  at(name: Buffer): Buffer {
    return Buffer.concat([this.path, Buffer.from('/'), name])
  }

  /** The directory `names` below it, to be closed; undefined if there is none any more. */
  descend(names: readonly Buffer[]): Directory | undefined {
    let directory = Directory.open(this.at(Buffer.from('.')))
    for (const name of names) {
      using outer = directory
      try {
        directory = Directory.open(outer.at(name))
      } catch (error) {
        if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(systemCodeOf(error) ?? '')) return undefined
        throw error
      }
    }
    return directory
  }

  [Symbol.dispose](): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
  }
}
