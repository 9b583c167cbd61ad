/** Flushes the disk, so that syncs of one measurement do not wait for writes of an earlier one. */
import { closeSync, openSync } from 'node:fs'
import { loadLibc } from '../shared/process/libc.ts'

/**
 * Writes all that waits to be written to the file system of `dir`. Nothing else happens meanwhile. The program `sync` would
 * do the same, but could outlive an interrupted bench: nobody can end a process that waits for the disk.
 */
export function settleDisk(dir: string): void {
  const libc = loadLibc({ syncfs: { args: ['i32'], returns: 'i32' } } as const)
  if (libc === null) return // the figures are noisier then, which is no reason to fail
  const fd = openSync(dir, 'r')
  try {
    libc.syncfs(fd)
  } finally {
    closeSync(fd)
  }
}
