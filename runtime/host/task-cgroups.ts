/**
 * The cgroups of a service's tasks.
 *
 * They are siblings in one directory, by default `taskmill` below the service's own cgroup: in version 1 one directory
 * for each hierarchy with the controller, in version 2 one for all. A cgroup is named after service and task, so that
 * services can share the directory and each recognizes its own after a crash. The launcher makes, joins, reads and
 * removes the cgroup of its task. This file makes the directory before, and removes what a crash left.
 *
 * Nothing is guessed: a controller counts as usable once it has limited a cgroup made for the trial.
 */
import { mkdirSync, rmdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { messageOf, systemCodeOf } from '../../shared/contract/errors.ts'
import { killEach } from '../../shared/process/pidfd.ts'
import {
  CONTROLLERS,
  type Controller,
  membersOf,
  namesBelow,
  treeOf,
  writeAttribute,
  writeIfThere,
} from './cgroup-files.ts'
import { ownRecord, removeEmptyCgroups, writeRecord } from './cgroup-record.ts'
import { enable, enableDownTo, topOf } from './cgroup-v2.ts'
import { ownCgroup } from './own-cgroup.ts'

/** The cgroups that count and limit the processes of a task. They do not exist yet; their parents do. */
export type TaskCgroup =
  | { readonly version: 2; readonly path: string }
  /** Either controller may be missing. */
  | { readonly version: 1; readonly pids_path?: string; readonly memory_path?: string }

/** Relative to the service's own cgroup. */
export const DEFAULT_CGROUP_ROOT = 'taskmill'

export interface CgroupOptions {
  /**
   * A name below the service's own cgroup. With a leading slash: a path from the top of each hierarchy, or the
   * directory of such a cgroup in one of them.
   */
  readonly root: string
  /** Distinguishes the tasks of services. The same after a restart, without dots and slashes. */
  readonly serviceId: string
  /**
   * Absolute. Other services check by it whether this one is gone for ever. Commands, which clean up themselves, have
   * none.
   */
  readonly dataDir?: string
}

/** Why a controller cannot be used, and what to do about it. */
export interface MissingController {
  readonly controller: Controller
  readonly reason: string
  readonly remedy: string
}

const REMEDY =
  'give the service a control group that it may write (systemd: Delegate=yes), choose another with --cgroup-root, or start it with --disable-cgroup'

/** Milliseconds that killed processes get to disappear, and between two checks. */
const END_MS = 5_000
const LOOK_MS = 2

export class TaskCgroups {
  private constructor(
    readonly version: 1 | 2,
    readonly serviceId: string,
    /** Directories of the task cgroups, by controller; in version 2 the same for all. Without unusable controllers. */
    readonly directories: Readonly<Partial<Record<Controller, string>>>,
    /** The topmost directory that was made for each of them, where one was. */
    readonly made: ReadonlyMap<string, string>,
    readonly missing: readonly MissingController[],
    /** Why cgroups have no record. Without one no other service removes them; their limits hold all the same. */
    readonly unrecorded: readonly string[],
  ) {}

  /** Makes the directory of the tasks, and finds out what works in it. */
  static prepare(options: CgroupOptions): TaskCgroups {
    const homes = new Map(CONTROLLERS.map((controller) => [controller, ownCgroup(controller)]))
    const version = [...homes.values()].some((home) => home?.version === 1) ? 1 : 2
    const directories: Partial<Record<Controller, string>> = {}
    const made = new Map<string, string>()
    const missing: MissingController[] = []
    const unrecorded: string[] = []
    const mountPoints = [...homes.values()].flatMap((home) => home?.directories.at(-1) ?? [])
    const root = pathInHierarchy(options.root, mountPoints)
    for (const [controller, home] of homes) {
      try {
        if (home?.version !== version) {
          throw new Error(`there is no control group hierarchy with the ${controller} controller`)
        }
        const [own, mountPoint] = [home.directories[0]!, home.directories.at(-1)!]
        const top = root.startsWith('/') ? mountPoint : version === 2 ? topOf(own) : own
        const directory = join(top, root)
        if (version === 2) enable(top, controller)
        // An empty cgroup: as long as it exists, no other service removes the directory.
        const group = join(directory, options.serviceId)
        const firstMade = makeShared(group)
        try {
          if (version === 2) enableDownTo(top, directory, controller)
          prove(join(directory, `${options.serviceId}~probe`), controller, version)
        } catch (error) {
          if (firstMade !== undefined) removeUnused(group, firstMade)
          throw error
        }
        if (firstMade !== undefined && firstMade !== group) made.set(directory, firstMade)
        directories[controller] = directory
        if (options.dataDir !== undefined) {
          const fault = recordFault(group, options.dataDir)
          if (fault !== undefined) unrecorded.push(fault)
        }
      } catch (error) {
        missing.push({ controller, reason: messageOf(error), remedy: REMEDY })
      }
    }
    return new TaskCgroups(version, options.serviceId, directories, made, missing, unrecorded)
  }

  /** The cgroup of a task, for its plan. Undefined where there can be none. */
  forTask(taskId: string): TaskCgroup | undefined {
    const { pids, memory } = this.directories
    const name = `${this.serviceId}.${taskId}`
    const directory = pids ?? memory
    if (directory === undefined) return undefined
    if (this.version === 2) return { version: 2, path: join(directory, name) }
    return {
      version: 1,
      ...(pids === undefined ? {} : { pids_path: join(pids, name) }),
      ...(memory === undefined ? {} : { memory_path: join(memory, name) }),
    }
  }

  /** Ids of this service's tasks that have a cgroup: running tasks, and those that a crash left. */
  taskIds(): string[] {
    const prefix = `${this.serviceId}.`
    const names = Object.values(this.directories).flatMap(namesBelow)
    const ours = names.filter((name) => name.startsWith(prefix))
    return [...new Set(ours.map((name) => name.slice(prefix.length)))]
  }

  /**
   * Kills all processes in the cgroups of a task and in their descendants, and removes them. False when a process did
   * not disappear in time. True for a task without a cgroup.
   */
  async end(taskId: string): Promise<boolean> {
    const group = this.forTask(taskId)
    const paths = group === undefined ? [] : group.version === 2 ? [group.path] : [group.pids_path, group.memory_path]
    const until = performance.now() + END_MS
    for (;;) {
      const trees = paths.flatMap((path) => (path === undefined ? [] : treeOf(path)))
      for (const tree of trees) killMembers(tree)
      if (trees.filter((tree) => !removed(tree)).length === 0) return true
      if (performance.now() > until) return false
      await Bun.sleep(LOOK_MS)
    }
  }
}

/** Why the record cannot be written: `cgroup.max.descendants` of an ancestor may leave no room. */
function recordFault(group: string, dataDir: string): string | undefined {
  try {
    writeRecord(group, ownRecord(dataDir))
    return undefined
  } catch (error) {
    return `${group}: ${messageOf(error)}`
  }
}

/** Converts the directory of a cgroup, which `config` shows, to its path in all hierarchies. */
function pathInHierarchy(root: string, mountPoints: readonly string[]): string {
  const mountPoint = mountPoints.find((path) => root === path || root.startsWith(`${path}/`))
  return mountPoint === undefined ? root : root.slice(mountPoint.length) || '/'
}

/** Milliseconds in which a cgroup is to be made while services that end remove those above it. */
const MAKE_MS = 2_000

/** Makes a cgroup below one that services share. Returns the topmost cgroup that was made; undefined if none was. */
function makeShared(group: string): string | undefined {
  for (const end = performance.now() + MAKE_MS; ; ) {
    try {
      return mkdirSync(group, { recursive: true })
    } catch (error) {
      const isRemoved = ['ENOENT', 'EEXIST'].includes(systemCodeOf(error) ?? '')
      if (!isRemoved || performance.now() > end) throw error
      Bun.sleepSync(Math.random()) // the kernel lets both take turns, so a removal would follow each step of ours
    }
  }
}

/** Removes a cgroup and its ancestors up to `top`, as far as nobody uses them. */
function removeUnused(group: string, top: string): void {
  for (let path = group; path.startsWith(top); path = dirname(path)) {
    try {
      rmdirSync(path)
    } catch {
      return // in use, or of another user
    }
  }
}

/** Whether `name` is the cgroup of a task, or of a trial, of the service. */
export const isCgroupOf = (serviceId: string, name: string): boolean =>
  name.startsWith(`${serviceId}.`) || name.startsWith(`${serviceId}~`)

/**
 * Removes the directories that nobody uses. A directory with cgroups of running tasks or of other services stays. The
 * cgroup of this service stays together with those of its tasks: without its record no other service removes those.
 */
export function leaveCgroups({ directories, serviceId, made }: TaskCgroups): void {
  for (const directory of new Set(Object.values(directories))) {
    if (namesBelow(directory).some((name) => isCgroupOf(serviceId, name))) continue
    if (!removeEmptyCgroups(join(directory, serviceId))) continue
    removeUnused(directory, made.get(directory) ?? directory)
  }
}

/** Forbids new processes first: a loop of kills alone does not outrun a fork bomb. */
function killMembers(group: string): void {
  writeIfThere(group, 'pids.max', '0')
  if (writeIfThere(group, 'cgroup.kill', '1')) return
  killEach(membersOf(group), () => membersOf(group))
}

function removed(group: string): boolean {
  try {
    rmdirSync(group)
    return true
  } catch (error) {
    const code = systemCodeOf(error)
    if (code === 'EBUSY' || code === 'ENOTEMPTY') return false
    if (code === 'ENOENT') return true
    throw error
  }
}

/** More than any trial needs, so that it limits nothing. */
const PROBE_LIMIT = String(1024 ** 3)

/** Throws when a cgroup cannot be made, limited and removed there. */
function prove(group: string, controller: Controller, version: 1 | 2): void {
  mkdirSync(group, { recursive: true })
  try {
    if (controller === 'pids') writeAttribute(group, 'pids.max', '1')
    else writeAttribute(group, version === 2 ? 'memory.max' : 'memory.limit_in_bytes', PROBE_LIMIT)
  } finally {
    rmdirSync(group)
  }
}
