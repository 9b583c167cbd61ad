/** A plan as the command line of a launcher. Pure. The other side of it is c/base/arguments.c. */

import type { LaunchDescriptors, LaunchPlan, LaunchSandbox } from './plan.ts'
import { type Mount, sandboxView } from './sandbox-view.ts'

/** The largest number that a launcher parses: 15 digits. Larger values mean the same, as 30,000 years or a petabyte. */
export const MAX_ARGUMENT = 999_999_999_999_999

export function launcherArguments(plan: LaunchPlan, descriptors: LaunchDescriptors = {}): string[] {
  const { cgroup } = plan
  return [
    ...['--task-id', plan.task_id, '--task-dir', plan.task_dir],
    ...path('--task-dir-id', plan.task_dir_id),
    ...['--workdir', plan.workdir],
    ...path('--stdin', plan.stdin),
    ...limit('--wall-time-ms', plan.wall_time_ms),
    ...limit('--grace-ms', plan.grace_ms),
    ...limit('--give-up-ms', plan.give_up_ms),
    ...limit('--max-output-bytes', plan.max_output_bytes),
    ...limit('--disk-bytes', plan.disk_bytes),
    ...limit('--mask-count', plan.mask_count),
    ...limit('--cpu-time-sec', plan.cpu_time_sec),
    ...limit('--address-space-bytes', plan.address_space_bytes),
    ...path('--cgroup-v2', cgroup?.version === 2 ? cgroup.path : undefined),
    ...path('--cgroup-v1-pids', cgroup?.version === 1 ? cgroup.pids_path : undefined),
    ...path('--cgroup-v1-memory', cgroup?.version === 1 ? cgroup.memory_path : undefined),
    ...limit('--memory-max', plan.memory_max),
    ...limit('--pids-max', plan.pids_max),
    ...(plan.sandbox === undefined ? [] : sandboxArguments(plan.sandbox)),
    ...path('--egress-socket', plan.egress?.socket),
    ...limit('--egress-port', plan.egress?.port),
    ...limit('--lock-fd', descriptors.lock_fd),
    ...limit('--notify-fd', descriptors.notify_fd),
    ...['--', ...plan.command],
  ]
}

function sandboxArguments({ features, uid, ...paths }: LaunchSandbox): string[] {
  return [
    ...['--sandbox', features.length === 0 ? 'none' : features.join(',')],
    ...limit('--sandbox-uid', uid),
    ...(features.includes('mount') ? mountArguments(sandboxView(paths, features.includes('pid'))) : []),
  ]
}

const mountArguments = (mounts: readonly Mount[]): string[] => mounts.flatMap((words) => ['--mount', ...words])

/** Fractions are rounded up, so that a limit is never tighter than requested. */
const limit = (flag: string, value: number | undefined): string[] =>
  value === undefined ? [] : [flag, String(Math.min(Math.ceil(value), MAX_ARGUMENT))]

const path = (flag: string, value: string | undefined): string[] => (value === undefined ? [] : [flag, value])
