/** Flushes the disk, so that syncs of one measurement do not wait for writes of an earlier one. */

/** Writes all that waits to be written to the file system of `dir`. */
export async function settleDisk(dir: string): Promise<void> {
  // coreutils does it; where that is missing the figures are noisier, which is no reason to fail.
  if (Bun.which('sync') === null) return
  await Bun.spawn(['sync', '--file-system', dir], { stdio: ['ignore', 'ignore', 'ignore'] }).exited
}
