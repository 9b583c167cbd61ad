/**
 * The files that a task in a sandbox sees, as the ordered list of mounts that makes this view. Pure.
 *
 * The launcher makes its mounts private, opens every source, then applies the list entry by entry (c/sandbox/view.h). It
 * does not know what is hidden, or why: each decision is made here.
 *
 * An absolute path names a place of the host. Any other name lies in a file system in memory, which is mounted over the
 * host's /dev and is the working directory while the list is applied. It holds the task's own /dev, /tmp and /dev/shm, the
 * empty directories that cover hidden places, and `root`, where a task gets a root of its own.
 */
import { isWithin } from './is-within.ts'

/** One step. The launcher takes the words as they are; a failure is reported as the step of the entry, with its target. */
export type Mount =
  /** The mount at `target` and all below become read-only, without set-user-id programs and devices. */
  | readonly [op: 'freeze', target: string]
  /** Mounts the file system in memory and enters it. */
  | readonly [op: 'tmpfs', target: string, options: string]
  /** A directory with device nodes, or with files to mount those of the host on where no node can be made. */
  | readonly [op: 'devices', target: string]
  /** A directory, with its parents. `mode` is octal. */
  | readonly [op: 'dir', target: string, mode: string]
  /** An empty directory or an empty file, with its parents: a mount point for the bind of `source`. None if there is no source. */
  | readonly [op: 'ground', source: string, target: string]
  /** The flags of the mount at `target` become `flags`. */
  | readonly [op: 'remount', target: string, flags: string]
  /** `source` appears at `target`, with all mounts below it. The second form skips a source or target that is not there. */
  | readonly [op: 'bind' | 'bind-try', step: BindStep, source: string, target: string, flags: string]
  /** Hides `target`, if it is there: `cover` is mounted over a directory, an empty file over anything else. */
  | readonly [op: 'mask', target: string, cover: string]
  /** Mounts nothing. A tree in `target` may be a root although `target` lies in a mask. */
  | readonly [op: 'allow', target: string]
  /** The directory of `devices` appears at `target`, with the devices of the host that could not be made, and terminals. */
  | readonly [op: 'dev', source: string, target: string]
  /** The processes of the task's pid namespace; without one, those of the host. */
  | readonly [op: 'proc', target: string]
  /**
   * Each entry of the directory `source` appears in `target`, but those whose names are among `except`. From then on a
   * mask of a host path means the place of that path in the tree, and nothing where the tree does not have it. A tree that
   * lies in a mask is refused.
   */
  | readonly [op: 'tree', source: string, target: string, except: string]
  /** `target` becomes the root. Nothing of the old root is left. */
  | readonly [op: 'pivot', target: string]

/** The steps of faults.ts that a bind may fail as. */
export type BindStep = 'devices' | 'tmp' | 'expose' | 'workspace' | 'script' | 'scaffold'

/** The paths of the host that a view is made of: real and absolute. */
export interface ViewPaths {
  /** The directory that becomes the root. Need not be a real path. Without it the task sees the host. */
  readonly rootfs?: string
  /** The directory that the task may write: at its own path, or at ROOT_WORKSPACE in a rootfs. */
  readonly workspace?: string
  /** A file that the task may read: at its own path, or at ROOT_SCRIPT in a rootfs. */
  readonly script?: string
  /** Places of the host that are hidden. */
  readonly masks?: readonly string[]
  /** Places in hidden ones that are shown after all. */
  readonly exposed?: readonly string[]
}

/** Where a root of its own has what is not part of the tree. */
export const ROOT_WORKSPACE = '/workspace'
export const ROOT_SCRIPT = '/script'

/**
 * /tmp and /dev/shm are the parts of it that a task can write. Their content counts as memory of the task where that is
 * limited; where it is not, this is the most of the machine's memory that a task gets by them.
 */
const MEMORY_OPTIONS = 'mode=0755,size=512m,nr_inodes=65536'

/** Names in the file system in memory. */
const MEMORY = { dev: 'dev', tmp: 'tmp', shm: 'shm', empty: 'empty', root: 'root' } as const

const SAME = 'same'
const KEPT = 'keep,nosuid,nodev'

/** Where two places have the same path, the one of the later kind is mounted over the other. */
const KINDS = ['mask', 'tmp', 'dev', 'shm', 'proc', 'exposed', 'workspace', 'script'] as const
type Kind = (typeof KINDS)[number]

/** A path of the view that does not show what the tree below it shows. */
interface Place {
  readonly kind: Kind
  readonly path: string
  /** What is bound there, of the host. */
  readonly source: string
}

interface NestedPlace extends Place {
  /** The innermost place that this one lies in. */
  readonly outer: NestedPlace | undefined
  /** The directory in memory that is mounted there; a place in this one needs its mount point made in it. */
  memory: string | undefined
}

/** Each task has these of its own. */
const OWN: readonly Place[] = [
  placeOf('tmp', '/tmp'),
  placeOf('dev', '/dev'),
  placeOf('shm', '/dev/shm'),
  placeOf('proc', '/proc'),
]

/** The path at which a task would have seen the target of a mount; undefined for what is only a means. */
export const seenPath = (target: string): string | undefined =>
  [target, target.slice(MEMORY.root.length)].find((path) => path.startsWith('/'))

export const sandboxView = (paths: ViewPaths): Mount[] =>
  paths.rootfs === undefined ? hostView(paths) : rootView(paths, paths.rootfs)

/** The host as it is, read-only, with places mounted over it. */
function hostView({ workspace, script, masks = [], exposed = [] }: ViewPaths): Mount[] {
  const places = nested([
    ...OWN,
    ...hiddenAndShown(masks, exposed),
    ...optional('workspace', workspace),
    ...optional('script', script),
  ])
  return [
    // Before anything covers a part of the host: mount by mount, on old kernels, a covered one cannot be reached.
    ['freeze', '/'],
    ...memory(),
    ...grounds(places, undefined),
    SEAL,
    ...places.map((place) => mountOf(place, '')),
  ]
}

/** A tree of the host as the root, read-only, with places mounted over it; hidden places of the host stay hidden in it. */
function rootView({ workspace, script, masks = [], exposed = [] }: ViewPaths, rootfs: string): Mount[] {
  const { root, empty } = MEMORY
  const hidden = nested(hiddenAndShown(masks, exposed))
  const places = nested([
    ...OWN,
    // Much of /proc is the same in the task's own.
    ...masks.filter((mask) => mask !== '/proc' && isWithin(mask, '/proc')).map((mask) => placeOf('mask', mask)),
    ...(workspace === undefined ? [] : [placeOf('workspace', ROOT_WORKSPACE, workspace)]),
    ...(script === undefined ? [] : [placeOf('script', ROOT_SCRIPT, script)]),
  ])
  const tops = places.filter(({ outer }) => outer === undefined)
  return [
    ...memory(),
    ['dir', root, '0755'],
    // Only a mount can become the root.
    ['bind', 'scaffold', root, root, SAME],
    ...grounds(places, root),
    ['tree', rootfs, root, tops.map(({ path }) => path.slice(1)).join(',')],
    ['freeze', root],
    SEAL,
    ...hidden.map(({ kind, path }): Mount => (kind === 'mask' ? ['mask', path, empty] : ['allow', path])),
    ...places.map((place) => mountOf(place, root)),
    ['pivot', root],
  ]
}

/** What lies in memory is read-only too, wherever it appears, unless its mount gets other flags. */
const SEAL: Mount = ['remount', '.', 'ro,nosuid,noexec']

const memory = (): Mount[] => [
  ['tmpfs', '/dev', MEMORY_OPTIONS],
  ['devices', MEMORY.dev],
  ['dir', MEMORY.tmp, '1777'],
  ['dir', MEMORY.shm, '1777'],
  ['dir', MEMORY.empty, '0755'],
]

/** A mask that is shown as a whole is none: mounted over its cover, the host's directory would bring that along. */
const hiddenAndShown = (masks: readonly string[], exposed: readonly string[]): Place[] => {
  const shown = new Set(exposed)
  return [
    ...masks.filter((mask) => !shown.has(mask)).map((mask) => placeOf('mask', mask)),
    ...exposed.map((path) => placeOf('exposed', path)),
  ]
}

const optional = (kind: Kind, path: string | undefined): Place[] => (path === undefined ? [] : [placeOf(kind, path)])

function placeOf(kind: Kind, path: string, source = path): Place {
  return { kind, path, source }
}

/** The places that change the view, each after the one that it lies in. */
function nested(places: readonly Place[]): NestedPlace[] {
  const found: NestedPlace[] = []
  /** Those that the present path lies in, from the outermost to the innermost. */
  const around: NestedPlace[] = []
  for (const place of sorted(places)) {
    while (around.length > 0 && !isWithin(place.path, around.at(-1)!.path)) around.pop()
    const outer = around.at(-1)
    if (!isNeeded(place.kind, outer)) continue
    const kept = { ...place, outer, memory: memoryOf(place.kind) }
    found.push(kept)
    around.push(kept)
  }
  let covers = 0
  // An empty directory is shared by all masks in which nothing lies.
  for (const { outer } of found) if (outer?.memory === MEMORY.empty) outer.memory = `cover-${++covers}`
  return found
}

/** A directory, then all that lies in it, then its neighbours: `/a`, `/a/b`, `/a-b`. */
function sorted(places: readonly Place[]): Place[] {
  const keys = new Map(places.map((place) => [place, place.path.replaceAll('/', '\0')]))
  const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
  return places.toSorted((a, b) => compare(keys.get(a)!, keys.get(b)!) || KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind))
}

/** Whether the host is not to be seen in `place`. Of /proc most is the same as that of the host. */
const isCover = (place: NestedPlace | undefined): boolean =>
  place !== undefined && ['mask', 'tmp', 'dev', 'shm'].includes(place.kind)

/** Nothing is covered twice, and nothing shown that is seen anyway. */
function isNeeded(kind: Kind, outer: NestedPlace | undefined): boolean {
  if (kind === 'mask') return !isCover(outer)
  return kind !== 'exposed' || isCover(outer)
}

function memoryOf(kind: Kind): string | undefined {
  if (kind === 'mask') return MEMORY.empty
  return kind === 'tmp' || kind === 'dev' || kind === 'shm' ? MEMORY[kind] : undefined
}

/** Mount points for the places that lie in memory: in another place, or in the root at `top`. */
function grounds(places: readonly NestedPlace[], top: string | undefined): Mount[] {
  return places.flatMap((place): Mount[] => {
    const { kind, path, source, outer, memory } = place
    const covers: Mount[] = memory?.startsWith('cover-') ? [['dir', memory, '0755']] : []
    const around = outer === undefined ? top : outer.memory
    const rest = path.slice(outer === undefined || outer.path === '/' ? 0 : outer.path.length)
    // `devices` makes that of /dev/shm.
    if (around === undefined || rest === '' || kind === 'shm' || kind === 'mask') return covers
    const target = `${around}${rest}`
    return [
      ...covers,
      kind === 'tmp' || kind === 'dev' || kind === 'proc' ? ['dir', target, '0755'] : ['ground', source, target],
    ]
  })
}

function mountOf({ kind, path, source, outer, memory }: NestedPlace, top: string): Mount {
  const target = `${top}${path}`
  switch (kind) {
    case 'mask':
      return ['mask', target, memory!]
    case 'tmp': // not every host has it
      return ['bind-try', 'tmp', MEMORY.tmp, target, 'nosuid,nodev']
    case 'dev':
      return ['dev', MEMORY.dev, target]
    case 'shm':
      return ['bind', 'devices', MEMORY.shm, target, 'nosuid,nodev,noexec']
    case 'proc':
      return ['proc', target]
    case 'exposed': // A device may be opened too, where that of the host may.
      return ['bind-try', 'expose', source, target, outer?.kind === 'dev' ? 'ro,nosuid,noexec,if-permitted' : SAME]
    case 'workspace':
      return ['bind', 'workspace', source, target, KEPT]
    case 'script': // The host is read-only by then; a tree is not all of it.
      return ['bind', 'script', source, target, top === '' ? SAME : `ro,${KEPT}`]
  }
}
