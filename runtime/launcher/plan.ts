/** What a launcher is asked to do, in values. */
import { NAMESPACES } from '../../shared/contract/runtime-request.ts'
import type { TaskCgroup } from '../host/task-cgroups.ts'
import type { ViewPaths } from '../intake/sandbox-view.ts'

/** What a sandbox is made of, each by itself: namespaces, and the filter for system calls. */
export const SANDBOX_FEATURES = [...NAMESPACES, 'seccomp'] as const
export type SandboxFeature = (typeof SANDBOX_FEATURES)[number]

/**
 * The sandbox of a task. With any features, the task has no capabilities, gains none by execve, and is never root. Without
 * `mount` the task sees the files of the host as they are, and the paths are ignored.
 */
export interface LaunchSandbox extends ViewPaths {
  readonly features: readonly SandboxFeature[]
  /** User and group of the task. Required for a root launcher, refused by others. */
  readonly uid?: number
}

export interface LaunchPlan {
  readonly task_id: string
  /** Made by the service, empty of a launcher's files: no task runs twice. */
  readonly task_dir: string
  /** Which directory of that name is meant (`taskDirId`); without it any. Another one is refused: its task has the name now. */
  readonly task_dir_id?: string
  /** As the task sees it. */
  readonly workdir: string
  readonly command: readonly [program: string, ...args: string[]]
  readonly wall_time_ms: number
  /** Between TERM and KILL. */
  readonly grace_ms: number
  /** After KILL, until a process that does not end is given up. Default: 30 s. */
  readonly give_up_ms?: number
  /** Of each of stdout and stderr. */
  readonly max_output_bytes: number
  /** RLIMIT_CPU, of each process. */
  readonly cpu_time_sec?: number
  /** RLIMIT_AS, of each process. */
  readonly address_space_bytes?: number
  readonly sandbox?: LaunchSandbox
  readonly cgroup?: TaskCgroup
  /** Of the cgroup, which must have the controller. */
  readonly memory_max?: number
  readonly pids_max?: number
}

/** Open descriptors that the launcher inherits, by the numbers it sees. */
export interface LaunchDescriptors {
  /** Of the task directory, or a file of the service's choice: locked for the life of the launcher. */
  readonly lock_fd?: number
  /** Of the FIFO for lines to the service. */
  readonly notify_fd?: number
}
