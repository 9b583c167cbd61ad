/**
 * A restart with 100,000 ended tasks: from spawn to the first answer, CPU, and memory after a quiet second. Servers that
 * keep nothing over a restart, such as the floor without a journal, have no figures.
 */
import { MB } from '../measure.ts'
import { cpuMs, memoryBytes } from '../process-stats.ts'
import type { ControlWorkload } from './workload.ts'

const NOTHING = { restart_ready: null, restart_cpu: null, restart_memory: null }

export const restart: ControlWorkload = {
  name: 'restart',
  measures: ({ largeTasks }) => [
    {
      key: 'restart_ready',
      label: `ready after a restart with ${largeTasks.toLocaleString('en')} ended tasks`,
      unit: 'ms',
      better: 'lower',
    },
    { key: 'restart_cpu', label: '… CPU of the server', unit: 'ms', better: 'lower' },
    { key: 'restart_memory', label: '… memory', unit: 'MB', better: 'lower' },
  ],
  async run(target, { sizes, load, freshPrefix }) {
    const prefix = freshPrefix()
    await using before = await target.start()
    const { url, dataDir } = before
    if (dataDir === undefined) return NOTHING
    await load.run('graph', { url, shape: 'wide', tasks: sizes.largeTasks, repeats: 1, warmUps: 0, prefix })
    await before.stop()
    await using after = await target.start({ dataDir })
    const cpu = cpuMs(after.pid!)
    const tasks = (await (await fetch(`${after.url}/tasks?limit=1`)).json()) as readonly unknown[]
    if (tasks.length === 0) return NOTHING
    await Bun.sleep(sizes.settleMs)
    return { restart_ready: after.readyMs!, restart_cpu: cpu, restart_memory: memoryBytes(after.pid!) / MB }
  },
}
