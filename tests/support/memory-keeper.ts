/** A keeper for a scheduler whose work is only in memory: every change counts as kept at once, and no result is large. */
import type { KeptResults } from '../../control/log/keeper.ts'
import type { Pause } from '../../control/rules/pause.ts'
import type { SchedulerOptions } from '../../control/scheduler/scheduler.ts'
import { GraphGroups } from '../../control/task/graph-groups.ts'
import type { KeptPauses } from '../../control/task/pauses.ts'

/** Pauses that are kept at once. */
export function memoryPauses(): KeptPauses {
  const all = new Map<string, Pause>()
  const pauses: KeptPauses = {
    all,
    onChange: () => {},
    set: async (key, pause) => {
      if (pause === undefined) all.delete(key)
      else all.set(key, pause)
      pauses.onChange(key)
    },
  }
  return pauses
}

type SchedulerKeeper = SchedulerOptions['keeper']

export const memoryKeeper = (
  results: Partial<KeptResults> = {},
  more: Partial<Omit<SchedulerKeeper, 'results'>> = {},
): SchedulerKeeper => ({
  ...{ kept: () => undefined, flush: () => {}, keepFanOut: async () => {}, groups: new GraphGroups() },
  pauses: memoryPauses(),
  ...more,
  results: {
    keep: (_task, result) => result,
    keepInput: async () => undefined,
    keepJson: async () => undefined,
    read: async ({ name }) => ({ lost: `nothing reads ${name}` }),
    ...{ share: () => {}, drop: () => {} },
    ...results,
  },
})
