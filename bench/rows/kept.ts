/**
 * A service that keeps 100,000 ended tasks: its memory, GET of one of them, and its restart. Memory is Pss after a quiet
 * second. The floor reads its journal when it starts again.
 */
import { onOneCore } from '../affinity.ts'
import { MB, type Measure } from '../measure.ts'
import { memoryBytes } from '../process-stats.ts'
import type { ServerTarget } from '../server.ts'
import type { Workload } from '../suite.ts'
import type { ControlRowSizes } from './sizes.ts'

/** A quarter of what the first release took. */
const RESTART_GOAL_MS = 290

/** Times the rate of the floor, by clients. */
const READ_GOALS: Readonly<Record<number, number>> = { 1: 0.75, 8: 0.82 }

export const kept: Workload<ServerTarget, ControlRowSizes> = {
  name: 'kept',
  measures: ({ keptTasks, reads }) => {
    const count = keptTasks.toLocaleString('en')
    const memory = { unit: 'MB', better: 'lower', goal: { timesFloor: 1.36 } } as const
    return [
      {
        ...{
          key: 'restart_ready',
          label: `ready after a restart with ${count} ended tasks`,
          unit: 'ms',
          better: 'lower',
        },
        goal: { figure: RESTART_GOAL_MS },
      },
      { key: 'kept_memory', label: `memory with ${count} ended tasks`, ...memory },
      { key: 'restart_memory', label: '… after a restart', ...memory },
      ...[...reads.keys()].map(
        (clients): Measure => ({
          key: `read_${clients}`,
          label: `GET one of ${count} tasks, ${clients} ${clients === 1 ? 'client' : 'clients'}`,
          ...{ unit: '/s', better: 'higher', goal: { timesFloor: READ_GOALS[clients]! } },
        }),
      ),
    ]
  },
  async run(target, { sizes, load, freshPrefix }) {
    const { keptTasks, reads, settleMs } = sizes
    const prefix = freshPrefix()
    await using before = await target.start()
    const { url, dataDir, pid } = before
    await load.run('graph', { url, shape: 'wide', tasks: keptTasks, repeats: 1, warmUps: 0, prefix })
    await Bun.sleep(settleMs)
    const figures: Record<string, number> = { kept_memory: memoryBytes(pid!) / MB }
    const path = `/tasks/${prefix}-0-${keptTasks / 2}`
    for (const [clients, requests] of reads) {
      const job = { url, path, clients, requests, warmUpRequests: requests / 2 }
      const measure = () => load.run('get', job)
      const { ratePerSecond } = clients === 1 ? await onOneCore([pid!, load.pid], measure) : await measure()
      figures[`read_${clients}`] = ratePerSecond
    }
    await before.stop()
    await using after = await target.start({ dataDir })
    if (!(await fetch(`${after.url}${path}`)).ok) throw new Error('a task is gone after the restart')
    await Bun.sleep(settleMs)
    return { ...figures, restart_ready: after.readyMs!, restart_memory: memoryBytes(after.pid!) / MB }
  },
}
