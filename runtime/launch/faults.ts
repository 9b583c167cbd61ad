/**
 * Why a task could not be started, for people: the step, the system's reason, the remedy. Pure.
 *
 * The steps are those of fault.h. A test compares the lists.
 */
import { getSystemErrorMap } from 'node:util'

/** Distributions, container engines and service managers restrict namespaces. */
const NAMESPACES_REMEDY =
  'allow them: sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), user.max_user_namespaces above 0; in a container --security-opt seccomp=unconfined and --security-opt systempaths=unconfined, or for root --cap-add SYS_ADMIN and --cap-add NET_ADMIN; or run the service as root'

const MOUNTS_REMEDY =
  'let the service mount: in a container --cap-add SYS_ADMIN, --security-opt apparmor=unconfined and seccomp=unconfined'

/** Completes `cannot start the task: `. A remedy in `errors` overrides the general one. */
interface StepWords {
  readonly what: string
  readonly remedy: string
  readonly errors?: Readonly<Record<string, string>>
}

const STEPS: Readonly<Record<string, StepWords>> = {
  descriptors: {
    what: 'the launcher cannot use the descriptors it was given',
    remedy: 'this is a fault of the service: please report it',
  },
  supervision: {
    what: 'the launcher cannot become the reaper of its children',
    remedy: 'a kernel from 3.4 on has what it needs; a filter for system calls may forbid it',
  },
  task_dir: {
    what: 'the directory of the task cannot be used',
    remedy: 'check that the data directory is there and belongs to the user of the service',
    errors: {
      EEXIST: 'a launcher has used it before, and no task is started twice',
      ESTALE: 'it was removed, and made again for another task of the same id',
    },
  },
  lock: {
    what: 'the lock of the task cannot be taken',
    remedy: 'the data directory must be on a file system with flock',
    errors: { EAGAIN: 'another launcher of this task is still there' },
  },
  outcome: {
    what: 'there is no room for the outcome of the task',
    remedy: 'check that the data directory is writable and its disk sound',
    errors: {
      ENOSPC: 'free some space on the disk of the data directory',
      EDQUOT: 'raise the disk quota of the service',
    },
  },
  logs: {
    what: 'the log files cannot be opened',
    remedy: 'check that the data directory is writable and its disk sound',
    errors: { ENOSPC: 'free some space, or inodes, on the disk of the data directory' },
  },
  masks: {
    what: 'its output cannot be masked',
    remedy: 'this is a fault of the service: please report it',
    errors: {
      ENOMEM: 'free some memory',
      ENFILE: 'raise the limit on open files of the system (fs.file-max)',
      EMFILE: 'raise the limit on open files of the service (ulimit -n)',
    },
  },
  cgroup_create: {
    what: 'its cgroup cannot be made',
    remedy: 'check that the service may write below --cgroup-root, or start it with --disable-cgroup',
  },
  cgroup_memory: {
    what: 'the memory limit of its cgroup cannot be set',
    remedy: 'check memory_bytes, and that the memory controller is enabled below --cgroup-root',
  },
  cgroup_pids: {
    what: 'the process limit of its cgroup cannot be set',
    remedy: 'check pids_max, and that the pids controller is enabled below --cgroup-root',
  },
  cgroup_join: {
    what: 'its process cannot join the cgroup',
    remedy: 'check that the service may move processes below --cgroup-root, or start it with --disable-cgroup',
  },
  namespaces: {
    what: 'its namespaces cannot be made',
    remedy: NAMESPACES_REMEDY,
    errors: {
      ENOSPC: 'raise the limits on namespaces (sysctl user.max_user_namespaces, user.max_mnt_namespaces and so on)',
      EAGAIN: 'raise the limit on processes of the user of the service (ulimit -u, TasksMax)',
      EINVAL: 'this kernel was built without one of the namespaces: leave it out in sandbox.namespaces',
    },
  },
  user_namespace: {
    what: 'its user namespace cannot be made',
    remedy: NAMESPACES_REMEDY,
    errors: {
      ENOSPC: 'raise sysctl user.max_user_namespaces',
      EROFS: 'container engines make /proc/sys read-only: run the container with --security-opt systempaths=unconfined',
    },
  },
  user_map: { what: 'its user cannot be mapped into a user namespace', remedy: NAMESPACES_REMEDY },
  cgroup_namespace: {
    what: 'its cgroup namespace cannot be made',
    remedy: NAMESPACES_REMEDY,
    errors: { EINVAL: 'leave out sandbox.namespaces.cgroup, or use a kernel from 4.6 on' },
  },
  loopback: {
    what: 'the loopback device of its network cannot be started',
    remedy: 'leave out sandbox.namespaces.net, or let the service make network namespaces',
    errors: { EPERM: 'let the service set up networks: in a container --cap-add NET_ADMIN' },
  },
  egress: {
    what: 'its way out to the network, which its rules need, cannot be opened',
    remedy:
      'check that the data directory is there; a filter for system calls around the service may forbid setns or chroot',
    errors: {
      EACCES: 'the user of the service must be able to enter the data directory',
      ENOENT: 'the data directory is gone: restart the service',
    },
  },
  propagation: {
    what: 'its mounts cannot be made private, so they would appear on the host',
    remedy: MOUNTS_REMEDY,
    errors: { EINVAL: 'run the service outside of a chroot' },
  },
  places: {
    what: 'its workspace, its script or a part of the host to be shown cannot be found',
    remedy: 'check that the data directory and the paths of --sandbox-expose can be reached',
  },
  freeze: { what: 'its view of the host cannot be made read-only', remedy: MOUNTS_REMEDY },
  scaffold: { what: 'there can be no file system in memory for its view of the host', remedy: MOUNTS_REMEDY },
  devices: { what: 'its /dev cannot be made', remedy: MOUNTS_REMEDY },
  proc: {
    what: 'its /proc cannot be mounted',
    remedy:
      'container engines hide parts of /proc, and then the kernel gives none to others: run the container with --security-opt systempaths=unconfined',
  },
  tmp: { what: 'its /tmp cannot be mounted', remedy: MOUNTS_REMEDY },
  mask: { what: 'a part of the host cannot be hidden', remedy: 'check the paths of --sandbox-mask' },
  expose: { what: 'a part of the host cannot be shown', remedy: 'check the paths of --sandbox-expose' },
  workspace: { what: 'its workspace cannot be mounted', remedy: MOUNTS_REMEDY },
  script: { what: 'its script cannot be mounted', remedy: MOUNTS_REMEDY },
  rootfs: {
    what: 'sandbox.rootfs cannot be used',
    remedy: 'check that it is a directory that the service may read',
    errors: {
      EACCES:
        'the service must be able to read it, and it may not lie in a part of the host that is hidden from tasks: show it with --sandbox-expose, or put it elsewhere',
      E2BIG: 'a root has at most 256 entries: put what is in it one level deeper',
    },
  },
  pivot: {
    what: 'sandbox.rootfs cannot become its root',
    remedy: 'the service itself must not run in a chroot, nor directly in an initramfs',
    errors: { EPERM: 'let the service change roots: in a container --security-opt seccomp=unconfined' },
  },
  sandbox_uid: {
    what: 'its process cannot become the user of sandboxes',
    remedy: 'choose a user that exists in the user namespace of the service with --sandbox-uid',
  },
  privileges: {
    what: 'its process cannot give up its rights',
    remedy: 'a filter for system calls around the service may forbid capset or prctl: allow them',
  },
  seccomp: {
    what: 'its system calls cannot be filtered',
    remedy: 'use a kernel with CONFIG_SECCOMP_FILTER, and allow seccomp in a filter around the service',
  },
  init: {
    what: 'the first process of its pid namespace cannot do its work',
    remedy: 'look for messages of the kernel; raise the limit on processes of the user of the service (ulimit -u)',
  },
  fork: {
    what: 'there can be no new process',
    remedy:
      'raise the limit on processes of the user of the service (ulimit -u, TasksMax), or run fewer tasks at a time',
  },
  started: {
    what: 'it cannot be written down who runs',
    remedy: 'check that the data directory is writable and /proc is mounted',
  },
  session: { what: 'its process gets no session', remedy: 'this is a fault of the service: please report it' },
  stdio: {
    what: 'its standard streams cannot be connected',
    remedy: 'check that /dev/null and the file stdin in its directory are there and readable',
  },
  limits: {
    what: 'its resource limits cannot be set',
    remedy: 'check cpu_time_sec and memory_bytes against the limits of the service itself (ulimit -a)',
  },
  workdir: {
    what: 'its working directory cannot be entered',
    remedy: 'check that the directory is there and the user of the service may enter it',
    errors: {
      ENOENT: 'sandbox.workspace_subdir must exist in the workspace',
      ENOTDIR: 'sandbox.workspace_subdir must be a directory',
    },
  },
  exec: {
    what: 'the program cannot be run',
    remedy: 'check execution.program',
    errors: {
      ENOENT:
        'check the path of the program and of its interpreter (#!); a bare name is looked up in the PATH of the task',
      EACCES: 'make the program executable (chmod +x) and its directories searchable; a directory is no program',
      ENOEXEC: 'begin the script with a #! line, or name its interpreter as the program',
      E2BIG: 'shorten the arguments and the environment, or pass the data in a file',
      ENOMEM: 'raise memory_bytes: the program does not fit',
      ETXTBSY: 'close the program file: it is still being written',
    },
  },
}

/** A step that the service reports, not a launcher. */
export const UNBEGUN_STEP = 'unbegun'

const UNBEGUN: StepWords = {
  what: 'its launcher did not begin in time',
  remedy: 'look for launchers, and their fork server, that are stopped, and for a machine that has far too much to do',
}

export interface Explanation {
  /** A line with the failed step, the cause and the remedy. */
  readonly message: string
  readonly details: { readonly step: string; readonly errno: string; readonly remedy?: string }
}

/** A failed step in words. */
export interface Failure {
  readonly what: string
  readonly reason: string
  readonly errno: string
  readonly remedy?: string
}

export function failureOf(step: string, errno: number): Failure {
  const [name, reason] = getSystemErrorMap().get(-errno) ?? [`error ${errno}`, `error ${errno}`]
  const known = step === UNBEGUN_STEP ? UNBEGUN : STEPS[step]
  const remedy = known?.errors?.[name] ?? known?.remedy
  return {
    what: known?.what ?? `step ${step} failed`,
    reason,
    errno: name,
    ...(remedy === undefined ? {} : { remedy }),
  }
}

/** `subject` names what the step was about: the program, the directory. */
export function explainFault(step: string, errno: number, subject?: string): Explanation {
  const { what, reason, errno: name, remedy } = failureOf(step, errno)
  const about = subject === undefined ? '' : ` ("${subject}")`
  return {
    message: `cannot start the task: ${what}${about}: ${reason}${remedy === undefined ? '' : ` (${remedy})`}`,
    details: { step, errno: name, ...(remedy === undefined ? {} : { remedy }) },
  }
}

/** Why a launcher itself cannot be started, by error code. */
const SPAWN_FAILURES: Readonly<Record<string, { reason: string; remedy: string }>> = {
  E2BIG: {
    reason: 'its arguments and environment are too long',
    remedy: 'shorten them, or pass the data in a file',
  },
  ERR_INVALID_ARG_VALUE: {
    reason: 'its arguments or its environment have a NUL character',
    remedy: 'remove it: no program can be given one',
  },
  EAGAIN: {
    reason: 'there can be no new process',
    remedy:
      'raise the limit on processes of the user of the service (ulimit -u, TasksMax), or run fewer tasks at a time',
  },
  ENOMEM: { reason: 'the machine is out of memory', remedy: 'run fewer tasks at a time' },
  EMFILE: {
    reason: 'the service has too many files open',
    remedy: 'raise its limit (ulimit -n, LimitNOFILE), or run fewer tasks at a time',
  },
  ENFILE: { reason: 'the machine has too many files open', remedy: 'raise fs.file-max' },
  EACCES: {
    reason: 'the launcher may not be executed',
    remedy: 'put the data directory on a file system that is not mounted noexec',
  },
  ENOENT: {
    reason: 'the launcher is gone from the data directory',
    remedy: 'restart the service, which puts it there',
  },
}

/** Undefined for errors that only a defect of ours can cause. */
export function explainSpawnFailure(code: string): Explanation | undefined {
  const known = SPAWN_FAILURES[code]
  if (known === undefined) return undefined
  const { reason, remedy } = known
  return { message: `cannot start the task: ${reason} (${remedy})`, details: { step: 'spawn', errno: code, remedy } }
}

export const FAULT_STEPS: readonly string[] = Object.keys(STEPS)
