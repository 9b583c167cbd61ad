/** Replacing a file so that a reader, or a crash, sees the old one or the new one and nothing in between. */
import { closeSync, fsyncSync, openSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { type FileHandle, open, rename, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Writes aside, syncs, renames, and syncs the directory. `write` fills the file; when it throws, the old file stays and
 * the one aside is removed. Only one replacement of a path may be under way at a time.
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

/** The same before it returns, for a few bytes that somebody who cannot wait relies on. */
export function replaceFileNow(path: string, text: string): void {
  const aside = `${path}.new`
  const file = openSync(aside, 'w', 0o600)
  try {
    try {
      writeFileSync(file, text)
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

/** Makes renames, new files and removals in `path` survive a power cut. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

/** The same before it returns. */
export function syncDirectoryNow(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}
