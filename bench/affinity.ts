/**
 * Pins a single client and its server to one core.
 *
 * Client and server take turns, so one core suffices. Unpinned they sometimes share a core and sometimes do not. On
 * two cores most of each answer is the wake-up of a sleeping core: a factor of three between rounds that has nothing
 * to do with the server.
 */
import { availableParallelism } from 'node:os'

/** Runs `work` while all threads of these processes have one core, the same for all of them. */
export async function onOneCore<T>(pids: readonly number[], work: () => Promise<T>): Promise<T> {
  const last = availableParallelism() - 1
  pin(pids, `${last}`)
  try {
    return await work()
  } finally {
    pin(pids, `0-${last}`)
  }
}

/** util-linux does it; where that is missing or forbids it the figures are noisier, which is no reason to fail. */
function pin(pids: readonly number[], cores: string): void {
  if (Bun.which('taskset') === null) return
  for (const pid of pids) Bun.spawnSync(['taskset', '--all-tasks', '--cpu-list', '--pid', cores, String(pid)])
}
