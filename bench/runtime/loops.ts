/** The limit of the machine: loops that only start processes, with Bun.spawn and with posix_spawn. */
import { closeSync, openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
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

/** The loop in C only where there is a compiler, which nothing else needs. */
export async function spawnLoops(lifetime: Lifetime): Promise<SpawnLoop[]> {
  const byC = await compiledLoop(lifetime)
  return [
    spawnLoop('Bun.spawn', BY_BUN, lifetime),
    ...(byC === undefined ? [] : [spawnLoop('posix_spawn', { command: [byC], description: 'spawn-loop.c' }, lifetime)]),
  ]
}

interface LoopProgram {
  readonly command: readonly string[]
  readonly description: string
  /** What it starts; by default /bin/true. */
  readonly started?: readonly string[]
  /** Of the started; by default empty. */
  readonly env?: Readonly<Record<string, string>>
}

const BY_BUN: LoopProgram = {
  command: [process.execPath, join(import.meta.dir, 'spawn-loop.ts')],
  description: 'bun spawn-loop.ts',
}

function spawnLoop(
  name: string,
  { command, description, started = [], env = {} }: LoopProgram,
  lifetime: Lifetime,
): SpawnLoop {
  const resultPath = join(lifetime.dir, `${name}.json`)
  return {
    name,
    description,
    async run({ inFlight, count, limitMs }) {
      const stdout = openSync(resultPath, 'w')
      const numbers = [inFlight, count, limitMs].map(String)
      const child = lifetime.spawn([...command, ...numbers, ...started], { stdout, env })
      closeSync(stdout)
      const exitCode = await child.exited
      if (exitCode !== 0) throw new Error(`the loop ended with exit code ${exitCode}`)
      return JSON.parse(await readFile(resultPath, 'utf8')) as LoopResult
    },
  }
}

const compiledLoop = (lifetime: Lifetime): Promise<string | undefined> =>
  compiledC(join(import.meta.dir, 'spawn-loop.c'), [], lifetime)

/** A loop in C that starts another command than /bin/true; undefined where there is no compiler. */
export async function commandLoop(
  name: string,
  started: readonly string[],
  lifetime: Lifetime,
  env: Readonly<Record<string, string>> = {},
): Promise<SpawnLoop | undefined> {
  const loop = await compiledLoop(lifetime)
  const description = 'spawn-loop.c'
  return loop === undefined ? undefined : spawnLoop(name, { command: [loop], description, started, env }, lifetime)
}

/** The same with Bun.spawn, which reads the output. */
export const bunCommandLoop = (name: string, started: readonly string[], lifetime: Lifetime): SpawnLoop =>
  spawnLoop(name, { ...BY_BUN, started }, lifetime)
