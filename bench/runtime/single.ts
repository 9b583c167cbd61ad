/**
 * One client that runs `/bin/true` on a warmed service: POST, then a GET that waits for the end. It does so back to
 * back, and with a pause before each task, like most callers. After a pause caches are cold, and the kernel has
 * dropped some of its preparations (moving a process to another cgroup can take 10 ms then).
 *
 * The time runs from the first byte of POST to the answer `success`, including two syncs of the disk. For a loop it
 * runs from the call to the end of the process.
 */
import { isLoop, type RuntimeWorkload } from './targets.ts'

/** Milliseconds of rest: longer than an RCU grace period. */
const REST_MS = 30

export const single: RuntimeWorkload = {
  name: 'single',
  measures: () => [
    {
      key: 'single_p50',
      label: '/bin/true, 1 client, POST to success seen: half within',
      unit: 'ms',
      better: 'lower',
      goal: { timesFloor: 1.2 },
    },
    { key: 'single_p99', label: '… 99 % within', unit: 'ms', better: 'lower' },
    {
      key: 'single_rested_p50',
      label: `… ${REST_MS} ms after the one before: half within`,
      unit: 'ms',
      better: 'lower',
    },
    { key: 'single_cpu', label: '… CPU of the service for one', unit: 'µs', better: 'lower' },
    { key: 'single_children_cpu', label: '… CPU of launcher and task for one', unit: 'µs', better: 'lower' },
  ],
  async run(target, { sizes, load, freshPrefix }) {
    const { singleTasks: tasks, restedTasks, warmUpTasks, limitMs } = sizes
    if (isLoop(target)) {
      const { p50_ms, p99_ms, own_cpu_us } = await target.run({ inFlight: 1, count: tasks, limitMs })
      return { single_p50: p50_ms, single_p99: p99_ms, single_cpu: own_cpu_us }
    }
    await using server = await target.start()
    const { url, pid } = server
    const job = { url, pid, clients: 1, tasks, warmUpTasks, limitMs, prefix: freshPrefix() }
    const { p50Ms, p99Ms, serverCpuMs, serverChildrenCpuMs } = await load.run('run', job)
    const rest = { tasks: restedTasks, warmUpTasks: 0, restMs: REST_MS, prefix: freshPrefix() }
    const rested = await load.run('run', { ...job, ...rest })
    return {
      single_p50: p50Ms,
      single_p99: p99Ms,
      single_rested_p50: rested.p50Ms,
      single_cpu: serverCpuMs === null ? null : serverCpuMs * 1000,
      single_children_cpu: serverChildrenCpuMs === null ? null : serverChildrenCpuMs * 1000,
    }
  },
}
