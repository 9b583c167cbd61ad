/**
 * Where the control groups of a process are, from what the kernel says of it: /proc/self/cgroup and /proc/self/mountinfo.
 * Pure.
 *
 * Per controller: a line of /proc/self/cgroup that names it means version 1. Otherwise it may be in version 2, whose line
 * names none; what is enabled there is in the group's own files. A mount of version 2 alone proves nothing.
 */

export const CONTROLLERS = ['pids', 'memory'] as const
export type Controller = (typeof CONTROLLERS)[number]

export interface OwnCgroups {
  /** The process's own group in version 1, by controller, as a directory. */
  readonly v1: Readonly<Partial<Record<Controller, CgroupDirectory>>>
  /** Its own group in version 2. */
  readonly v2?: CgroupDirectory
}

export interface CgroupDirectory {
  readonly mountPoint: string
  /** The group itself: below the mount point, or that. */
  readonly path: string
}

export function ownCgroups(procCgroup: string, mountinfo: string): OwnCgroups {
  const mounts = mountinfo.split('\n').flatMap(mountOf)
  const v1: Partial<Record<Controller, CgroupDirectory>> = {}
  let v2: CgroupDirectory | undefined
  for (const line of procCgroup.split('\n')) {
    const [, id, names, group] = /^(\d+):([^:]*):(\/.*)$/.exec(line) ?? []
    if (names === undefined || group === undefined) continue
    if (id === '0' && names === '') {
      v2 = firstDirectory(mounts, 'cgroup2', undefined, group)
      continue
    }
    for (const controller of CONTROLLERS) {
      if (!names.split(',').includes(controller)) continue
      const directory = firstDirectory(mounts, 'cgroup', controller, group)
      if (directory !== undefined) v1[controller] = directory
    }
  }
  return { v1, ...(v2 === undefined ? {} : { v2 }) }
}

interface Mount {
  readonly type: string
  /** The directory of the file system that is mounted. */
  readonly root: string
  readonly mountPoint: string
  readonly options: readonly string[]
}

/** `id parent device root mount-point options [fields] - type source options` */
function mountOf(line: string): Mount[] {
  const [before, after] = line.split(' - ')
  const [, , , root, mountPoint] = before?.split(' ') ?? []
  const [type, , options] = after?.split(' ') ?? []
  if (root === undefined || mountPoint === undefined || type === undefined) return []
  return [{ type, root: unescaped(root), mountPoint: unescaped(mountPoint), options: options?.split(',') ?? [] }]
}

/** Spaces and their like stand in octal: `\040`. */
const unescaped = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

/** The group as a directory of the first mount that shows it. A container may see less than the whole tree. */
function firstDirectory(
  mounts: readonly Mount[],
  type: string,
  option: string | undefined,
  group: string,
): CgroupDirectory | undefined {
  for (const mount of mounts) {
    if (mount.type !== type || (option !== undefined && !mount.options.includes(option))) continue
    const below = relative(mount.root, group)
    if (below !== undefined) return { mountPoint: mount.mountPoint, path: mount.mountPoint + below }
  }
  return undefined
}

/** `/a/b` relative to `/a` is `/b`, to itself empty. Undefined when it is not below; `/..` is outside of our namespace. */
function relative(root: string, group: string): string | undefined {
  if (group.split('/').includes('..')) return undefined
  if (group === root || (group === '/' && root === '/')) return ''
  const prefix = root === '/' ? '/' : `${root}/`
  return group.startsWith(prefix) ? `/${group.slice(prefix.length)}` : undefined
}
