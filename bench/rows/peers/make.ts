/**
 * GNU make: a phony target for each task, with a recipe that make knows to do nothing, two at a time. From its start to
 * its end, which includes reading the file; nothing is written down.
 */
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Lifetime } from '../../lifetime.ts'
import { chain, layers, wide } from '../../load/requests.ts'
import { median } from '../../statistics.ts'
import type { Peer } from '../section.ts'
import type { ControlRowSizes } from '../sizes.ts'

/** Runs of each graph at most: make takes longer than a service. */
const MAX_RUNS = 5

export function make(lifetime: Lifetime): Peer<ControlRowSizes>[] {
  const program = Bun.which('make')
  if (program === null) return []
  const graphs: Peer<ControlRowSizes>['work'][string] = async ({ sizes }) => {
    const figures: Record<string, number> = {}
    for (const { key, shape, tasks, repeats } of sizes.graphs) {
      const path = join(lifetime.dir, `Makefile.${key}`)
      writeMakefile(path, { wide, chain, layers }[shape]('t', tasks) as MakeTask[])
      const times: number[] = []
      for (let i = 0; i < Math.min(repeats, MAX_RUNS); i++) {
        const start = performance.now()
        const exitCode = await lifetime.spawn([program, '-rs', '-j2', '-f', path], { env: {} }).exited
        times.push(performance.now() - start)
        if (exitCode !== 0) throw new Error(`make ended with ${exitCode}`)
      }
      figures[key] = median(times)
    }
    return figures
  }
  return [{ name: 'make', description: 'make -rs -j2', work: { graphs } }]
}

interface MakeTask {
  readonly id: string
  readonly depends_on?: readonly string[]
}

function writeMakefile(path: string, tasks: readonly MakeTask[]): void {
  const file = openSync(path, 'w')
  const ids = tasks.map(({ id }) => id).join(' ')
  const rules = tasks.map(({ id, depends_on = [] }) => `${id}: ${depends_on.join(' ')}\n\t@:\n`)
  writeSync(file, `all: ${ids}\n.PHONY: all ${ids}\n${rules.join('')}`)
  closeSync(file)
}
