/** What a launcher is asked to do, in values. */

/** Where the task's processes are counted and limited. The directories do not exist yet; their parents do. */
export type TaskCgroup =
  | { readonly version: 2; readonly path: string }
  /** Either controller may be missing. */
  | { readonly version: 1; readonly pids_path?: string; readonly memory_path?: string }

export interface LaunchPlan {
  readonly task_id: string
  /** Made by the service, empty of a launcher's files: no task runs twice. */
  readonly task_dir: string
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
  /** Of the FIFO `kill` in the task directory, so that requests wait in it before the launcher has begun. */
  readonly kill_fd?: number
}
