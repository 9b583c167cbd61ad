/** The work of a launcher, as values. */
import type { TaskCgroup } from '../host/task-cgroups.ts'
import type { SandboxFeature } from '../plan/isolation.ts'
import type { ViewPaths } from './sandbox-view.ts'

/**
 * The sandbox of a task. With any features, the task has no capabilities, gains none by execve, and is never root.
 * Without `mount` the task sees the files of the host as they are, and the paths are ignored.
 */
export interface LaunchSandbox extends ViewPaths {
  readonly features: readonly SandboxFeature[]
  /** User and group of the task. Required for a root launcher, refused by others. */
  readonly uid?: number
}

/** A way out of the sandbox, which needs `net`: every connection to the port of its loopback goes to a socket. */
export interface LaunchEgress {
  /**
   * Absolute path of a Unix socket, whose name has at most 107 bytes. The socket may be replaced while the task runs, its
   * directory may not. Connections are closed while nobody listens.
   */
  readonly socket: string
  /** The port on 127.0.0.1, and on ::1 where the host has IPv6. */
  readonly port: number
}

export interface LaunchPlan {
  readonly task_id: string
  /** Made by the service, without files of a launcher: no task runs twice. */
  readonly task_dir: string
  /**
   * Identity of the directory (`taskDirId`). If another directory has the name by now, the launch is refused. Default:
   * any.
   */
  readonly task_dir_id?: string
  /** As the task sees it. */
  readonly workdir: string
  readonly command: readonly [program: string, ...args: string[]]
  /** The name of the file in the task directory that is its standard input. Default: /dev/null. */
  readonly stdin?: string
  readonly wall_time_ms: number
  /** Milliseconds between TERM and KILL. */
  readonly grace_ms: number
  /** Milliseconds after KILL until a process that does not end is given up. Default: 30 s. */
  readonly give_up_ms?: number
  /** For each of stdout and stderr. */
  readonly max_output_bytes: number
  /** Bytes that the task may allocate in its workspace, besides those that were there before. */
  readonly disk_bytes?: number
  /** Variables of the environment with texts to mask in the output (mask-variables.ts). Default: the output is not masked. */
  readonly mask_count?: number
  /** RLIMIT_CPU, for each process. */
  readonly cpu_time_sec?: number
  /** RLIMIT_AS, for each process. */
  readonly address_space_bytes?: number
  readonly sandbox?: LaunchSandbox
  readonly egress?: LaunchEgress
  readonly cgroup?: TaskCgroup
  /** Limits of the cgroup, which must have the controllers. */
  readonly memory_max?: number
  readonly pids_max?: number
}

/** Descriptors that the launcher inherits, by the numbers it sees. */
export interface LaunchDescriptors {
  /** Locked for the life of the launcher: the task directory, or a file of the service's choice. */
  readonly lock_fd?: number
  /** The FIFO for events. */
  readonly notify_fd?: number
}
