/** Polls for a condition, often at first and for a long time. */
import { isZombie, processStat } from '../shared/process/processes.ts'

/** Long enough for a busy machine; a condition that is true comes true long before. */
const PATIENCE_MS = 20_000

/**
 * Asks `probe` until its answer is the wanted one, and returns it: one that `wanted` says yes to, one that equals `wanted`, or
 * without `wanted` any but undefined, null and false. Fails with the last answer.
 */
export async function until<T>(probe: () => T | Promise<T>): Promise<Exclude<T, undefined | null | false>>
export async function until<T>(
  probe: () => T | Promise<T>,
  wanted: ((value: T) => boolean) | NoInfer<T>,
  options?: { patienceMs?: number },
): Promise<T>
export async function until<T>(
  probe: () => T | Promise<T>,
  wanted: ((value: T) => boolean) | T = (value) => value !== undefined && value !== null && value !== false,
  { patienceMs = PATIENCE_MS }: { patienceMs?: number } = {},
): Promise<T> {
  const accept = wanted instanceof Function ? wanted : (value: T) => Bun.deepEquals(value, wanted)
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
