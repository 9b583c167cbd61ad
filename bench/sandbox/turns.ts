/** Times commands in turns, launch by launch, so that other work on the machine affects all of them alike. */
import { closeSync, openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { compiledC } from '../compiled-c.ts'
import type { Lifetime } from '../lifetime.ts'

/** What turns.c prints of a command. */
export interface Turn {
  readonly p50_ms: number
  readonly p99_ms: number
  readonly min_ms: number
  readonly rounds: number
}

export interface Turns {
  /** Milliseconds that a launch of each command takes; `{n}` in them is the number of the launch. */
  time(commands: readonly (readonly string[])[], launches: number, limitMs: number): Promise<Turn[]>
}

/** Undefined where there is no compiler. */
export async function compiledTurns(lifetime: Lifetime): Promise<Turns | undefined> {
  const program = await compiledC(join(import.meta.dir, 'turns.c'), [], lifetime)
  if (program === undefined) return undefined
  const resultPath = join(lifetime.dir, 'turns.json')
  return {
    async time(commands, launches, limitMs) {
      const stdout = openSync(resultPath, 'w')
      const all = commands.flatMap((command) => [':::', ...command])
      const child = lifetime.spawn([program, String(launches), String(limitMs), ...all], { stdout })
      closeSync(stdout)
      const exitCode = await child.exited
      if (exitCode !== 0) throw new Error(`the turns ended with exit code ${exitCode}`)
      const lines = (await readFile(resultPath, 'utf8')).trim().split('\n')
      return lines.map((line) => JSON.parse(line) as Turn)
    },
  }
}
