/**
 * One launch of /bin/true in a sandbox, from the call to its end: our launcher with all defaults of a task (including
 * its record and logs), bwrap with the same namespaces, and a program that only clones and executes. They take turns,
 * launch by launch.
 */
import type { SandboxWorkload } from './targets.ts'

export const launch: SandboxWorkload = {
  name: 'launch',
  measures: () => [
    { key: 'launch_p50', label: 'a launch: half within', unit: 'ms', better: 'lower', goal: { timesFloor: 1.6 } },
    { key: 'launch_p99', label: '… 99 % within', unit: 'ms', better: 'lower' },
    { key: 'launch_min', label: '… the quickest', unit: 'ms', better: 'lower' },
    {
      key: 'launch_to_bwrap',
      label: '… half within, to that of bwrap',
      unit: 'ratio',
      better: 'lower',
      goal: { figure: 1 },
    },
  ],
  async run(target, { sizes }) {
    const turn = await target.times.take(target, sizes)
    if (turn === undefined) return {}
    const { p50_ms, p99_ms, min_ms } = turn
    const other = target.rival === undefined ? undefined : target.times.look(target.rival)
    return {
      launch_p50: p50_ms,
      launch_p99: p99_ms,
      launch_min: min_ms,
      launch_to_bwrap: other === undefined ? null : p50_ms / other.p50_ms,
    }
  },
}
