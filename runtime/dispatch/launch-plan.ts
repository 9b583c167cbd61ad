/** What a launcher is asked to do for a task: the request and its plan, as arguments and an environment. Pure. */
import { join } from 'node:path'
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import type { TaskRequest } from '../intake/validate.ts'
import type { LaunchPlan, TaskCgroup } from '../launcher/plan.ts'
import { TASK_MARK } from '../launcher/task-mark.ts'
import type { TaskDir } from '../store/task-dir.ts'

/** What is the same for all tasks of a service. */
export interface LaunchSettings {
  readonly graceMs: number
  readonly maxOutputBytes: number
  /** The variables that every task has, but for those of its own directory. */
  readonly baseEnvironment: Readonly<Record<string, string>>
}

export interface LaunchContext {
  readonly dir: TaskDir
  /** Its processes are counted, limited and ended in here; undefined where the host has no cgroups for us. */
  readonly cgroup: TaskCgroup | undefined
  /** Value of the mark that its processes carry. */
  readonly mark: string
}

export function launchPlan(
  { task_id, execution, limits, sandbox }: TaskRequest,
  { resource_enforcement }: ExecutionPlan,
  { dir, cgroup }: LaunchContext,
  { graceMs, maxOutputBytes }: LaunchSettings,
): LaunchPlan {
  const { wall_time_ms, cpu_time_sec, memory_bytes, pids_max } = limits
  // Both would be one too many: address space is not memory, and its limit breaks programs that only reserve it.
  const isMemoryByCgroup = resource_enforcement.oom_detection
  return {
    task_id,
    task_dir: dir.task_dir,
    workdir: join(dir.workspace, sandbox.workspace_subdir ?? ''),
    command:
      execution.kind === 'command'
        ? [execution.program, ...execution.args]
        : [execution.interpreter[0] ?? '/bin/sh', ...execution.interpreter.slice(1), dir.script_path],
    wall_time_ms,
    grace_ms: graceMs,
    max_output_bytes: maxOutputBytes,
    ...(cpu_time_sec !== undefined && { cpu_time_sec }),
    // Making, joining and removing one costs milliseconds: the kernel waits for all its processors. A launcher ends all of
    // a task without it too.
    ...(cgroup !== undefined && resource_enforcement.cgroup_enforced && { cgroup }),
    ...(memory_bytes !== undefined &&
      (isMemoryByCgroup ? { memory_max: memory_bytes } : { address_space_bytes: memory_bytes })),
    ...(pids_max !== undefined && resource_enforcement.pids_enforced && { pids_max }),
  }
}

/** All that the task sees of an environment. Its own variables come last, but nothing takes the mark from it. */
export const taskEnvironment = (
  { execution }: TaskRequest,
  { dir, mark }: LaunchContext,
  { baseEnvironment }: LaunchSettings,
): Record<string, string> => ({
  ...baseEnvironment,
  HOME: dir.workspace,
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
