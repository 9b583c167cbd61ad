/** The network that a task asks for, by itself or by the default of the service, and what may surprise about it. Pure. */
import type { PlannedSandbox } from '../../shared/contract/runtime.ts'
import type { Network } from '../../shared/contract/runtime-request.ts'
import { classOf } from '../../shared/egress/address-class.ts'
import { rulesOf } from '../../shared/request/network-rules.ts'
import { DEFAULT_NAMESPACES, type RequestedSandbox } from '../../shared/request/sandbox.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'

/** The sandbox of a request with all defaults, that of the service for the network among them. */
export function requestedSandbox(
  { namespaces, ...sandbox }: RequestedSandbox,
  defaultNetwork: Network,
): PlannedSandbox {
  if (namespaces === undefined) return sandbox
  const isOwn = sandbox.profile !== 'linux_sandbox' || defaultNetwork === 'none'
  return { ...sandbox, namespaces: { ...DEFAULT_NAMESPACES, net: isOwn, ...namespaces } }
}

/** What gives a task the network of the host. */
export interface HostNetworkChoice {
  readonly what: string
  /** An imperative clause without a full stop. Undefined if the task asked for a network of its own. */
  readonly undo: string | undefined
}

export function hostNetworkChoice(
  { network, namespaces }: RequestedSandbox,
  defaultNetwork: Network,
): HostNetworkChoice {
  const none = 'set sandbox.network to none'
  if (network === 'host') return { what: 'sandbox.network=host', undo: none }
  const what = 'sandbox.namespaces.net=false'
  if (namespaces?.net === false) {
    // Leaving it out would not help where the default is that of the host.
    return { what, undo: defaultNetwork === 'none' ? 'leave out sandbox.namespaces.net' : `replace it: ${none}` }
  }
  if (namespaces?.net === undefined && defaultNetwork === 'host') return { what: '--default-network host', undo: none }
  return { what, undo: undefined }
}

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
