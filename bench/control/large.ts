/**
 * One graph of 100,000 independent no-op tasks on a fresh server: time, CPU and memory.
 *
 * The only other requests ask whether the graph has ended. Peak memory is VmHWM. The memory per task is the growth of
 * Pss from before the graph to a quiet second after it, divided by the number of tasks. It is rough, because the
 * garbage collector returns memory at times of its choice.
 */

import { MB } from '../measure.ts'
import { cpuMs, memoryBytes, peakMemoryBytes } from '../process-stats.ts'
import type { ControlWorkload } from './workload.ts'

export const large: ControlWorkload = {
  name: 'large',
  measures: ({ largeTasks }) => {
    const count = largeTasks.toLocaleString('en')
    return [
      { key: 'large_wide', label: `${count} independent tasks, POST to last end`, unit: 'ms', better: 'lower' },
      { key: 'large_cpu', label: '… CPU of the server', unit: 'ms', better: 'lower' },
      { key: 'large_cpu_settled', label: '… and until it is quiet again', unit: 'ms', better: 'lower' },
      { key: 'large_peak', label: '… peak memory', unit: 'MB', better: 'lower' },
      { key: 'large_kept', label: '… memory kept for a task', unit: 'bytes', better: 'lower' },
    ]
  },
  async run(target, { sizes, load, freshPrefix }) {
    await using server = await target.start()
    const { url, pid } = server
    const cpuBefore = pid === undefined ? null : cpuMs(pid)
    const memoryBefore = pid === undefined ? null : memoryBytes(pid)
    const job = { url, pid, shape: 'wide', tasks: sizes.largeTasks, repeats: 1, warmUps: 0 } as const
    const { elapsedMs, serverCpuMs } = await load.run('graph', { ...job, prefix: freshPrefix() })
    await Bun.sleep(sizes.settleMs)
    return {
      large_wide: elapsedMs[0]!,
      large_cpu: serverCpuMs,
      large_cpu_settled: cpuBefore === null ? null : cpuMs(pid!) - cpuBefore,
      large_peak: pid === undefined ? null : peakMemoryBytes(pid) / MB,
      large_kept: memoryBefore === null ? null : (memoryBytes(pid!) - memoryBefore) / sizes.largeTasks,
    }
  },
}
