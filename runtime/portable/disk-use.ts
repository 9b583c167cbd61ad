/** What a task has written to its workspace, as disk.c counts it, but without removed files that are still open. */
import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const BLOCK_BYTES = 512

/** Bytes that the file system allocated for `directory` and all below it. Entries that disappear meanwhile count nothing. */
export function allocatedBytes(directory: string): number {
  let bytes = 0
  const left = [directory]
  for (let at = left.pop(); at !== undefined; at = left.pop()) {
    const status = lstatSync(at, { throwIfNoEntry: false })
    if (status === undefined) continue
    const isDirectory = status.isDirectory()
    bytes += (status.blocks * BLOCK_BYTES) / (isDirectory ? 1 : Math.max(1, status.nlink))
    if (isDirectory) left.push(...entriesOf(at).map((name) => join(at, name)))
  }
  return bytes
}

function entriesOf(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return [] // removed, or closed to the user of the service too
  }
}
