/**
 * Measures `/bin/true` per second, with twice as many clients as slots, so that a task always waits, on fresh, warmed
 * services. For a loop the slots are the processes that run at the same time.
 */
import type { Measure } from '../measure.ts'
import { isLoop, type RuntimeWorkload } from './targets.ts'

const SLOTS = [4, 16] as const

export const rate: RuntimeWorkload = {
  name: 'rate',
  measures: () =>
    SLOTS.flatMap((slots): Measure[] => [
      {
        key: `rate_${slots}`,
        label: `/bin/true, ${slots} slots, ${slots * 2} clients`,
        unit: '/s',
        better: 'higher',
        goal: { timesFloor: 0.9 },
      },
      { key: `rate_${slots}_cpu`, label: '… CPU of the service for one', unit: 'µs', better: 'lower' },
      { key: `rate_${slots}_children_cpu`, label: '… CPU of launcher and task for one', unit: 'µs', better: 'lower' },
      { key: `rate_${slots}_generator`, label: '… the generator took', unit: '% of a core' },
    ]),
  async run(target, { sizes, load, freshPrefix }) {
    const { rateTasks: tasks, warmUpTasks, limitMs } = sizes
    const figures: Record<string, number | null> = {}
    for (const slots of SLOTS) {
      if (isLoop(target)) {
        const { rate_per_second, own_cpu_us } = await target.run({ inFlight: slots, count: tasks, limitMs })
        figures[`rate_${slots}`] = rate_per_second
        figures[`rate_${slots}_cpu`] = own_cpu_us
        continue
      }
      await using server = await target.start({ fill: { slots: String(slots) } })
      const { url, pid } = server
      const job = { url, pid, clients: slots * 2, tasks, warmUpTasks, limitMs, prefix: freshPrefix() }
      const { ratePerSecond, serverCpuMs, serverChildrenCpuMs, ownCoreShare } = await load.run('run', job)
      figures[`rate_${slots}`] = ratePerSecond
      figures[`rate_${slots}_cpu`] = serverCpuMs === null ? null : serverCpuMs * 1000
      figures[`rate_${slots}_children_cpu`] = serverChildrenCpuMs === null ? null : serverChildrenCpuMs * 1000
      figures[`rate_${slots}_generator`] = ownCoreShare * 100
    }
    return figures
  },
}
