/** The network that a task asks for, by itself or by the default of the service. Pure. */
import type { PlannedSandbox } from '../../shared/contract/runtime.ts'
import type { Network } from '../../shared/contract/runtime-request.ts'
import { DEFAULT_NAMESPACES, type RequestedSandbox } from '../../shared/request/sandbox.ts'

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
