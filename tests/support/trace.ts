/** Checks whether strace can trace system calls, and make them fail, on this machine. */

/** Why not; undefined where they can. */
export const missingTrace: string | undefined =
  Bun.spawnSync(['sh', '-c', 'strace -qq -o /dev/null true']).exitCode === 0
    ? undefined
    : 'strace is not here, or may not trace'
