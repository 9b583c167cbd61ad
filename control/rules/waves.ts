/**
 * The waves of a graph: each task is in the first wave after those of its dependencies. Pure; linear in tasks and
 * edges.
 */
import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import type { Edges } from './edges.ts'

/**
 * The ids of the tasks of each wave, in the order of the graph. `order` comes from `dependencyOrder`. `wavesInside`: the waves
 * of what runs in place of a task.
 */
export function* wavesOf(
  { dependenciesStart, dependencies }: Pick<Edges, 'dependenciesStart' | 'dependencies'>,
  order: Uint32Array,
  idAt: (position: number) => string,
  wavesInside: (position: number) => readonly (readonly string[])[] | undefined = () => undefined,
): Steps<string[][]> {
  const waveOf = new Uint32Array(order.length)
  let steps = 0
  for (const task of order) {
    let wave = 0
    for (let d = dependenciesStart[task]!; d < dependenciesStart[task + 1]!; d++) {
      const dependency = dependencies[d]!
      wave = Math.max(wave, waveOf[dependency]! + (wavesInside(dependency)?.length ?? 1))
      if (isYieldDue(steps++)) yield
    }
    waveOf[task] = wave
    if (isYieldDue(steps++)) yield
  }
  const waves: string[][] = []
  for (let task = 0; task < waveOf.length; task++) {
    const inside = wavesInside(task) ?? [[idAt(task)]]
    for (const [step, ids] of inside.entries()) {
      const wave = waveOf[task]! + step
      while (waves.length <= wave) waves.push([])
      for (const id of ids) waves[wave]!.push(id)
    }
    if (isYieldDue(task)) yield
  }
  return waves
}
