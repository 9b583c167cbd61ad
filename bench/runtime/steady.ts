/**
 * The service after a while: it removes tasks as fast as it takes them. A file system may be slower then: ext4 does not
 * hand out an inode again for minutes after it was freed, and each new file searches past all of those.
 *
 * One service keeps tasks for a second. The first tasks, before anything is removed, are compared with the last.
 */
import { systemMs } from '../process-stats.ts'
import type { ServerTarget } from '../server.ts'
import type { Tools, Workload } from '../suite.ts'
import type { RuntimeSizes } from './sizes.ts'

const SLOTS = 4

/** More tasks than fit into a slice. */
const MAX_SLICE_TASKS = 20_000

/** Filled in for the seconds that a task is kept. */
export const RETENTION = '{retention}'

interface Slice {
  readonly ratePerSecond: number
  readonly systemMs: number
}

export const steady: Workload<ServerTarget, RuntimeSizes> = {
  name: 'steady',
  measures: () => [
    { key: 'steady_rate', label: `/bin/true, ${SLOTS} slots, creating and removing`, unit: '/s', better: 'higher' },
    {
      key: 'steady_share',
      label: '… to the first tasks of the service',
      unit: 'ratio',
      better: 'higher',
      goal: { figure: 0.85 },
    },
    { key: 'steady_system', label: '… system time for one', unit: 'µs', better: 'lower' },
    { key: 'steady_system_share', label: '… to the first tasks of the service', unit: 'ratio', better: 'lower' },
  ],
  async run(target, tools) {
    if (!target.description.includes(RETENTION)) return {}
    await using server = await target.start({ fill: { slots: String(SLOTS), retention: '1' } })
    const { url, pid } = server
    if (pid === undefined) return {}
    const until = performance.now() + tools.sizes.steadyMs
    const first = await slice(url, pid, tools, tools.sizes.warmUpTasks)
    let last: Slice
    do last = await slice(url, pid, tools, 0)
    while (performance.now() < until)
    return {
      steady_rate: last.ratePerSecond,
      steady_share: last.ratePerSecond / first.ratePerSecond,
      steady_system: last.systemMs * 1000,
      steady_system_share: last.systemMs / first.systemMs,
    }
  },
}

async function slice(
  url: string,
  pid: number,
  { load, sizes, freshPrefix }: Tools<RuntimeSizes>,
  warmUpTasks: number,
): Promise<Slice> {
  const job = { url, pid, clients: SLOTS * 2, limitMs: sizes.limitMs, warmUpTasks: 0 }
  if (warmUpTasks > 0) await load.run('run', { ...job, tasks: warmUpTasks, prefix: freshPrefix() })
  const before = systemMs(pid)
  const start = performance.now()
  const { ratePerSecond } = await load.run('run', { ...job, tasks: MAX_SLICE_TASKS, prefix: freshPrefix() })
  const tasks = (ratePerSecond * (performance.now() - start)) / 1000
  return { ratePerSecond, systemMs: (systemMs(pid) - before) / tasks }
}
