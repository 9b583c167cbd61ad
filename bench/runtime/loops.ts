/** The limit of the machine: loops that only start a command, with Bun.spawn and with posix_spawn. */
import { closeSync, openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { compiledC } from '../compiled-c.ts'
import type { Lifetime } from '../lifetime.ts'
import type { Target } from '../suite.ts'

/** What a loop prints. */
export interface LoopResult {
  readonly rate_per_second: number
  readonly p50_ms: number
  readonly p99_ms: number
  /** CPU time of the loop itself for one process. */
  readonly own_cpu_us: number
}

export interface LoopJob {
  /** Processes at the same time. */
  readonly inFlight: number
  readonly count: number
  /** Milliseconds after which none is started any more. */
  readonly limitMs: number
}

export interface SpawnLoop extends Target {
  run(job: LoopJob): Promise<LoopResult>
}

function spawnLoop(
  name: string,
  program: readonly string[],
  started: readonly string[],
  lifetime: Lifetime,
  env: Readonly<Record<string, string>> = {},
): SpawnLoop {
  const resultPath = join(lifetime.dir, `${name}.json`)
  return {
    name,
    description: program.map((part) => basename(part)).join(' '),
    async run({ inFlight, count, limitMs }) {
      const stdout = openSync(resultPath, 'w')
      const numbers = [inFlight, count, limitMs].map(String)
      const child = lifetime.spawn([...program, ...numbers, ...started], { stdout, env })
      closeSync(stdout)
      const exitCode = await child.exited
      if (exitCode !== 0) throw new Error(`the loop ended with exit code ${exitCode}`)
      return JSON.parse(await readFile(resultPath, 'utf8')) as LoopResult
    },
  }
}

/** A loop in C that starts `started`; undefined where there is no compiler. */
export async function commandLoop(
  name: string,
  started: readonly string[],
  lifetime: Lifetime,
  env?: Readonly<Record<string, string>>,
): Promise<SpawnLoop | undefined> {
  const loop = await compiledC(join(import.meta.dir, 'spawn-loop.c'), [], lifetime)
  return loop === undefined ? undefined : spawnLoop(name, [loop], started, lifetime, env)
}

/** The same with Bun.spawn, which reads the output. */
export const bunCommandLoop = (name: string, started: readonly string[], lifetime: Lifetime): SpawnLoop =>
  spawnLoop(name, [process.execPath, join(import.meta.dir, 'spawn-loop.ts')], started, lifetime)
