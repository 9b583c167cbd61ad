/**
 * The paths of the cgroup of this process in the file system, by controller.
 *
 * A controller belongs to one hierarchy: to one of version 1 if a line of /proc/self/cgroup names it, otherwise to the
 * one of version 2, which may be mounted without any controller. /proc/self/mountinfo says where a hierarchy is
 * mounted, and which part of it. In a container that is often our own part, while /proc/self/cgroup may name the path
 * outside. If the path is not below the mounted part, we are taken to be at its top.
 */
import { join } from 'node:path'
import { readText } from './read-text.ts'

export interface OwnCgroup {
  readonly version: 1 | 2
  /** The directory of our cgroup, then its visible ancestors, the nearest first. */
  readonly directories: readonly string[]
}

/** Null where there is no such hierarchy, or it is not mounted. `root` stands for the root of the host. */
export function ownCgroup(controller: string, root = '/'): OwnCgroup | null {
  const membership = membershipOf(controller, readText(join(root, 'proc/self/cgroup')) ?? '')
  if (membership === null) return null
  const { version, path } = membership
  const mounts = mountsOf(readText(join(root, 'proc/self/mountinfo')) ?? '')
  const mount = mounts.find(
    ({ type, options }) =>
      type === (version === 1 ? 'cgroup' : 'cgroup2') && (version === 2 || options.includes(controller)),
  )
  if (mount === undefined) return null
  const names = pathBelow(mount.root, path).split('/').filter(Boolean)
  const directories = names.map((_, i) => join(root, mount.at, ...names.slice(0, names.length - i)))
  return { version, directories: [...directories, join(root, mount.at)] }
}

/** The hierarchy of a controller and our path in it: a line `4:memory:/a/b`, or `0::/a/b`. */
function membershipOf(controller: string, text: string): { version: 1 | 2; path: string } | null {
  const lines = [...text.matchAll(/^(\d+):([^:]*):(\/.*)$/gm)].map(([, id, controllers, path]) => ({
    isUnified: id === '0' && controllers === '',
    controllers: controllers!.split(','),
    path: path!,
  }))
  const own = lines.find(({ controllers }) => controllers.includes(controller))
  if (own !== undefined) return { version: 1, path: own.path }
  const unified = lines.find(({ isUnified }) => isUnified)
  return unified === undefined ? null : { version: 2, path: unified.path }
}

interface Mount {
  /** The part of the hierarchy that is mounted. */
  readonly root: string
  readonly at: string
  readonly type: string
  readonly options: readonly string[]
}

/** `36 31 0:29 /root /at rw,relatime shared:1 - type source rw,options`; spaces in paths are written `\040`. */
function mountsOf(text: string): Mount[] {
  return text.split('\n').flatMap((line) => {
    const [before, after] = line.split(' - ')
    const [, , , root, at] = before!.split(' ')
    const [type, , options] = after?.split(' ') ?? []
    if (root === undefined || at === undefined || type === undefined || options === undefined) return []
    return [{ root: unescaped(root), at: unescaped(at), type, options: options.split(',') }]
  })
}

const unescaped = (path: string): string =>
  path.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)))

/** `path` relative to `top`. Empty where it is not below. */
function pathBelow(top: string, path: string): string {
  if (path.split('/').includes('..')) return '' // outside of our cgroup namespace
  if (top === '/') return path
  return path === top || path.startsWith(`${top}/`) ? path.slice(top.length) : ''
}
