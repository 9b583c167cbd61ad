/** Polls for a condition, often at first and for a long time. */
import { isZombie, processStat } from '../shared/process/processes.ts'

/** Long enough for a busy machine; a condition that is true comes true long before. */
const PATIENCE_MS = 20_000

/** Asks `probe` until `accept` says yes, and returns what it accepted. Fails with the last answer. */
export async function until<T>(
  probe: () => T | Promise<T>,
  accept: (value: T) => boolean,
  { patienceMs = PATIENCE_MS }: { patienceMs?: number } = {},
): Promise<T> {
  const end = performance.now() + patienceMs
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, 50)) {
    const value = await probe()
    if (accept(value)) return value
    if (performance.now() > end) throw new Error(`not within ${patienceMs} ms; last seen: ${JSON.stringify(value)}`)
    await Bun.sleep(pauseMs)
  }
}

/** Whether a process with this pid is there and not a zombie. */
export async function isAlive(pid: number): Promise<boolean> {
  const stat = processStat(pid)
  return stat !== undefined && !isZombie(stat)
}
