/** Temporary cgroups of a command. They are removed, with all processes in them, when the command ends. */
import { isThere, pidNamespace } from '../../shared/process/processes.ts'
import { namesBelow } from '../host/cgroup-files.ts'
import { DEFAULT_CGROUP_ROOT, leaveCgroups, TaskCgroups } from '../host/task-cgroups.ts'

export interface CgroupSettings {
  readonly cgroupRoot: string
  readonly disableCgroup: boolean
}

/** Cgroup names begin with their owner: the command, its pid, and the pid namespace in which that pid is valid. */
const OWNER = /^((?:doctor|escape)-(\d+)-([a-z0-9]+))(?:[.~]|$)/

export interface OwnCgroups extends AsyncDisposable {
  /** Undefined if cgroups are disabled. */
  readonly tasks: TaskCgroups | undefined
}

/** Also ends and removes the cgroups of commands that were killed. */
export async function ownCgroups(
  kind: 'doctor' | 'escape',
  { cgroupRoot, disableCgroup }: CgroupSettings,
): Promise<OwnCgroups> {
  if (disableCgroup) return { tasks: undefined, [Symbol.asyncDispose]: async () => {} }
  const root = cgroupRoot || DEFAULT_CGROUP_ROOT
  const tasks = TaskCgroups.prepare({ root, serviceId: `${kind}-${process.pid}-${pidNamespace()}` })
  for (const serviceId of left(tasks)) await end(TaskCgroups.prepare({ root, serviceId }))
  return { tasks, [Symbol.asyncDispose]: () => end(tasks) }
}

function left({ directories }: TaskCgroups): Set<string> {
  const owners = Object.values(directories)
    .flatMap(namesBelow)
    .map((name) => OWNER.exec(name))
  const isLeft = ([, , pid, namespace]: RegExpExecArray) => namespace === pidNamespace() && !isThere(Number(pid))
  return new Set(owners.flatMap((owner) => (owner !== null && isLeft(owner) ? [owner[1]!] : [])))
}

async function end(cgroups: TaskCgroups): Promise<void> {
  for (const name of cgroups.taskIds()) await cgroups.end(name).catch(() => false) // not ours to end
  leaveCgroups(cgroups)
}
