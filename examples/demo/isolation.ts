/** Describes the isolation and the limits of the steps of a build: what they requested and what they got. Pure. */
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import { wrap } from '../../shared/text/live-view/palette.ts'
import { runtimeResultOf } from './runtime-result.ts'

/** A paragraph for each plan that there was; on one host they are mostly alike. `columns` is how wide they may be. */
export function isolationWords(records: readonly TaskRecord[], columns: number): string[] {
  const plans = records.flatMap((record) => runtimeResultOf(record)?.execution_plan ?? [])
  const alike = Map.groupBy(plans, (plan) =>
    JSON.stringify([sandboxWords(plan), limitWords(plan), plan.fallback_reasons]),
  )
  return [...alike.values()].flatMap((group) => {
    const [plan] = group as [ExecutionPlan]
    const asked = `${stepsOf(group.length)} in the runtime asked for the profile ${plan.requested_sandbox.profile} and ${sandboxWords(plan)}`
    const more = [...plan.fallback_reasons, `Limits that held: ${limitWords(plan)}.`]
    return [
      ...wrap(asked, columns - 1).map((line) => ` ${line}`),
      ...more.flatMap((text) => wrap(text, columns - 3)).map((line) => `   ${line}`),
    ]
  })
}

const stepsOf = (count: number): string => (count === 1 ? '1 step' : `${count} steps`)

function sandboxWords({ requested_sandbox, effective_sandbox, degraded }: ExecutionPlan): string {
  const { profile, namespaces = {} } = effective_sandbox
  if (profile !== requested_sandbox.profile)
    return `got the profile ${profile}, limits and accounts without isolation (degraded):`
  const own = Object.entries(namespaces).flatMap(([name, isOwn]) => (isOwn ? [name] : []))
  const of = own.length === 0 ? '' : `, each with its own ${own.join(', ')}`
  return degraded ? `got it in part (degraded)${of}:` : `got it${of}.`
}

function limitWords({ resource_enforcement: limits }: ExecutionPlan): string {
  const held = [
    'wall time',
    ...(limits.cpu_time_enforced ? ['CPU time'] : []),
    ...(limits.memory_enforced ? [limits.oom_detection ? 'memory (cgroup)' : 'address space (RLIMIT_AS)'] : []),
    ...(limits.pids_enforced ? ['processes (cgroup)'] : []),
  ]
  return held.join(', ')
}
