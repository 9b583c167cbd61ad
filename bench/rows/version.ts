/** How long `--version` takes, as a whole process, beside a compiled program that prints one line. */

import { median } from '../statistics.ts'
import type { Target, Workload } from '../suite.ts'
import type { ControlRowSizes } from './sizes.ts'

/** A target that has a program. */
export interface Versioned extends Target {
  readonly versionCommand: readonly string[]
}

export const version: Workload<Versioned, ControlRowSizes> = {
  name: 'version',
  measures: () => [
    {
      ...{ key: 'version', label: '`--version` (floor: hello)', unit: 'ms', better: 'lower' },
      goal: { timesFloor: 1.5 },
    },
  ],
  async run({ versionCommand }, { sizes }) {
    const times: number[] = []
    for (let i = 0; i < sizes.starts; i++) {
      const start = performance.now()
      const { exitCode } = Bun.spawnSync([...versionCommand], { stdout: 'ignore' })
      times.push(performance.now() - start)
      if (exitCode !== 0) throw new Error(`exit code ${exitCode}`)
    }
    return { version: median(times) }
  },
}
