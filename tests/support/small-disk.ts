/** Mounts a small file system for tests of a full disk. Only root can do that. */
import { appendFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** The source of these mounts, as `mountinfo` names it. */
export const SMALL_DISK = 'taskmill-test'

/** Whether this machine lets us mount one. */
export const canMount: boolean = process.platform === 'linux' && process.getuid?.() === 0

interface SmallDisk extends Disposable {
  readonly path: string
  /** The file that fills it. */
  readonly ballast: string
  /** Takes all that is left, until `free`. */
  fill(): void
  free(): void
}

export function smallDisk(path: string, bytes: number): SmallDisk {
  mkdirSync(path)
  const mounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', `size=${bytes}`, SMALL_DISK, path])
  if (mounted.exitCode !== 0) throw new Error(`cannot mount a small file system: ${mounted.stderr}`)
  const ballast = join(path, 'ballast')
  return {
    path,
    ballast,
    fill: () => fillDisk(ballast),
    free: () => rmSync(ballast, { force: true }),
    [Symbol.dispose]: () => void Bun.spawnSync(['umount', '-l', path]),
  }
}

/** Writes to `path` until the disk takes no more. */
function fillDisk(path: string): void {
  for (const size of [1024 * 1024, 4096, 1]) {
    try {
      for (;;) appendFileSync(path, Buffer.alloc(size))
    } catch {
      // full for this size
    }
  }
}
