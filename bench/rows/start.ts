/**
 * Measures the time from spawn to the first answer with an empty data directory, and the idle memory (Pss).
 */
import { MB } from '../measure.ts'
import { memoryBytes } from '../process-stats.ts'
import type { ServerTarget } from '../server.ts'
import { median } from '../statistics.ts'
import type { Workload } from '../suite.ts'

/** Milliseconds after which a started server is idle. */
const IDLE_AFTER_MS = 300

export const start: Workload<ServerTarget, { readonly starts: number }> = {
  name: 'start',
  measures: () => [
    { key: 'start_ready', label: 'ready after start', unit: 'ms', better: 'lower', goal: { timesFloor: 1.4 } },
    { key: 'start_idle_memory', label: 'memory, idle', unit: 'MB', better: 'lower', goal: { timesFloor: 1.5 } },
  ],
  async run(target, { sizes }) {
    const readyMs: number[] = []
    let idleMemory: number | null = null
    for (let i = 0; i < sizes.starts; i++) {
      await using server = await target.start()
      if (server.readyMs === undefined) return { start_ready: null, start_idle_memory: null }
      readyMs.push(server.readyMs)
      if (i < sizes.starts - 1) continue
      await Bun.sleep(IDLE_AFTER_MS)
      idleMemory = memoryBytes(server.pid!) / MB
    }
    return { start_ready: median(readyMs), start_idle_memory: idleMemory }
  },
}
