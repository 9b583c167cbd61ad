/** What may surprise about a network with rules. Pure. */
import type { PlannedSandbox } from '../../shared/contract/runtime.ts'
import { classOf } from '../../shared/egress/address-class.ts'
import { rulesOf } from '../../shared/request/network-rules.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'

/** Why a strict task with rules needs a mount namespace. */
export const SEES_SOCKETS =
  'without a mount namespace the task sees the Unix sockets of the host, which no rule covers, and those of the networks of other tasks'

const SKIPS_PROXY =
  'sandbox.network.allow names the loopback of the host, which is reached only through the proxy, and NO_PROXY keeps programs from using that for loopback (set NO_PROXY to "" in execution.env)'

/** Sentences for the plan of a task; none for one whose network has no rules. */
export function surprisesOfRules(request: TaskRequest, { network, namespaces }: PlannedSandbox): string[] {
  if (typeof network !== 'object') return []
  const surprises: string[] = []
  if (!namespaces?.mount) {
    surprises.push(`sandbox.network with rules: ${SEES_SOCKETS} (leave out sandbox.namespaces.mount)`)
  }
  const namesLoopback = rulesOf(network).allow.some(
    (rule) => rule.hosts === 'network' && classOf(rule.network) === 'loopback',
  )
  if (namesLoopback && !setsNoProxy(request)) surprises.push(SKIPS_PROXY)
  return surprises
}

const setsNoProxy = ({ execution: { env }, secrets = {} }: TaskRequest): boolean =>
  [...Object.keys(env), ...Object.keys(secrets)].some((name) => name.toLowerCase() === 'no_proxy')
