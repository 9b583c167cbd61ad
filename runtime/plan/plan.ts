/**
 * From what a task asks for to what it gets on this host, or 400 `unsupported_capability`. Pure.
 *
 * The steps are independent, so that a missing capability affects only what needs it:
 * 1. the sandbox: the profile, each namespace (`isolation.ts`), the root, the filter;
 * 2. the network and the token (`open-services.ts`): a strict task does not share the network with a service of ours
 *   that has no token, and cannot read the token of this service;
 * 3. the limits (`enforcement.ts`): CPU time, memory, processes, disk.
 *
 * A strict task is refused at the first missing capability. Strict are `policy.capability_mode=strict`, the same mode
 * of the service for tasks that name none, and `control_context.requires_strict_sandbox=true`. An adaptive task goes
 * without, and its plan says what it gets instead.
 */
import type { ExecutionPlan, PlannedSandbox } from '../../shared/contract/runtime.ts'
import type { CapabilityMode, Network } from '../../shared/contract/runtime-request.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'
import { type CapabilitySet, missing, unavailable, WITHOUT_GROUPS } from './capability-set.ts'
import { type DefaultLimits, enforcementOf } from './enforcement.ts'
import { type Isolation, isolationOf, NOTHING_SHARED } from './isolation.ts'
import { inWords, type OpenService, openServices, type ServiceAccess, tokenRemedies } from './open-services.ts'
import {
  type HostNetworkChoice,
  hostNetworkChoice,
  requestedSandbox,
  SEES_SOCKETS,
  surprisesOfRules,
} from './requested-network.ts'
import { Shortages } from './shortages.ts'

/** The settings that all plans of a service share, besides the capabilities of its host. */
export interface PlanSettings {
  /** For tasks that name no mode. */
  readonly capability_mode: CapabilityMode
  /** The network of tasks in `linux_sandbox` that name none. */
  readonly network: Network
  readonly access: ServiceAccess
  readonly default_limits: DefaultLimits
}

/** Returns what a task gets. Throws 400 for a strict task that asks for more than there is. */
export function planTask(request: TaskRequest, capabilities: CapabilitySet, settings: PlanSettings): ExecutionPlan {
  const { policy, control_context, limits } = request
  // A tenant says itself that a task needs the network of the host.
  const network = control_context.tenant_only === true ? 'none' : settings.network
  const sandbox = requestedSandbox(request.sandbox, network)
  const capability_mode = policy.capability_mode ?? settings.capability_mode
  const shortages = new Shortages(capability_mode === 'strict' || control_context.requires_strict_sandbox === true)
  const isolation = isolationOfTask(sandbox, capabilities, shortages)
  const effective_sandbox = effectiveSandbox(sandbox, isolation, capabilities, shortages)
  const shared = isolation?.shared ?? NOTHING_SHARED
  const services = openServices(settings.access, shared)
  const choice = hostNetworkChoice(request.sandbox, network)
  checkHostNetwork(services, choice, shortages)
  const remedies = tokenRemedies(settings.access, shared)
  if (remedies !== undefined) {
    const remedy = `${['Leave it out', ...remedies].join(', or ')}.`
    shortages.refuseStrict('sandbox.namespaces.mount=false', missing(CAN_READ_TOKEN, remedy))
  }
  if (typeof effective_sandbox.network === 'object' && !effective_sandbox.namespaces!.mount) {
    shortages.refuseStrict('sandbox.network with rules', missing(SEES_SOCKETS, 'Leave out sandbox.namespaces.mount.'))
  }
  const resource_enforcement = enforcementOf(
    limits,
    effective_sandbox,
    capabilities,
    settings.default_limits,
    shortages,
  )
  const plan = {
    capability_mode,
    requested_sandbox: sandbox,
    effective_sandbox,
    resource_enforcement,
    degraded: shortages.reasons.length > 0,
    fallback_reasons: shortages.reasons,
  }
  const warnings = [
    ...surprisesOf(plan, isolation, capabilities),
    ...surprisesOfRules(request, effective_sandbox),
    ...networkWarnings(choice, services),
  ]
  if (remedies !== undefined && !shared.network) warnings.push(tokenWarning(plan, remedies))
  return { ...plan, capability_warnings: warnings }
}

/** Undefined without the profile: then nothing else applies. Throws what `shortages` throws. */
function isolationOfTask(
  { profile, chroot, network, namespaces }: PlannedSandbox,
  capabilities: CapabilitySet,
  shortages: Shortages,
): Isolation | undefined {
  const hasRules = typeof network === 'object'
  if (profile !== 'linux_sandbox') return undefined
  const instead = `the task runs with profile process, without isolation${chroot ? ' and without sandbox.chroot' : ''}${hasRules ? ' and without the rules of sandbox.network' : ''}`
  if (!shortages.has('sandbox.profile=linux_sandbox', capabilities.linux_sandbox, instead)) return undefined
  const isolation = isolationOf(namespaces!, capabilities)
  for (const name of isolation.lacking) {
    const isOfRules = name === 'net' && hasRules
    shortages.has(
      isOfRules ? 'sandbox.network with rules' : `sandbox.namespaces.${name}`,
      capabilities.namespaces[name],
      isOfRules ? 'the task has the network of the host, without rules' : `the task shares ${name} with the host`,
    )
  }
  return isolation
}

/** A root of its own needs a mount namespace, and rules for the network its namespace. Throws what `shortages` throws. */
function effectiveSandbox(
  { workspace_subdir, rootfs, chroot, network }: PlannedSandbox,
  isolation: Isolation | undefined,
  capabilities: CapabilitySet,
  shortages: Shortages,
): PlannedSandbox {
  const where = workspace_subdir === undefined ? {} : { workspace_subdir }
  if (isolation === undefined) return { profile: 'process', ...where, chroot: false }
  const { namespaces, shared } = isolation
  const withoutMount = missing('it needs a mount namespace', 'See to sandbox.namespaces.mount first.')
  const hasRoot =
    chroot &&
    shortages.has(
      'sandbox.chroot',
      namespaces.mount ? capabilities.chroot : withoutMount,
      'the task sees the files of the host instead of rootfs',
    )
  shortages.has('the system call filter of linux_sandbox', capabilities.seccomp, 'the task may make any system call')
  return {
    profile: 'linux_sandbox',
    ...where,
    ...(hasRoot && { rootfs: rootfs! }),
    chroot: hasRoot,
    network: shared.network ? 'host' : typeof network === 'object' ? network : 'none',
    namespaces,
  }
}

const CAN_READ_TOKEN =
  'the task could read the token file of this service, and have any task without a sandbox run with the token'

/** Warns about this service where the task cannot connect to it by itself; `networkWarnings` covers other services. */
function tokenWarning(
  { requested_sandbox }: Omit<ExecutionPlan, 'capability_warnings'>,
  remedies: readonly string[],
): string {
  const isAsked = requested_sandbox.namespaces?.mount === false
  const all = [...(isAsked ? ['leave out sandbox.namespaces.mount'] : []), ...remedies]
  return `the task can read the token file of this service: who has the token has any task without a sandbox run${all.length === 0 ? '' : ` (${all.join(', or ')})`}`
}

/** An adaptive task may share the network all the same. Its plan warns. */
function checkHostNetwork(services: readonly OpenService[], choice: HostNetworkChoice, shortages: Shortages): void {
  const certain = services.filter(({ isCertain }) => isCertain)
  if (certain.length === 0) return
  const { names, remedies } = inWords(certain)
  const reason = `the task could have a task without a sandbox run by ${names}`
  const undo = choice.undo === undefined ? '' : `${choice.undo[0]!.toUpperCase()}${choice.undo.slice(1)}, or `
  shortages.refuseStrict(choice.what, missing(reason, `${undo}${remedies}.`))
}

function networkWarnings({ undo }: HostNetworkChoice, services: readonly OpenService[]): string[] {
  if (services.length === 0) return []
  const { names, remedies } = inWords(services)
  return [
    `the task shares the network of the host: it can have a task without a sandbox run by ${names} (${undo === undefined ? '' : `${undo}, or `}${remedies})`,
  ]
}

/** Settings that have no effect, or an effect that may not be intended. */
function surprisesOf(
  {
    requested_sandbox: requested,
    effective_sandbox: effective,
    resource_enforcement: { memory_enforced, oom_detection },
  }: Omit<ExecutionPlan, 'capability_warnings'>,
  isolation: Isolation | undefined,
  { own_groups }: CapabilitySet,
): string[] {
  const surprises: string[] = []
  if (requested.profile === 'process' && requested.namespaces !== undefined) {
    surprises.push('sandbox.namespaces means nothing with sandbox.profile=process')
  }
  if (requested.rootfs !== undefined && !requested.chroot) {
    surprises.push('sandbox.rootfs means nothing without sandbox.chroot=true')
  }
  if (isolation !== undefined) surprises.push(...isolation.warnings)
  if (effective.profile === 'linux_sandbox' && !own_groups.isAvailable) {
    surprises.push(unavailable(WITHOUT_GROUPS, own_groups))
  }
  if (memory_enforced && !oom_detection) {
    surprises.push(
      'limits.memory_bytes limits the address space of each process (RLIMIT_AS): programs that reserve more than they use may fail below it',
    )
  }
  return surprises
}
