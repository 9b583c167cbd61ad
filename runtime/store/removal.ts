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
import { chmod, lstat, readdir, rename, rm } from 'node:fs/promises'
import { systemCodeOf } from '../../shared/errors.ts'

const OPEN_MODE = 0o700

/** Levels below the top that rm removes efficiently. */
const MAX_LEVEL = 8

/** One character for each byte of a name. */
const NAME_ENCODING = 'latin1'

/** Removes `path` and all below it, if it is there. A task may have replaced its directory by anything. */
export async function removeTree(path: string): Promise<void> {
  if (!(await isDirectory(path))) return await rm(path, { force: true })
  try {
    await removeDirectory(path, false)
  } catch (error) {
    if (!isClosed(error)) throw error
    await removeDirectory(path, true)
  }
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isDirectory()
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return false
    throw error
  }
}

const isClosed = (error: unknown): boolean => ['EACCES', 'EPERM'].includes(systemCodeOf(error) ?? '')

async function removeDirectory(path: string, isToOpen: boolean): Promise<void> {
  try {
    await flatten(path, isToOpen)
  } catch (error) {
    // A full disk has no room to move directories. rm frees some, however long it takes.
    if (isClosed(error) && !isToOpen) throw error
  }
  await rm(path, { recursive: true, force: true })
}

interface Directory {
  readonly path: Buffer
  /** The top is level 0. */
  readonly level: number
}

/** Leaves no directory deeper than `MAX_LEVEL`, and with `isToOpen` none that is closed. */
async function flatten(top: string, isToOpen: boolean): Promise<void> {
  const prefix = `${top}/moved-${crypto.randomUUID()}-`
  const found: Directory[] = [{ path: Buffer.from(top), level: 0 }]
  let moved = 0
  for (let directory = found.pop(); directory !== undefined; directory = found.pop()) {
    if (isToOpen) await chmod(directory.path, OPEN_MODE)
    for (const entry of await readdir(directory.path, { encoding: NAME_ENCODING, withFileTypes: true })) {
      if (!entry.isDirectory()) continue
      const path = Buffer.concat([directory.path, Buffer.from(`/${entry.name}`, NAME_ENCODING)])
      const level = directory.level + 1
      if (level <= MAX_LEVEL) {
        found.push({ path, level })
        continue
      }
      if (isToOpen) await chmod(path, OPEN_MODE) // moving a directory writes into it
      const up = Buffer.from(`${prefix}${moved++}`)
      await rename(path, up)
      found.push({ path: up, level: 1 })
    }
  }
}
