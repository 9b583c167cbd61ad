/**
 * Removing what a task has left, whatever that is. Nothing of it runs any more.
 *
 * Directories may be nested deeper than a path can be long. Bun's rm takes them away all the same, but goes back to the
 * top for each one that lies more than a few levels down: for thousands of levels it would take hours. So directories that
 * lie deep are moved up to the top first. No link is followed, and names are bytes, not all of them text.
 *
 * Who is not root cannot remove what lies in a directory that its owner has closed (mode 000), not even as the owner. Then
 * all directories are opened on the way.
 */
import { chmod, lstat, readdir, rename, rm } from 'node:fs/promises'
import { systemCodeOf } from '../../shared/errors.ts'

const OPEN_MODE = 0o700

/** Levels below the top that rm goes down at once. */
const MAX_LEVEL = 8

/** Each byte of a name is a character of it. */
const NAME_ENCODING = 'latin1'

/** Removes `path` and all below it; fine if there is nothing. A task may have put anything in the place of its directory. */
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
    // A full disk has no room to move anything to; rm frees some, however long it takes.
    if (isClosed(error) && !isToOpen) throw error
  }
  await rm(path, { recursive: true, force: true })
}

interface Directory {
  readonly path: Buffer
  /** Of the top: 0. */
  readonly level: number
}

/** Leaves no directory more than `MAX_LEVEL` levels down, and with `isToOpen` none that is closed. */
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
      if (isToOpen) await chmod(path, OPEN_MODE) // to move a directory is to write into it
      const up = Buffer.from(`${prefix}${moved++}`)
      await rename(path, up)
      found.push({ path: up, level: 1 })
    }
  }
}
