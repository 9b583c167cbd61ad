/** Quiet on the disk: what earlier work left to be written must not be waited for by the syncs of the next. */

/** Writes all that waits to be written to the file system of `dir`. */
export async function settleDisk(dir: string): Promise<void> {
  // coreutils does it; where that is missing the figures are noisier, which is no reason to fail.
  if (Bun.which('sync') === null) return
  await Bun.spawn(['sync', '--file-system', dir], { stdio: ['ignore', 'ignore', 'ignore'] }).exited
}
