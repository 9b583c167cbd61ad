/** Whether system calls can be watched, and made to fail, here. */

/** Why not; undefined where they can. */
export const missingTrace: string | undefined =
  Bun.spawnSync(['sh', '-c', 'strace -qq -o /dev/null true']).exitCode === 0
    ? undefined
    : 'strace is not here, or may not trace'
