/** From the request of a task and its plan to what its launcher is asked to do. Pure. */
import { join, relative } from 'node:path'
import type { ExecutionPlan, PlannedSandbox } from '../../shared/contract/runtime.ts'
import type { SecretFile, SecretValues } from '../../shared/files/secret-values.ts'
import type { Limits } from '../../shared/request/limits.ts'
import { withPlaceholders } from '../../shared/request/placeholder.ts'
import { TASK_MARK } from '../../shared/request/task-mark.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'
import { STDIN_NAME, type TaskDir } from '../files/task-dir.ts'
import type { SandboxPaths } from '../host/sandbox-paths.ts'
import type { TaskCgroup } from '../host/task-cgroups.ts'
import type { Asked } from '../launch/classification.ts'
import { withMaskVariables } from '../launch/mask-variables.ts'
import type { LaunchPlan, LaunchSandbox } from '../launch/plan.ts'
import { ROOT_SCRIPT, ROOT_WORKSPACE } from '../launch/sandbox-view.ts'
import { type Capability, type CapabilitySet, unavailable } from '../plan/capability-set.ts'
import { isolationOf } from '../plan/isolation.ts'

const NO_SECRETS: SecretValues = { variables: {}, files: [], masks: [] }

/** The settings that all tasks of a service share. */
export interface LaunchSettings {
  readonly graceMs: number
  readonly maxOutputBytes: number
  /** The environment of every task, without the variables that name its directory. */
  readonly baseEnvironment: Readonly<Record<string, string>>
  readonly sandbox: SandboxSettings
}

/** The settings that all sandboxes of a service share. */
export interface SandboxSettings extends SandboxPaths {
  readonly capabilities: CapabilitySet
}

/** What a task is launched with besides its request and its plan. */
interface Surroundings {
  readonly dir: TaskDir
  /** For counting, limiting and ending the processes of the task; undefined where the service may not make cgroups. */
  readonly cgroup: TaskCgroup | undefined
  /** Identity of the directory (`taskDirId`): its name may be given to another. */
  readonly dirId: string | undefined
  /** Value of TASKMILL_TASK in the environment of its processes. */
  readonly mark: string
  /** The user of its sandbox. Absent where that is the user of the service. */
  readonly uid?: number | undefined
  /** The socket of its proxy. Absent for a task whose network has no rules. */
  readonly egressSocket?: string | undefined
  /** What it trusts, where the proxy ends TLS for it. */
  readonly certificates?: readonly SecretFile[]
}

export function launchPlan(
  { task_id, execution, limits, sandbox }: TaskRequest,
  plan: ExecutionPlan,
  { dir, dirId, cgroup, uid, egressSocket }: Surroundings,
  { graceMs, maxOutputBytes, sandbox: settings }: LaunchSettings,
  { masks }: SecretValues = NO_SECRETS,
): LaunchPlan {
  const { resource_enforcement, effective_sandbox } = plan
  const { wall_time_ms, cpu_time_sec, memory_bytes } = limits
  const { pids_max, pids_enforced, disk_bytes } = resource_enforcement
  // Never both: a limit on address space breaks programs that reserve more than they use.
  const isMemoryByCgroup = resource_enforcement.oom_detection
  const seen = pathsSeen(effective_sandbox, dir)
  const workdir = join(seen.workspace, sandbox.workspace_subdir ?? '')
  const script = fromWorkdir(effective_sandbox, workdir, seen.script)
  return {
    task_id,
    task_dir: dir.task_dir,
    ...(dirId !== undefined && { task_dir_id: dirId }),
    workdir,
    command:
      execution.kind === 'command'
        ? [execution.program, ...execution.args]
        : [execution.interpreter[0] ?? '/bin/sh', ...execution.interpreter.slice(1), script],
    ...(execution.stdin !== undefined && { stdin: STDIN_NAME }),
    wall_time_ms,
    grace_ms: graceMs,
    max_output_bytes: maxOutputBytes,
    ...(disk_bytes !== undefined && { disk_bytes }),
    ...(masks.length > 0 && { mask_count: masks.length }),
    ...(effective_sandbox.profile === 'linux_sandbox' && {
      sandbox: launchSandbox(effective_sandbox, dir, execution.kind === 'script', uid, settings),
    }),
    ...(egressSocket !== undefined && { egress: { socket: egressSocket, port: EGRESS_PORT } }),
    ...(cpu_time_sec !== undefined && { cpu_time_sec }),
    ...cgroupFor(cgroup, limits, plan),
    ...(memory_bytes !== undefined &&
      (isMemoryByCgroup ? { memory_max: memory_bytes } : { address_space_bytes: memory_bytes })),
    ...(pids_enforced && { pids_max: pids_max! }),
  }
}

/**
 * The cgroup that a task needs. Making, joining and removing one costs milliseconds, as the kernel waits for all its
 * processors, so most tasks have none. A cgroup is needed
 *  - to enforce a limit on memory or processes; in version 1 one hierarchy is enough for the default limit on processes
 *    of a sandbox;
 *  - to find removed files that count as `disk_bytes` while the task has them open;
 *  - to end processes that could outlive both the launcher and, for want of a pid namespace, the sandbox. Any hierarchy
 *    will do.
 */
function cgroupFor(
  cgroup: TaskCgroup | undefined,
  limits: Limits,
  { resource_enforcement, effective_sandbox }: ExecutionPlan,
): Pick<LaunchPlan, 'cgroup'> {
  if (cgroup === undefined) return {}
  const { cgroup_enforced, oom_detection } = resource_enforcement
  const mayOutlive = effective_sandbox.profile === 'linux_sandbox' && !effective_sandbox.namespaces?.pid
  if (!cgroup_enforced && !mayOutlive && resource_enforcement.disk_bytes === undefined) return {}
  const isLimitAsked = cgroup_enforced && (oom_detection || limits.pids_max !== undefined)
  return { cgroup: isLimitAsked || cgroup.version === 2 ? cgroup : oneHierarchyOf(cgroup) }
}

type CgroupV1 = Extract<TaskCgroup, { version: 1 }>

const oneHierarchyOf = ({ pids_path, memory_path }: CgroupV1): TaskCgroup => ({
  version: 1,
  ...(pids_path === undefined ? { memory_path: memory_path! } : { pids_path }),
})

/**
 * A path as the program gets it. A relative path works although the user of sandboxes may not pass the directories of the
 * host above it.
 */
const fromWorkdir = ({ profile, namespaces }: PlannedSandbox, workdir: string, path: string): string =>
  profile === 'linux_sandbox' && !namespaces?.mount ? relative(workdir, path) : path

/** Paths of its own files as the task sees them. */
const pathsSeen = ({ chroot }: PlannedSandbox, dir: TaskDir) =>
  chroot ? { workspace: ROOT_WORKSPACE, script: ROOT_SCRIPT } : { workspace: dir.workspace, script: dir.script_path }

function launchSandbox(
  planned: PlannedSandbox,
  dir: TaskDir,
  hasScript: boolean,
  uid: number | undefined,
  { capabilities, masks, exposed }: SandboxSettings,
): LaunchSandbox {
  const { rootfs } = planned
  const { namespaces, features } = isolationOf(planned.namespaces!, capabilities)
  return {
    features,
    ...(uid !== undefined && { uid }),
    ...(namespaces.mount && {
      ...(rootfs !== undefined && { rootfs }),
      ...{ masks, exposed },
      workspace: dir.workspace,
      ...(hasScript && { script: dir.script_path }),
    }),
  }
}

/**
 * The environment of a task. Its own variables override all others, except the mark. `secrets` are the values of its secrets;
 * the variable of one that is in a file has the path of that. What is masked in its output goes along, to its launcher.
 */
export function taskEnvironment(
  { task_id, execution, sandbox }: TaskRequest,
  { effective_sandbox }: ExecutionPlan,
  { dir, mark, uid, egressSocket, certificates = [] }: Surroundings,
  { baseEnvironment }: LaunchSettings,
  { variables, files, masks }: SecretValues = NO_SECRETS,
): Record<string, string> {
  const { workspace } = pathsSeen(effective_sandbox, dir)
  const workdir = join(workspace, sandbox.workspace_subdir ?? '')
  const pathOf = ({ names }: SecretFile) => fromWorkdir(effective_sandbox, workdir, join(workspace, ...names))
  const env = {
    ...baseEnvironment,
    ...(uid !== undefined && { USER: String(uid) }),
    HOME: workspace,
    ...(egressSocket !== undefined && proxyEnvironment({ ...execution.env, ...variables })),
    ...Object.assign({}, ...certificates.map((file) => trustEnvironment(pathOf(file)))),
    ...withPlaceholders(task_id, execution.env),
    ...variables,
    ...Object.fromEntries(files.map((file) => [file.variable, pathOf(file)])),
    [TASK_MARK]: mark,
  }
  return withMaskVariables(env, masks)
}

/** The part of the service's environment that tasks may see: PATH and the language. */
export const baseEnvironment = (
  env: Readonly<Record<string, string | undefined>>,
  user: string,
): Record<string, string> => ({
  PATH: env.PATH || '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LANG: env.LANG || 'C.UTF-8',
  TMPDIR: '/tmp',
  USER: user,
})

/** The part of a request that says what the end of its task means. */
export const askedOf = (
  { execution, limits, sandbox }: TaskRequest,
  { resource_enforcement: { disk_bytes } }: Pick<ExecutionPlan, 'resource_enforcement'>,
  { workspace }: TaskDir,
  { maxOutputBytes }: Pick<LaunchSettings, 'maxOutputBytes'>,
): Asked => ({
  ...limits,
  program: execution.kind === 'command' ? execution.program : (execution.interpreter[0] ?? ''),
  workdir: join(workspace, sandbox.workspace_subdir ?? ''),
  max_output_bytes: maxOutputBytes,
  ...(disk_bytes !== undefined && { disk_bytes }),
})

/** The port of the loopback in the sandbox that leads to the proxy. */
const EGRESS_PORT = 3128

const PROXY = `http://127.0.0.1:${EGRESS_PORT}`

/** The loopback of the sandbox: servers that the task starts itself. */
const LOCAL = 'localhost,127.0.0.1,::1'

/** Variables that programs read in upper and in lower case. curl ignores HTTP_PROXY, others ignore http_proxy. */
const IN_BOTH_CASES = { HTTP_PROXY: PROXY, HTTPS_PROXY: PROXY, ALL_PROXY: PROXY, NO_PROXY: LOCAL } as const

const OTHERS = {
  npm_config_proxy: PROXY,
  npm_config_https_proxy: PROXY,
  npm_config_noproxy: LOCAL,
  CARGO_HTTP_PROXY: PROXY,
  NODE_USE_ENV_PROXY: '1',
} as const

/**
 * The environment of a task whose network has rules: it names the port of the forwarder in the sandbox, and is what curl, git,
 * pip, npm, cargo, apt, Node and the HTTP libraries of most languages read. `given` are the variables that the task sets itself. A variable that
 * it sets is left to it in either case.
 */
export function proxyEnvironment(given: Readonly<Record<string, unknown>>): Record<string, string> {
  const ours = [...Object.entries(IN_BOTH_CASES).flatMap(inBothCases), ...Object.entries(OTHERS)]
  const taken = new Set(Object.keys(given).map((name) => name.toLowerCase()))
  return Object.fromEntries(ours.filter(([name]) => !taken.has(name.toLowerCase())))
}

/** Where OpenSSL, curl, Python, Node, Bun, git, pip, cargo and npm look for the certificates that they trust. */
const TRUST = [
  'SSL_CERT_FILE',
  'CURL_CA_BUNDLE',
  'REQUESTS_CA_BUNDLE',
  'NODE_EXTRA_CA_CERTS',
  'GIT_SSL_CAINFO',
  'PIP_CERT',
  'CARGO_HTTP_CAINFO',
  'npm_config_cafile',
] as const

/** Variables that name a file with certificates. */
export const trustEnvironment = (path: string): Record<string, string> =>
  Object.fromEntries(TRUST.map((name) => [name, path]))

const inBothCases = ([name, value]: [string, string]): [string, string][] => [
  [name, value],
  [name.toLowerCase(), value],
]

/**
 * The first capability that a task was promised when it was accepted, and that the host lost before a restart of the
 * service, as a sentence with its remedy. Undefined when nothing is lost.
 */
export function lostCapability(
  { effective_sandbox: { profile }, resource_enforcement: { oom_detection, pids_enforced } }: ExecutionPlan,
  { pids_max }: Limits,
  { linux_sandbox, memory_cgroup, pids_cgroup }: CapabilitySet,
): string | undefined {
  const promised: readonly [isPromised: boolean, what: string, capability: Capability][] = [
    [profile === 'linux_sandbox', 'sandbox.profile=linux_sandbox', linux_sandbox],
    [oom_detection, 'limits.memory_bytes by a cgroup', memory_cgroup],
    [pids_enforced && pids_max !== undefined, 'limits.pids_max', pids_cgroup],
  ]
  for (const [isPromised, what, capability] of promised) {
    if (isPromised && !capability.isAvailable) return unavailable(what, capability)
  }
  return undefined
}

/** The plan without a lost default: a limit on processes that the task did not ask for is no reason to fail it. */
export function planWithoutLostDefault(
  plan: ExecutionPlan,
  { pids_max }: Limits,
  { pids_cgroup }: CapabilitySet,
): ExecutionPlan {
  const { resource_enforcement } = plan
  if (!resource_enforcement.pids_enforced || pids_max !== undefined || pids_cgroup.isAvailable) return plan
  const cgroup_enforced = resource_enforcement.oom_detection
  return { ...plan, resource_enforcement: { ...resource_enforcement, pids_enforced: false, cgroup_enforced } }
}
