/** Waits until a service that was started is ready. */
import { GrowingPause } from '../../shared/http/growing-pause.ts'
import { PROBE_TIMEOUT_MS, type Probe, probe, type Target } from '../probe.ts'

/** Milliseconds between two probes of a service that starts: short first for quick starts, longer for slow ones. */
const PAUSES = { firstMs: 10, longestMs: 1_000 }

/** Least milliseconds for a probe, also for the last one. */
const MIN_PROBE_MS = 100

/** Probes a started service until it is ready, has ended, or `deadline` has passed. `endedWith` tells how it ended. */
export async function readiness(
  target: Target,
  endedWith: Promise<string> | undefined,
  deadline: number,
): Promise<{ last: Probe; exitReport: string | undefined }> {
  let exitReport: string | undefined
  const ended = endedWith?.then((words) => {
    exitReport = words
  })
  const pauses = new GrowingPause(PAUSES)
  for (;;) {
    const hasEnded = exitReport !== undefined
    const remainingMs = deadline - performance.now()
    const last = await probe(target, Math.min(PROBE_TIMEOUT_MS, Math.max(remainingMs, MIN_PROBE_MS)))
    if (last.outcome === 'ready' || hasEnded || performance.now() >= deadline) return { last, exitReport }
    const pause = Bun.sleep(Math.min(pauses.next(), Math.max(0, deadline - performance.now())))
    await (ended === undefined ? pause : Promise.race([pause, ended]))
  }
}
