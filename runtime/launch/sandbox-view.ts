/**
 * The file view of a task in a sandbox, as the ordered list of mounts that builds it. Pure.
 *
 * The launcher makes its mount namespace private, opens every source, then applies the list in order
 * (launch/c/sandbox/view.h). It does not know which paths are hidden. Every decision is made here, about the
 * paths that `host/sandbox-paths.ts` finds.
 *
 * Absolute paths are paths of the host. Other names are paths in a tmpfs that the launcher mounts over the host's /dev
 * and works in. The tmpfs holds the private /dev, /tmp and /dev/shm of the task, the empty directories that cover
 * hidden paths, and, for a task with a rootfs, the new root at `root`.
 */
import { isWithin } from '../../shared/files/is-within.ts'

/**
 * One entry of the list. Its words are launcher arguments as they are. The launcher reports a failed entry by its step
 * (launch/faults.ts) and its target.
 */
export type Mount =
  /** Makes the mount at `target` and all mounts below it read-only, nosuid and nodev. */
  | readonly [op: 'freeze', target: string]
  /** Mounts the tmpfs and changes into it. */
  | readonly [op: 'tmpfs', target: string, options: string]
  /** Creates a directory and its parents. `mode` is octal. */
  | readonly [op: 'dir', target: string, mode: string]
  /**
   * Creates a mount point for the bind of `source`, with its parents: a directory or an empty file, as the source is.
   */
  | readonly [op: 'mountpoint', source: string, target: string]
  /** Sets the flags of the mount at `target`. */
  | readonly [op: 'remount', target: string, flags: string]
  /** Bind-mounts `source`, recursively. `bind-try` does nothing if the source or the target does not exist. */
  | readonly [op: 'bind' | 'bind-try', step: BindStep, source: string, target: string, flags: string]
  /** Hides `target`, if it exists: a directory under the directory `cover`, anything else under an empty file. */
  | readonly [op: 'mask', target: string, cover: string]
  /** Mounts nothing. Allows a rootfs in `target`, although `target` lies in a mask. */
  | readonly [op: 'allow', target: string]
  /** Creates a symlink to `source`. */
  | readonly [op: 'symlink', source: string, target: string]
  /** Mounts the terminals of the task. */
  | readonly [op: 'devpts', target: string, options: string]
  /** Mounts the proc file system of the task's pid namespace. */
  | readonly [op: 'proc', target: string]
  /**
   * Bind-mounts each entry of the directory `source` into `target`, without the names in `except`. Later masks of host
   * paths apply to the same paths below `target`, or to nothing if they are outside `source`. Fails if `source` is
   * masked.
   */
  | readonly [op: 'bind-entries', source: string, target: string, except: string]
  /** Makes `target` the root and detaches the old root. */
  | readonly [op: 'pivot', target: string]

/** The steps by which faults.ts explains a failed bind. */
export type BindStep = 'devices' | 'proc' | 'tmp' | 'expose' | 'workspace' | 'script' | 'scaffold'

/** Absolute paths of the host, without symlinks except in `rootfs`. */
export interface ViewPaths {
  /** The new root, read-only. Without it the task sees the host, read-only. */
  readonly rootfs?: string
  /** The writable directory: at its own path, or at ROOT_WORKSPACE in a rootfs. */
  readonly workspace?: string
  /** A readable file: at its own path, or at ROOT_SCRIPT in a rootfs. */
  readonly script?: string
  /** Hidden paths. */
  readonly masks?: readonly string[]
  /** Paths that are shown, read-only, although they lie in hidden or private directories. */
  readonly exposed?: readonly string[]
}

/** Whether the task has a pid namespace: its /proc is a new one, else that of the host. */
type HasPids = boolean

export const ROOT_WORKSPACE = '/workspace'
export const ROOT_SCRIPT = '/script'

/**
 * The task can write only to /tmp and /dev/shm in the tmpfs. What it writes counts towards its memory limit. Without a
 * memory limit this size is the limit.
 */
const TMPFS_OPTIONS = 'mode=0755,size=512m,nr_inodes=65536'

/** The devices that programs expect in /dev. A host may lack some of them. */
const DEVICES = ['null', 'zero', 'full', 'random', 'urandom', 'tty']
const LINKS = {
  fd: '/proc/self/fd',
  stdin: '/proc/self/fd/0',
  stdout: '/proc/self/fd/1',
  stderr: '/proc/self/fd/2',
  ptmx: 'pts/ptmx',
}
const DEVPTS_OPTIONS = 'newinstance,ptmxmode=0666,mode=620'

/** Names in the tmpfs. */
const IN_MEMORY = { dev: 'dev', tmp: 'tmp', shm: 'shm', empty: 'empty', root: 'root' } as const

/** The flags that the source has. */
const SAME = 'same'
/** Adds the flags that the source had before `freeze`: a user namespace must not remove them. */
const KEEP = 'keep,nosuid,nodev'
/** Without nodev, so that the task can open it. A read-only mount does not affect what is written to a device. */
const DEVICE = 'ro,keep,nosuid,noexec'

/** In mount order, for places with the same path. */
const KINDS = ['mask', 'tmp', 'dev', 'shm', 'proc', 'exposed', 'workspace', 'script'] as const
type Kind = (typeof KINDS)[number]

/** A path at which the task sees something else than the surrounding directory of the host. */
interface Place {
  readonly kind: Kind
  readonly path: string
  /** The host path to bind. */
  readonly source: string
  /** Sorts a directory before its content and its content before its neighbours: `/a`, `/a/b`, `/a-b`. */
  readonly key: string
}

interface NestedPlace extends Place {
  /** The innermost place around this one. */
  readonly outer: NestedPlace | undefined
  /** The directory in the tmpfs that is mounted here. Mount points of inner places are created in it. */
  memory: string | undefined
}

const OWN: readonly Place[] = [
  placeOf('tmp', '/tmp'),
  placeOf('dev', '/dev'),
  placeOf('shm', '/dev/shm'),
  placeOf('proc', '/proc'),
]

/** The tmpfs becomes read-only. Binds from it inherit that, unless they set flags. */
const SEAL: Mount = ['remount', '.', 'ro,nosuid,nodev,noexec']

export const sandboxView = (paths: ViewPaths, hasPids: HasPids): Mount[] =>
  paths.rootfs === undefined ? hostView(paths, hasPids) : rootView(paths, paths.rootfs, hasPids)

/** The path at which the task would have seen the target of a mount. Undefined for helper directories in the tmpfs. */
export const seenPath = (target: string): string | undefined =>
  [target, target.slice(IN_MEMORY.root.length)].find((path) => path.startsWith('/'))

/** The host, read-only, with the places on top. */
function hostView({ workspace, script, masks = [], exposed = [] }: ViewPaths, hasPids: HasPids): Mount[] {
  const places = nested([
    ...OWN,
    ...hiddenAndShown(masks, exposed),
    ...(workspace === undefined ? [] : [placeOf('workspace', workspace)]),
    ...(script === undefined ? [] : [placeOf('script', script)]),
  ])
  return [
    // First, because without mount_setattr (Linux 5.12) the launcher cannot reach a mount that another one covers.
    ['freeze', '/'],
    ...tmpfs(),
    ...mountpoints(places, undefined),
    SEAL,
    ...places.flatMap((place) => mountsOf(place, '', hasPids)),
  ]
}

/** The rootfs, read-only, with the masks of the host and the places on top. */
function rootView(
  { workspace, script, masks = [], exposed = [] }: ViewPaths,
  rootfs: string,
  hasPids: HasPids,
): Mount[] {
  const { root, empty } = IN_MEMORY
  const ofHost = nested(hiddenAndShown(masks, exposed))
  const places = nested([
    ...OWN,
    // The proc file system of the task shows most of the same files as that of the host.
    ...masks.filter((mask) => mask !== '/proc' && isWithin(mask, '/proc')).map((mask) => placeOf('mask', mask)),
    ...(workspace === undefined ? [] : [placeOf('workspace', ROOT_WORKSPACE, workspace)]),
    ...(script === undefined ? [] : [placeOf('script', ROOT_SCRIPT, script)]),
  ])
  const ownNames = places.filter(({ outer }) => outer === undefined).map(({ path }) => path.slice(1))
  return [
    ...tmpfs(),
    ['dir', root, '0755'],
    // pivot_root requires a mount point.
    ['bind', 'scaffold', root, root, SAME],
    ...mountpoints(places, root),
    ['bind-entries', rootfs, root, ownNames.join(',')],
    ['freeze', root],
    SEAL,
    ...ofHost.map(({ kind, path }): Mount => (kind === 'mask' ? ['mask', path, empty] : ['allow', path])),
    ...places.flatMap((place) => mountsOf(place, root, hasPids)),
    ['pivot', root],
  ]
}

const tmpfs = (): Mount[] => [
  ['tmpfs', '/dev', TMPFS_OPTIONS],
  ['dir', IN_MEMORY.dev, '0755'],
  ...DEVICES.map((name): Mount => ['mountpoint', `/dev/${name}`, `${IN_MEMORY.dev}/${name}`]),
  ...Object.entries(LINKS).map(([name, to]): Mount => ['symlink', to, `${IN_MEMORY.dev}/${name}`]),
  ['dir', `${IN_MEMORY.dev}/pts`, '0755'],
  ['dir', `${IN_MEMORY.dev}/shm`, '0755'],
  ['dir', IN_MEMORY.tmp, '1777'],
  ['dir', IN_MEMORY.shm, '1777'],
  ['dir', IN_MEMORY.empty, '0755'],
]

/** A mask that is exposed as a whole is dropped: a recursive bind of its path would bring the cover along. */
function hiddenAndShown(masks: readonly string[], exposed: readonly string[]): Place[] {
  const shown = new Set(exposed)
  return [
    ...masks.filter((mask) => !shown.has(mask)).map((mask) => placeOf('mask', mask)),
    ...exposed.map((path) => placeOf('exposed', path)),
  ]
}

function placeOf(kind: Kind, path: string, source = path): Place {
  return { kind, path, source, key: path.replaceAll('/', '\0') }
}

/** The places that change the view, outer ones first. */
function nested(places: readonly Place[]): NestedPlace[] {
  const found: NestedPlace[] = []
  /** The places around the current path, outermost first. */
  const around: NestedPlace[] = []
  for (const place of places.toSorted(inMountOrder)) {
    while (around.length > 0 && !isWithin(place.path, around.at(-1)!.path)) around.pop()
    const outer = around.at(-1)
    if (!isNeeded(place.kind, outer)) continue
    const kept = { ...place, outer, memory: memoryOf(place.kind) }
    found.push(kept)
    around.push(kept)
  }
  let covers = 0
  // Masks without inner places share one empty directory.
  for (const { outer } of found) if (outer?.memory === IN_MEMORY.empty) outer.memory = `cover-${++covers}`
  return found
}

function inMountOrder(a: Place, b: Place): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1
  return KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind)
}

/** A mask in a hidden or private directory hides nothing. An exposed path outside of them is visible anyway. */
function isNeeded(kind: Kind, outer: NestedPlace | undefined): boolean {
  const isCovered = outer?.memory !== undefined
  if (kind === 'mask') return !isCovered
  return kind !== 'exposed' || isCovered
}

function memoryOf(kind: Kind): string | undefined {
  if (kind === 'mask') return IN_MEMORY.empty
  return kind === 'tmp' || kind === 'dev' || kind === 'shm' ? IN_MEMORY[kind] : undefined
}

/**
 * Creates covers, and the mount points of places in the tmpfs. `top` is the directory of the root there, if it has one.
 */
function mountpoints(places: readonly NestedPlace[], top: string | undefined): Mount[] {
  return places.flatMap((place): Mount[] => {
    const { kind, path, source, outer, memory } = place
    const covers: Mount[] = memory?.startsWith('cover-') ? [['dir', memory, '0755']] : []
    const around = outer === undefined ? top : outer.memory
    const rest = path.slice(outer === undefined || outer.path === '/' ? 0 : outer.path.length)
    // The mount point of /dev/shm is always there. Masks hide paths that exist.
    if (around === undefined || rest === '' || kind === 'shm' || kind === 'mask') return covers
    const target = `${around}${rest}`
    const isOwn = kind === 'tmp' || kind === 'dev' || kind === 'proc'
    return [...covers, isOwn ? ['dir', target, '0755'] : ['mountpoint', source, target]]
  })
}

/** `top` is the directory of the root in the tmpfs, or empty for the host. */
function mountsOf({ kind, path, source, outer, memory }: NestedPlace, top: string, hasPids: HasPids): Mount[] {
  const target = `${top}${path}`
  switch (kind) {
    case 'mask':
      return [['mask', target, memory!]]
    case 'tmp': // A host may have no /tmp.
      return [['bind-try', 'tmp', IN_MEMORY.tmp, target, 'nosuid,nodev']]
    case 'dev':
      return [
        ['bind', 'devices', IN_MEMORY.dev, target, SAME],
        ...DEVICES.map((name): Mount => ['bind-try', 'devices', `/dev/${name}`, `${target}/${name}`, DEVICE]),
        ['devpts', `${target}/pts`, DEVPTS_OPTIONS],
      ]
    case 'shm':
      return [['bind', 'devices', IN_MEMORY.shm, target, 'nosuid,nodev,noexec']]
    case 'proc': // The kernel gives a new one only with processes of one's own.
      return [hasPids ? ['proc', target] : ['bind', 'proc', '/proc', target, 'nosuid,nodev,noexec']]
    case 'exposed': // Without nodev, as far as the kernel permits, so that the task can open an exposed device.
      return [['bind-try', 'expose', source, target, outer?.kind === 'dev' ? 'ro,nosuid,noexec,if-permitted' : SAME]]
    case 'workspace':
      return [['bind', 'workspace', source, target, KEEP]]
    case 'script': // In the host view its source is read-only already.
      return [['bind', 'script', source, target, top === '' ? SAME : `ro,${KEEP}`]]
  }
}
