/** What a task has written to its workspace, as disk.c counts it, but without removed files that are still open. */
import { lstatSync, readdirSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { systemCodeOf } from '../../shared/contract/errors.ts'

const BLOCK_BYTES = 512

/** Directories below each other that are walked, as DISK_MAX_DEPTH of the launcher. */
const MAX_DEPTH = 256

export interface DiskUse {
  readonly bytes: number
  /** There are directories that are too deep, or have paths that are too long, to be counted. */
  readonly isTooDeep: boolean
}

/**
 * Bytes that the file system allocated for `directory` and all below it. Entries that disappear meanwhile count nothing,
 * nor do those in directories that are closed to the user of the service, too.
 */
export function diskUse(directory: string): DiskUse {
  let bytes = 0
  let isTooDeep = false
  const left = [{ path: directory, depth: 0 }]
  for (let at = left.pop(); at !== undefined; at = left.pop()) {
    const { path, depth } = at
    try {
      const status = lstatSync(path)
      const isDirectory = status.isDirectory()
      bytes += (status.blocks * BLOCK_BYTES) / (isDirectory ? 1 : Math.max(1, status.nlink))
      if (isDirectory && depth === MAX_DEPTH) isTooDeep = true
      else if (isDirectory)
        left.push(...readdirSync(path).map((name) => ({ path: join(path, name), depth: depth + 1 })))
    } catch (error) {
      if (systemCodeOf(error) === 'ENAMETOOLONG') isTooDeep = true
    }
  }
  return { bytes, isTooDeep }
}

export function freeBytes(directory: string): number {
  const { bfree, bsize } = statfsSync(directory)
  return bfree * bsize
}
