/**
 * Measures the memory (Pss) of taskmill per running task: 100 tasks sleep.
 *
 * It counts the launchers, which are all processes that the service started except those of tasks, and the growth of a
 * warmed service since before these tasks. The growth is rough, because the garbage collector returns memory at times
 * of its choice.
 */

import { MB } from '../measure.ts'
import { descendantsOf, memoryBytes } from '../process-stats.ts'
import type { ServerTarget } from '../server.ts'
import type { Workload } from '../suite.ts'
import type { RuntimeSizes } from './sizes.ts'
import { endTasks, submitTasks, taskIds, tasksIn } from './tasks.ts'

/** Longer than any round; they are ended. */
const SLEEP_SECONDS = '600'

export const running: Workload<ServerTarget, RuntimeSizes> = {
  name: 'running',
  measures: ({ sleepingTasks }) => [
    {
      key: 'running_memory',
      label: `memory of ours for each of ${sleepingTasks} running tasks`,
      unit: 'MB',
      better: 'lower',
      goal: { figure: 0.4 },
    },
    { key: 'running_launcher', label: '… its launcher', unit: 'MB' },
    { key: 'running_growth', label: '… the growth of the service', unit: 'MB' },
  ],
  async run(target, { sizes, load, freshPrefix }) {
    const { sleepingTasks, warmUpTasks, limitMs, settleMs } = sizes
    await using server = await target.start({ fill: { slots: String(sleepingTasks) } })
    const { url, pid } = server
    if (pid === undefined) return {}
    const warmUp = { clients: 8, tasks: warmUpTasks, warmUpTasks: 0, limitMs, prefix: freshPrefix() }
    await load.run('run', { url, ...warmUp })
    await Bun.sleep(settleMs)
    const before = memoryBytes(pid)

    const ids = taskIds(freshPrefix(), sleepingTasks)
    await submitTasks(url, ids, { execution: { kind: 'command', program: '/bin/sleep', args: [SLEEP_SECONDS] } })
    const tasks = await tasksIn('running', url, ids)
    await Bun.sleep(settleMs)
    const taskPids = new Set(tasks.map((task) => task.pid))
    const launchers = descendantsOf(pid).filter((child) => !taskPids.has(child))
    const launcherMemory = launchers.reduce((sum, launcher) => sum + memoryBytes(launcher), 0)
    const growth = memoryBytes(pid) - before
    await endTasks(url, ids)
    return {
      running_memory: (launcherMemory + growth) / MB / sleepingTasks,
      running_launcher: launcherMemory / MB / sleepingTasks,
      running_growth: growth / MB / sleepingTasks,
    }
  },
}
