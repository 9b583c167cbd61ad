/** What a launcher is asked to do for a task: the request and its plan, as arguments and an environment. Pure. */
import { join, relative } from 'node:path'
import type { ExecutionPlan, PlannedSandbox } from '../../shared/contract/runtime.ts'
import { NAMESPACES } from '../../shared/contract/runtime-request.ts'
import type { Limits } from '../../shared/runtime-request/limits.ts'
import type { TaskRequest } from '../../shared/runtime-request/validate.ts'
import type { SandboxPaths } from '../host/sandbox-paths.ts'
import { type LaunchPlan, type LaunchSandbox, ROOT_SCRIPT, ROOT_WORKSPACE, type TaskCgroup } from '../launcher/plan.ts'
import { TASK_MARK } from '../launcher/task-mark.ts'
import type { TaskDir } from '../store/task-dir.ts'

/** What is the same for all tasks of a service. */
export interface LaunchSettings {
  readonly graceMs: number
  readonly maxOutputBytes: number
  /** The variables that every task has, but for those of its own directory. */
  readonly baseEnvironment: Readonly<Record<string, string>>
  readonly sandbox: SandboxSettings
}

/** What sandboxes of a service have in common. */
export interface SandboxSettings extends SandboxPaths {
  /** The user of their tasks, with its name; undefined where that is the user of the service, who is not root. */
  readonly user: { readonly uid: number; readonly name: string } | undefined
  readonly canFilter: boolean
}

export interface LaunchContext {
  readonly dir: TaskDir
  /** Its processes are counted, limited and ended in here; undefined where the host has no cgroups for us. */
  readonly cgroup: TaskCgroup | undefined
  /** Which directory of that name it is (`taskDirId`). */
  readonly dirId: string | undefined
  /** Value of the mark that its processes carry. */
  readonly mark: string
}

export function launchPlan(
  { task_id, execution, limits, sandbox }: TaskRequest,
  plan: ExecutionPlan,
  { dir, dirId, cgroup }: LaunchContext,
  { graceMs, maxOutputBytes, sandbox: settings }: LaunchSettings,
): LaunchPlan {
  const { resource_enforcement, effective_sandbox } = plan
  const { wall_time_ms, cpu_time_sec, memory_bytes } = limits
  const { pids_max, pids_enforced } = resource_enforcement
  // Both would be one too many: address space is not memory, and its limit breaks programs that only reserve it.
  const isMemoryByCgroup = resource_enforcement.oom_detection
  const seen = placesSeen(effective_sandbox, dir)
  const workdir = join(seen.workspace, sandbox.workspace_subdir ?? '')
  // From there it can be reached whatever directories of the host the user of sandboxes may not pass.
  const isOnFoot = effective_sandbox.profile === 'linux_sandbox' && !effective_sandbox.namespaces?.mount
  const script = isOnFoot ? relative(workdir, seen.script) : seen.script
  return {
    task_id,
    task_dir: dir.task_dir,
    ...(dirId !== undefined && { task_dir_id: dirId }),
    workdir,
    command:
      execution.kind === 'command'
        ? [execution.program, ...execution.args]
        : [execution.interpreter[0] ?? '/bin/sh', ...execution.interpreter.slice(1), script],
    wall_time_ms,
    grace_ms: graceMs,
    max_output_bytes: maxOutputBytes,
    ...(effective_sandbox.profile === 'linux_sandbox' && {
      sandbox: launchSandbox(effective_sandbox, dir, execution.kind === 'script', settings),
    }),
    ...(cpu_time_sec !== undefined && { cpu_time_sec }),
    ...groupOf(cgroup, limits, plan),
    ...(memory_bytes !== undefined &&
      (isMemoryByCgroup ? { memory_max: memory_bytes } : { address_space_bytes: memory_bytes })),
    ...(pids_enforced && { pids_max: pids_max! }),
  }
}

/**
 * Making, joining and removing a group costs milliseconds: the kernel waits for all its processors. A launcher ends all of
 * a task without it too, and so does the end of a pid namespace where the launcher itself is killed. Without either what
 * such a task started could get away, so it has a group, if only to end it: in version 1 one is enough for that, and for
 * the limit on processes of a sandbox that asks for none.
 */
function groupOf(
  cgroup: TaskCgroup | undefined,
  limits: Limits,
  { resource_enforcement, effective_sandbox }: ExecutionPlan,
): Pick<LaunchPlan, 'cgroup'> {
  if (cgroup === undefined) return {}
  const { cgroup_enforced, oom_detection } = resource_enforcement
  const isLimitAsked = oom_detection || limits.pids_max !== undefined
  if (cgroup_enforced && (isLimitAsked || cgroup.version === 2)) return { cgroup }
  const isOutlived = effective_sandbox.profile === 'linux_sandbox' && !effective_sandbox.namespaces?.pid
  if (!cgroup_enforced && !isOutlived) return {}
  if (cgroup.version === 2) return { cgroup }
  const { pids_path, memory_path } = cgroup
  return { cgroup: { version: 1, ...(pids_path === undefined ? { memory_path: memory_path! } : { pids_path }) } }
}

/** Where the task finds what is its own. */
const placesSeen = ({ chroot }: PlannedSandbox, dir: TaskDir) =>
  chroot ? { workspace: ROOT_WORKSPACE, script: ROOT_SCRIPT } : { workspace: dir.workspace, script: dir.script_path }

function launchSandbox(
  { namespaces, rootfs }: PlannedSandbox,
  dir: TaskDir,
  hasScript: boolean,
  { user, canFilter, masks, exposed }: SandboxSettings,
): LaunchSandbox {
  return {
    features: [...NAMESPACES.filter((name) => namespaces?.[name]), ...(canFilter ? (['seccomp'] as const) : [])],
    ...(user !== undefined && { uid: user.uid }),
    ...(namespaces?.mount && {
      ...(rootfs !== undefined && { rootfs }),
      ...{ masks, exposed },
      workspace: dir.workspace,
      ...(hasScript && { script: dir.script_path }),
    }),
  }
}

/** All that the task sees of an environment. Its own variables come last, but nothing takes the mark from it. */
export const taskEnvironment = (
  { execution }: TaskRequest,
  { effective_sandbox }: ExecutionPlan,
  { dir, mark }: LaunchContext,
  { baseEnvironment, sandbox: { user } }: LaunchSettings,
): Record<string, string> => ({
  ...baseEnvironment,
  ...(effective_sandbox.profile === 'linux_sandbox' && user !== undefined && { USER: user.name }),
  HOME: placesSeen(effective_sandbox, dir).workspace,
  ...execution.env,
  [TASK_MARK]: mark,
})

/** The part of a service's own environment that tasks may see: where programs are, and the language. */
export const baseEnvironment = (
  env: Readonly<Record<string, string | undefined>>,
  user: string,
): Record<string, string> => ({
  PATH: env.PATH || '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LANG: env.LANG || 'C.UTF-8',
  TMPDIR: '/tmp',
  USER: user,
})
