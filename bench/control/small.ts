/**
 * Graphs of 1,000 no-op tasks, independent ones and a chain, on a warmed server: from POST to the end of the last
 * task.
 */
import { median } from '../statistics.ts'
import type { ControlWorkload } from './workload.ts'

const SHAPES = ['wide', 'chain'] as const

export const small: ControlWorkload = {
  name: 'small',
  measures: ({ smallTasks }) => {
    const count = smallTasks.toLocaleString('en')
    return [
      { key: 'small_wide', label: `${count} independent tasks, POST to last end`, unit: 'ms', better: 'lower' },
      { key: 'small_wide_cpu', label: '… CPU of the server', unit: 'ms', better: 'lower' },
      { key: 'small_chain', label: `chain of ${count}, POST to last end`, unit: 'ms', better: 'lower' },
      { key: 'small_chain_cpu', label: '… CPU of the server', unit: 'ms', better: 'lower' },
    ]
  },
  async run(target, { sizes, load, freshPrefix }) {
    await using server = await target.start()
    const { url, pid } = server
    const figures: Record<string, number | null> = {}
    const { smallTasks: tasks, smallRepeats: repeats, smallWarmUps: warmUps } = sizes
    for (const shape of SHAPES) {
      const result = await load.run('graph', { url, pid, shape, tasks, repeats, warmUps, prefix: freshPrefix() })
      figures[`small_${shape}`] = median(result.elapsedMs)
      figures[`small_${shape}_cpu`] = result.serverCpuMs === null ? null : result.serverCpuMs / repeats
    }
    return figures
  },
}
