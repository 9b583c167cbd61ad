/**
 * Measures the limit of Bun.spawn on this machine: runs /bin/true repeatedly, IN_FLIGHT at a time. Prints one line of
 * JSON (LoopResult). `spawn-loop.c` is the same without Bun. Of another command it reads the output.
 *
 * Usage: spawn-loop.ts IN_FLIGHT COUNT LIMIT_MS [COMMAND...]
 */
import { percentile } from '../statistics.ts'
import type { LoopResult } from './loops.ts'

/** Processes that are started before the clock is. */
const WARM_UPS = 50

const [inFlight, count, limitMs] = process.argv.slice(2, 5).map(Number) as [number, number, number]
const command = process.argv.slice(5)

await spawnAll(WARM_UPS)
const before = process.cpuUsage().user + process.cpuUsage().system
const start = performance.now()
const times = await spawnAll(count)
const elapsedMs = performance.now() - start
const { user, system } = process.cpuUsage()
times.sort()
const result: LoopResult = {
  rate_per_second: (times.length / elapsedMs) * 1000,
  p50_ms: percentile(times, 0.5),
  p99_ms: percentile(times, 0.99),
  own_cpu_us: (user + system - before) / times.length,
}
console.log(JSON.stringify(result))

/** Starts processes, as far as there is time; returns how many milliseconds each took, from start to end. */
async function spawnAll(count: number): Promise<Float64Array> {
  const times = new Float64Array(count)
  const until = performance.now() + limitMs
  let next = 0
  const place = async () => {
    while (next < count && performance.now() < until) {
      const i = next++
      const start = performance.now()
      await (command.length === 0 ? runSilent() : runRead())
      times[i] = performance.now() - start
    }
  }
  await Promise.all(Array.from({ length: inFlight }, place))
  return times.subarray(0, next)
}

async function runSilent(): Promise<void> {
  await Bun.spawn(['/bin/true'], { env: {}, stdio: ['ignore', 'ignore', 'ignore'] }).exited
}

async function runRead(): Promise<void> {
  const child = Bun.spawn(command, { env: {}, stdio: ['ignore', 'pipe', 'ignore'] })
  await Promise.all([new Response(child.stdout).text(), child.exited])
}
