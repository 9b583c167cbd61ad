/** A graph of one no-op task, from POST until a held GET says success; service and client share one core. */
import { onOneCore } from '../affinity.ts'
import type { ServerTarget } from '../server.ts'
import type { Workload } from '../suite.ts'
import type { ControlRowSizes } from './sizes.ts'

/** Milliseconds; more than it takes. */
const LIMIT_MS = 10_000

export const one: Workload<ServerTarget, ControlRowSizes> = {
  name: 'one',
  measures: () => [
    {
      ...{ key: 'one_p50', label: 'one no-op task until seen, on one core: half within', unit: 'ms', better: 'lower' },
      goal: { timesFloor: 1.1 },
    },
    { key: 'one_p99', label: '… 99 % within', unit: 'ms', better: 'lower', goal: { timesFloor: 2 } },
  ],
  async run(target, { sizes, load, freshPrefix }) {
    await using server = await target.start()
    const { url, pid } = server
    const { oneTasks: tasks, oneWarmUps: warmUpTasks } = sizes
    const job = { url, clients: 1, tasks, warmUpTasks, limitMs: LIMIT_MS, task: { type: 'noop' } }
    const { p50Ms, p99Ms } = await onOneCore([pid!, load.pid], () => load.run('one', { ...job, prefix: freshPrefix() }))
    return { one_p50: p50Ms, one_p99: p99Ms }
  },
}
