/**
 * Removing what a task has left, whatever that is. Nothing of it runs any more.
 *
 * Who is not root cannot remove what lies in a directory that its owner has closed (mode 000), not even as the owner. Then
 * all directories are opened first. They may be nested deeper than a path can be long, so each is moved up to the top
 * before it is looked into; and their names are bytes, not all of them text. No link is followed.
 */
import { chmod, lstat, readdir, rename, rm } from 'node:fs/promises'
import { systemCodeOf } from '../../shared/errors.ts'

const OPEN_MODE = 0o700

/** Removes `path` and all below it; fine if there is nothing. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true })
  } catch (error) {
    if (!['EACCES', 'EPERM'].includes(systemCodeOf(error) ?? '')) throw error
    await openDirectories(path)
    await rm(path, { recursive: true, force: true })
  }
}

async function openDirectories(top: string): Promise<void> {
  const prefix = `${top}/opened-${crypto.randomUUID()}-`
  const closed = [top]
  let moved = 0
  for (let directory = closed.pop(); directory !== undefined; directory = closed.pop()) {
    await chmod(directory, OPEN_MODE)
    for (const name of await readdir(directory, { encoding: 'buffer' })) {
      const path = Buffer.concat([Buffer.from(`${directory}/`), name])
      if (!(await lstat(path)).isDirectory()) continue
      await chmod(path, OPEN_MODE) // to move a directory is to write into it
      const up = `${prefix}${moved++}`
      await rename(path, up)
      closed.push(up)
    }
  }
}
