/**
 * BullMQ with a Redis of its own. Redis syncs its log once a second, as BullMQ recommends, so a crash loses the jobs of the
 * last second. The jobs do nothing, are added in bulk, and have one worker. A chain is a flow.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Lifetime } from '../../lifetime.ts'
import { Connection } from '../../load/connection.ts'
import { freePort } from '../../server.ts'
import { median } from '../../statistics.ts'
import type { Peer } from '../section.ts'
import type { ControlRowSizes } from '../sizes.ts'

/** Maximum jobs of a graph. A larger graph takes longer and shows nothing else. */
const MAX_JOBS = 20_000

/** Maximum measured runs of a graph. One more run comes first, to warm up. */
const MAX_RUNS = 3

/** Milliseconds for all runs of a graph. A job that never ends must not hold up the report. */
const GRAPH_MS = 60_000

/** Milliseconds in which Redis must listen, and between two looks. */
const START_MS = 10_000
const LOOK_MS = 20

/** `directory` has bullmq and ioredis installed. Empty: there is none. */
export async function bullmq(directory: string, lifetime: Lifetime): Promise<Peer<ControlRowSizes>[]> {
  const redis = Bun.which('redis-server')
  const library = resolved(directory)
  if (redis === null || library === undefined) return []
  const graphs: Peer<ControlRowSizes>['work'][string] = async ({ sizes }) => {
    const port = freePort()
    const dir = join(lifetime.dir, `redis-${port}`)
    mkdirSync(dir)
    const server = lifetime.spawn([
      ...[redis, '--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', ''],
      ...['--appendonly', 'yes', '--appendfsync', 'everysec'],
    ])
    await listens(port)
    const figures: Record<string, number> = {}
    for (const { key, shape, tasks, repeats } of sizes.graphs) {
      if (shape === 'layers' || tasks > MAX_JOBS) continue // a job of a flow has one parent
      const out = join(dir, `${key}.json`)
      const program = join(import.meta.dir, 'bullmq-graphs.ts')
      const runs = String(shape === 'wide' ? Math.min(repeats, MAX_RUNS) : 1) // a flow takes seconds
      const child = lifetime.spawn(
        [process.execPath, program, library, String(port), shape, String(tasks), runs, out],
        { stderr: 'ignore', timeout: GRAPH_MS, killSignal: 'SIGKILL' }, // its errors repeat without end
      )
      const exitCode = await child.exited
      if (exitCode !== 0) throw new Error(`the jobs of bullmq ended with ${exitCode}`)
      figures[key] = median((await Bun.file(out).json()) as number[])
    }
    await lifetime.kill(server)
    return figures
  }
  return [{ name: 'bullmq', description: 'bullmq, one worker; redis-server --appendfsync everysec', work: { graphs } }]
}

function resolved(directory: string): string | undefined {
  try {
    if (directory === '') return undefined
    Bun.resolveSync('ioredis', directory) // which bullmq loads late
    return Bun.resolveSync('bullmq', directory)
  } catch {
    return undefined
  }
}

async function listens(port: number): Promise<void> {
  for (const until = performance.now() + START_MS; performance.now() < until; await Bun.sleep(LOOK_MS)) {
    try {
      using _ = await Connection.open(`http://127.0.0.1:${port}`)
      return
    } catch {} // not yet
  }
  throw new Error('redis-server does not listen')
}
