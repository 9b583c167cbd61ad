/**
 * Whether a request of the runtime service stays in a strict sandbox: all that a token with a tenant may submit without the right
 * `host`. Pure. The runtime service asks it of requests, and control of the params of tasks.
 */
import { type CapabilityMode, NAMESPACES, type SubmitTaskRequest } from '../contract/runtime-request.ts'
import type { Grant } from '../http/token-entries.ts'

/** The fields that decide. Those of a request that passed all checks, too. */
interface Asked {
  readonly sandbox?:
    | {
        readonly profile?: unknown
        readonly network?: unknown
        readonly namespaces?: NonNullable<SubmitTaskRequest['sandbox']>['namespaces']
      }
    | undefined
  readonly policy?: SubmitTaskRequest['policy']
  readonly control_context?: SubmitTaskRequest['control_context']
}

/**
 * What keeps a request from a strict sandbox, such as `sandbox.profile has to be linux_sandbox`; undefined if it has one. `mode` is
 * that of the service for requests that name none. A network without a name counts as `none`.
 */
export function whyNotStrict(
  { sandbox = {}, policy = {}, control_context = {} }: Asked,
  mode: CapabilityMode = 'adaptive',
): string | undefined {
  const { profile, network, namespaces = {} } = sandbox
  if (profile !== 'linux_sandbox') return 'sandbox.profile has to be linux_sandbox'
  if (network === 'host') return 'sandbox.network has to be none or an object of rules'
  const shared = NAMESPACES.find((name) => name !== 'cgroup' && namespaces[name] === false)
  if (shared !== undefined) return `sandbox.namespaces.${shared} has to be true, or left out`
  const isStrict = (policy.capability_mode ?? mode) === 'strict' || control_context.requires_strict_sandbox === true
  return isStrict ? undefined : 'policy.capability_mode has to be strict'
}

/** The refusal of a token with a tenant for that. */
export const needsHost = ({ name, tenant }: Grant, why: string): string =>
  `the token ${name} of tenant ${tenant} runs tasks in a strict sandbox only: ${why} (or give the token the right host)`
