/**
 * Goal: the list of mounts shows a task what it may see and hides the rest, however paths are nested. Method: tables of
 * lists; random paths in a model of mounts, in which the last mount over a path decides, compared with the rule that the
 * innermost place decides.
 */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { MAX_SANDBOX_PATHS } from '../../../runtime/host/sandbox-paths.ts'
import { type Mount, sandboxView, seenPath, type ViewPaths } from '../../../runtime/launch/sandbox-view.ts'
import { isWithin } from '../../../shared/files/is-within.ts'

const DATA = '/data/tasks/1'
const [workspace, script] = [`${DATA}/workspace`, `${DATA}/script`]
const line = (mount: Mount): string => mount.join(' ')
const linesOf = (paths: ViewPaths): string[] => sandboxView(paths, true).map(line)

/** Entries of every view. */
const DEVICES = ['null', 'zero', 'full', 'random', 'urandom', 'tty']
const MEMORY = [
  'tmpfs /dev mode=0755,size=512m,nr_inodes=65536',
  'dir dev 0755',
  ...DEVICES.map((name) => `mountpoint /dev/${name} dev/${name}`),
  ...['symlink /proc/self/fd dev/fd', 'symlink /proc/self/fd/0 dev/stdin', 'symlink /proc/self/fd/1 dev/stdout'],
  ...['symlink /proc/self/fd/2 dev/stderr', 'symlink pts/ptmx dev/ptmx', 'dir dev/pts 0755', 'dir dev/shm 0755'],
  ...['dir tmp 1777', 'dir shm 1777'],
]
const [SEAL, EMPTY] = ['remount . ro,nosuid,nodev,noexec', 'dir empty 0755']
const dev = (top: string) => [
  `bind devices dev ${top}/dev same`,
  ...DEVICES.map((name) => `bind-try devices /dev/${name} ${top}/dev/${name} ro,keep,nosuid,noexec`),
  `devpts ${top}/dev/pts newinstance,ptmxmode=0666,mode=620`,
  `bind devices shm ${top}/dev/shm nosuid,nodev,noexec`,
]
const proc = (top: string) => `proc ${top}/proc`
const tmp = (top: string) => `bind-try tmp tmp ${top}/tmp nosuid,nodev`

describe('the view of the host', () => {
  test('has the /proc of the host without a pid namespace', () => {
    const view = sandboxView({}, true).map(line)
    expect(sandboxView({}, false).map(line)).toEqual(
      view.map((entry) => (entry === 'proc /proc' ? 'bind proc /proc /proc nosuid,nodev,noexec' : entry)),
    )
  })

  test('is the host, read-only, with private directories', () => {
    expect(linesOf({})).toEqual(['freeze /', ...MEMORY, EMPTY, SEAL, ...dev(''), proc(''), tmp('')])
  })

  test('has the workspace and the script in a hidden data directory', () => {
    expect(linesOf({ workspace, script, masks: ['/run', '/data', '/data/token'] })).toEqual([
      ...['freeze /', ...MEMORY, EMPTY, 'dir cover-1 0755'],
      ...[`mountpoint ${script} cover-1/tasks/1/script`, `mountpoint ${workspace} cover-1/tasks/1/workspace`, SEAL],
      ...['mask /data cover-1', `bind script ${script} ${script} same`],
      ...[
        `bind workspace ${workspace} ${workspace} keep,nosuid,nodev`,
        ...dev(''),
        proc(''),
        'mask /run empty',
        tmp(''),
      ],
    ])
  })

  test.each<[string, readonly string[], readonly string[], readonly string[]]>([
    ['hides one place once', ['/a', '/a/b', '/a'], [], ['mask /a empty']],
    [
      'knows a neighbour from a part',
      ['/a', '/a-b', '/ab'],
      [],
      ['mask /a empty', 'mask /a-b empty', 'mask /ab empty'],
    ],
    ['shows nothing that is seen anyway', ['/a'], ['/b', '/'], ['mask /a empty']],
    ['shows a part of what is hidden', ['/a'], ['/a/b'], ['mask /a cover-1', 'bind-try expose /a/b /a/b same']],
    [
      'hides a part of that again',
      ['/a', '/a/b/c'],
      ['/a/b'],
      ['mask /a cover-1', 'bind-try expose /a/b /a/b same', 'mask /a/b/c empty'],
    ],
    ['does not hide what is shown whole', ['/a'], ['/a'], []],
    ['hides parts of what is shown whole', ['/a', '/a/b'], ['/a'], ['mask /a/b empty']],
    ['hides nothing in what is empty', ['/dev/shm', '/dev/shm/x', '/tmp/x'], [], []],
    ['hides parts of /proc, after it was mounted', ['/proc/cpuinfo'], [], ['mask /proc/cpuinfo empty']],
    ['shows no part of the /proc of the host', [], ['/proc/cpuinfo'], []],
    ['shows parts of /tmp', [], ['/tmp/a'], ['bind-try expose /tmp/a /tmp/a same']],
    [
      'shows devices, to be opened',
      [],
      ['/dev/dri'],
      ['bind-try expose /dev/dri /dev/dri ro,nosuid,noexec,if-permitted'],
    ],
    ['shows parts of /dev/shm as files', [], ['/dev/shm/a'], ['bind-try expose /dev/shm/a /dev/shm/a same']],
  ])('%s', (_, masks, exposed, more) => {
    const own = [...dev(''), proc(''), tmp('')]
    const mounts = linesOf({ masks, exposed })
    expect(mounts.slice(mounts.indexOf(SEAL) + 1).filter((mount) => !own.includes(mount))).toEqual([...more])
  })

  test('creates mount points in the tmpfs', () => {
    const exposed = ['/run/a/b', '/tmp/a', '/dev/dri', '/dev/shm/a']
    const mounts = linesOf({ masks: ['/run'], exposed }).filter((mount) => !MEMORY.includes(mount))
    expect(mounts.filter((mount) => mount.startsWith('mountpoint'))).toEqual([
      ...['mountpoint /dev/dri dev/dri', 'mountpoint /dev/shm/a shm/a', 'mountpoint /run/a/b cover-1/a/b'],
      'mountpoint /tmp/a tmp/a',
    ])
  })
})

test('the view of the host is this list', () => {
  expect(linesOf({ workspace, masks: ['/data', '/home'] })).toEqual([
    'freeze /',
    'tmpfs /dev mode=0755,size=512m,nr_inodes=65536',
    'dir dev 0755',
    'mountpoint /dev/null dev/null',
    'mountpoint /dev/zero dev/zero',
    'mountpoint /dev/full dev/full',
    'mountpoint /dev/random dev/random',
    'mountpoint /dev/urandom dev/urandom',
    'mountpoint /dev/tty dev/tty',
    'symlink /proc/self/fd dev/fd',
    'symlink /proc/self/fd/0 dev/stdin',
    'symlink /proc/self/fd/1 dev/stdout',
    'symlink /proc/self/fd/2 dev/stderr',
    'symlink pts/ptmx dev/ptmx',
    'dir dev/pts 0755',
    'dir dev/shm 0755',
    'dir tmp 1777',
    'dir shm 1777',
    'dir empty 0755',
    'dir cover-1 0755',
    'mountpoint /data/tasks/1/workspace cover-1/tasks/1/workspace',
    'remount . ro,nosuid,nodev,noexec',
    'mask /data cover-1',
    'bind workspace /data/tasks/1/workspace /data/tasks/1/workspace keep,nosuid,nodev',
    'bind devices dev /dev same',
    'bind-try devices /dev/null /dev/null ro,keep,nosuid,noexec',
    'bind-try devices /dev/zero /dev/zero ro,keep,nosuid,noexec',
    'bind-try devices /dev/full /dev/full ro,keep,nosuid,noexec',
    'bind-try devices /dev/random /dev/random ro,keep,nosuid,noexec',
    'bind-try devices /dev/urandom /dev/urandom ro,keep,nosuid,noexec',
    'bind-try devices /dev/tty /dev/tty ro,keep,nosuid,noexec',
    'devpts /dev/pts newinstance,ptmxmode=0666,mode=620',
    'bind devices shm /dev/shm nosuid,nodev,noexec',
    'mask /home empty',
    'proc /proc',
    'bind-try tmp tmp /tmp nosuid,nodev',
  ])
})

describe('the view of a root', () => {
  test('is the rootfs, read-only, with private directories', () => {
    expect(linesOf({ rootfs: '/srv/root', workspace, script })).toEqual([
      ...[...MEMORY, EMPTY, 'dir root 0755', 'bind scaffold root root same'],
      ...['dir root/dev 0755', 'dir root/proc 0755', `mountpoint ${script} root/script`, 'dir root/tmp 0755'],
      ...[
        `mountpoint ${workspace} root/workspace`,
        'bind-entries /srv/root root dev,proc,script,tmp,workspace',
        'freeze root',
        SEAL,
      ],
      ...[...dev('root'), proc('root'), `bind script ${script} root/script ro,keep,nosuid,nodev`, tmp('root')],
      ...[`bind workspace ${workspace} root/workspace keep,nosuid,nodev`, 'pivot root'],
    ])
  })

  test('applies the masks of the host, and those of /proc to its own /proc', () => {
    const given = {
      rootfs: '/',
      masks: ['/run', '/run/a/b', '/proc/cpuinfo', '/tmp/x', '/home'],
      exposed: ['/run/a', '/srv'],
    }
    const mounts = linesOf(given)
    expect(mounts.slice(mounts.indexOf(SEAL) + 1)).toEqual([
      ...['mask /home empty', 'mask /proc/cpuinfo empty', 'mask /run empty', 'allow /run/a', 'mask /run/a/b empty'],
      ...['mask /tmp/x empty', ...dev('root'), proc('root'), 'mask root/proc/cpuinfo empty', tmp('root'), 'pivot root'],
    ])
  })
})

/** Few names, so that paths are nested. */
const path = fc
  .array(fc.constantFrom('a', 'b', 'a-b', 'dev', 'shm', 'proc', 'tmp'), { minLength: 1, maxLength: 4 })
  .map((names) => `/${names.join('/')}`)
const paths = fc.record(
  { workspace: path, script: path, masks: fc.array(path, { maxLength: 8 }), exposed: fc.array(path, { maxLength: 6 }) },
  { requiredKeys: ['masks', 'exposed'] },
)

type Content = 'host' | 'empty' | 'proc' | 'workspace' | 'script'

/** The rule: of all places around a path, the innermost decides. */
function ruled({ workspace, script, masks = [], exposed = [] }: ViewPaths, path: string): Content {
  const places: (readonly [path: string, kind: Content | 'shown'])[] = [
    ...masks.filter((mask) => !exposed.includes(mask)).map((mask) => [mask, 'empty'] as const),
    ...(['/tmp', '/dev', '/dev/shm'] as const).map((own) => [own, 'empty'] as const),
    ['/proc', 'proc'],
    ...exposed.map((part) => [part, 'shown'] as const),
    ...(workspace === undefined ? [] : [[workspace, 'workspace'] as const]),
    ...(script === undefined ? [] : [[script, 'script'] as const]),
  ]
  const around = places.filter(([place]) => isWithin(path, place)).toSorted(([a], [b]) => a.length - b.length)
  let content: Content = 'host'
  for (const [, kind] of around) content = kind === 'shown' ? (content === 'empty' ? 'host' : content) : kind
  return content
}

interface Mounted {
  readonly target: string
  readonly content: Content
  /** The directory in the tmpfs that is mounted. */
  readonly memory?: string
}

/** What an entry mounts in the view. Undefined if it mounts nothing there. */
function mounted(mount: Mount): Mounted | undefined {
  const [op] = mount
  if (op === 'mask') return { target: mount[1], content: 'empty', memory: mount[2] }
  if (op === 'proc') return { target: mount[1], content: 'proc' }
  if (op !== 'bind' && op !== 'bind-try') return undefined
  const [, step, source, target] = mount
  if (step === 'workspace' || step === 'script') return { target, content: step }
  return step === 'expose' ? { target, content: 'host' } : { target, content: 'empty', memory: source }
}

/** A later mount covers earlier ones below its target. */
const shown = (mounts: readonly Mounted[], path: string): Mounted | undefined =>
  mounts.findLast(({ target }) => isWithin(path, target))

describe('whatever is hidden, shown or a workspace', () => {
  test('the innermost place decides what is seen', () => {
    fc.assert(
      fc.property(paths, path, (given, looked) => {
        const mounts = sandboxView(given, true).flatMap((mount) => mounted(mount) ?? [])
        for (const one of [looked, ...given.masks, ...given.exposed]) {
          expect([one, shown(mounts, one)?.content ?? 'host']).toEqual([one, ruled(given, one)])
        }
      }),
      { numRuns: 1_000 },
    )
  })

  test('each mount point in the tmpfs is created before the tmpfs is read-only', () => {
    fc.assert(
      fc.property(paths, (given) => {
        const view = sandboxView(given, true)
        const sealed = view.findIndex(([op]) => op === 'remount')
        const made = view.flatMap((mount, i) => {
          if (mount[0] !== 'mountpoint' && mount[0] !== 'dir') return []
          expect(i).toBeLessThan(sealed)
          return mount[0] === 'mountpoint' ? mount[2] : mount[1]
        })
        const before: Mounted[] = []
        for (const mount of view.flatMap((mount) => mounted(mount) ?? [])) {
          const around = shown(before, mount.target)
          if (around?.memory !== undefined && around.target !== mount.target) {
            const mountpoint = around.memory + mount.target.slice(around.target.length)
            expect(made.some((one) => isWithin(`/${one}`, `/${mountpoint}`))).toBe(true)
          }
          before.push(mount)
        }
      }),
      { numRuns: 1_000 },
    )
  })

  test('the host is read-only before anything covers it, and only the workspace of it is writable', () => {
    fc.assert(
      fc.property(paths, (given) => {
        const [first, ...rest] = sandboxView(given, true)
        expect(first).toEqual(['freeze', '/'])
        for (const mount of rest) {
          if (mount[0] !== 'bind' && mount[0] !== 'bind-try') continue
          const [, step, source, , flags] = mount
          const isReadOnly = flags === 'same' || flags.startsWith('ro,')
          expect([source, isReadOnly || !source.startsWith('/') || step === 'workspace']).toEqual([source, true])
        }
      }),
    )
  })

  test('a rootfs that the host view hides is refused', () => {
    fc.assert(
      fc.property(paths, path, ({ masks, exposed }, tree) => {
        const places = sandboxView({ rootfs: '/link', masks, exposed }, true).filter(
          ([op, target]) => (op === 'mask' || op === 'allow') && isWithin(tree, target),
        )
        const isMasked = masks.some((mask) => {
          const isShown = exposed.some((part) => isWithin(tree, part) && isWithin(part, mask))
          return isWithin(tree, mask) && !isShown
        })
        expect(places.at(-1)?.[0] === 'mask').toBe(isMasked)
      }),
      { numRuns: 1_000 },
    )
  })

  test('a root gets its own mounts after those of the rootfs', () => {
    fc.assert(
      fc.property(paths, (given) => {
        const ops = sandboxView({ ...given, rootfs: '/tree' }, true).map(
          ([op, target]) => [op, target.startsWith('/')] as const,
        )
        const at = (found: string) => ops.findIndex(([op]) => op === found)
        const lastOfHost = ops.findLastIndex(([op, isOfHost]) => (op === 'mask' || op === 'allow') && isOfHost)
        expect([at('bind-entries') < at('freeze'), Math.max(at('freeze'), lastOfHost) < at('devpts')]).toEqual([
          true,
          true,
        ])
        expect(ops.at(-1)).toEqual(['pivot', false])
      }),
    )
  })
})

test('the launcher accepts the longest list of a service', () => {
  const header = readFileSync(join(import.meta.dir, '../../../runtime/launch/c/base/mount-list.h'), 'utf8')
  const max = Number(/#define MAX_MOUNTS (\d+)/.exec(header)?.[1])
  const places = (name: string) => Array.from({ length: MAX_SANDBOX_PATHS }, (_, i) => `/${name}-${i}`)
  const masks = places('masked')
  const longest = { workspace, script, masks, exposed: masks.map((mask) => `${mask}/shown`) }
  for (const rootfs of [{}, { rootfs: '/' }])
    expect(sandboxView({ ...longest, ...rootfs }, true).length).toBeLessThanOrEqual(max)
})

test('a failed mount is named by the path that the task would have seen', () => {
  const seen = ['/run', 'root/dev', 'root', 'cover-1/a', '.'].map((target) => seenPath(target))
  expect(seen).toEqual(['/run', '/dev', undefined, undefined, undefined])
})
