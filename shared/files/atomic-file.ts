/** Replaces a file atomically: a reader, or a crash, sees the old one or the new one. */
import { closeSync, fsyncSync, openSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { type FileHandle, open, rename, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Writes a new file, syncs it, renames it and syncs the directory. `write` fills the file. If it throws, the old file stays
 * and the new one is removed. A path must not be replaced twice at the same time.
 */
export async function replaceFile(path: string, write: (file: FileHandle) => Promise<void>): Promise<void> {
  const aside = `${path}.new`
  const file = await open(aside, 'w', 0o600)
  try {
    await write(file)
    await file.sync()
  } catch (error) {
    await file.close()
    await unlink(aside)
    throw error
  }
  await file.close()
  await rename(aside, path)
  await syncDirectory(dirname(path))
}

/** The same synchronously, for small files. `aside` is the path of the new file until it is whole. */
export function replaceFileNow(path: string, content: string | Uint8Array, aside = `${path}.new`): void {
  const file = openSync(aside, 'w', 0o600)
  try {
    try {
      writeFileSync(file, content)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
  } catch (error) {
    unlinkSync(aside)
    throw error
  }
  renameSync(aside, path)
  syncDirectoryNow(dirname(path))
}

/** Syncs the directory `path`, so that renames, new files and removals in it survive a power failure. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

/** The same synchronously. */
export function syncDirectoryNow(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}
