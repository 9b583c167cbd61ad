/**
 * Goal: a task in a sandbox has no rights, and no way to any. Method: what the kernel says of it; attempts. The program
 * that makes every attempt we know of is another, and has tests of its own.
 */
import { expect, test } from 'bun:test'
import { chmodSync, copyFileSync, readlinkSync, renameSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import type { SandboxFeature } from '../../../runtime/plan/isolation.ts'
import { NAMESPACES } from '../../../shared/contract/runtime-request.ts'
import { withMarkedCalls, withNewerCalls } from '../../support/hosts.ts'
import { launch, run, sh, shippedLauncher } from '../../support/launchers.ts'
import { describeSandboxes, launchIn, runIn, USUAL } from '../../support/sandboxes.ts'

const { errno } = constants
const STATUS = "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp:)' /proc/self/status"

/** The numbers of system calls of the machine that the tests run on. */
const CALLS = (
  process.arch === 'x64'
    ? {
        keyctl: 250,
        add_key: 248,
        io_uring_setup: 425,
        clone3: 435,
        bpf: 321,
        setns: 308,
        mount_setattr: 442,
        quotactl_fd: 443,
      }
    : {
        keyctl: 219,
        add_key: 217,
        io_uring_setup: 425,
        clone3: 435,
        bpf: 280,
        setns: 268,
        mount_setattr: 442,
        quotactl_fd: 443,
      }
) as Readonly<Record<string, number>>

const perl = (script: string): [string, ...string[]] => ['/usr/bin/perl', '-e', script]

/** Prints the error of each call, made with arguments of no meaning. */
const attempt = (names: readonly string[]) =>
  perl(
    `for my $call (${names.map((name) => CALLS[name]).join(', ')}) { syscall($call, 0, 0, 0, 0, 0); print $!+0, "\\n" }`,
  )

const fields = (status: string): Record<string, string> =>
  Object.fromEntries(
    status
      .trim()
      .split('\n')
      .map((line) => line.split(':\t') as [string, string]),
  )

describeSandboxes('a task in a sandbox', (setting) => {
  const { uid } = setting
  const each = Array(4).fill(uid).join('\t')

  test.each<[string, readonly SandboxFeature[]]>([
    ['the usual one', USUAL],
    ['all of them', [...NAMESPACES, 'seccomp']],
    ['only a filter', ['seccomp']],
  ])('is its user, without groups and capabilities: %s', async (_, features) => {
    const { stdout } = await runIn(setting, { command: sh(STATUS), sandbox: { features } })
    const none = '0000000000000000'
    const { CapBnd, Groups, ...status } = fields(stdout)
    expect(status).toEqual({
      ...{
        Uid: each,
        Gid: each,
        CapInh: none,
        CapPrm: none,
        CapEff: none,
        CapAmb: none,
        NoNewPrivs: '1',
        Seccomp: '2',
      },
    })
    // Who is not root, and has no user namespace, cannot take anything out of it: nothing comes of it either way.
    if (setting.isRoot || features.includes('user')) expect(CapBnd).toBe(none)
    expect((Groups ?? '').trim()).toMatch(new RegExp(`^(${uid})?$`))
  })

  test('gains nothing by a program that belongs to root and sets the user', async () => {
    await using task = launchIn(setting, { command: sh('until [ -x ./id ]; do sleep 0.01; done; ./id -u; exit 0') })
    const program = join(task.workdir, 'id')
    copyFileSync('/usr/bin/id', `${program}.new`)
    chmodSync(`${program}.new`, 0o6755)
    renameSync(`${program}.new`, program) // the task must not find half of it
    await task.outcome()
    expect(task.stdout).toBe(`${uid}\n`)
  })

  test('makes no namespaces, enters none, and mounts nothing', async () => {
    const script = `for kind in -U -m -p -u -i -n -C -Ur; do unshare $kind true 2> /dev/null && echo "made $kind"; done
      mount -t tmpfs none /tmp 2> /dev/null && echo mounted; umount /proc 2> /dev/null && echo unmounted
      mount -o remount,rw / 2> /dev/null && echo remounted; chroot / true 2> /dev/null && echo changed; nsenter -t 1 -m true 2> /dev/null && echo entered; exit 0`
    expect((await runIn(setting, { command: sh(script) })).stdout).toBe('')
  })

  test('has calls refused, newer ones as if they were not there', async () => {
    const { stdout } = await runIn(setting, {
      command: attempt('keyctl add_key bpf setns mount_setattr quotactl_fd clone3 io_uring_setup'.split(' ')),
    })
    const { EPERM, ENOSYS } = errno
    expect(stdout.trim().split('\n').map(Number)).toEqual([...Array(6).fill(EPERM), ENOSYS, ENOSYS])
  })

  test('has no calls that are newer than the filter, whatever the kernel has', async () => {
    // The first ones that the filter does not know, and numbers of no call.
    const calls = [470, 471, 600, 1023, 0x3fffffff]
    const command = perl(`for my $call (${calls}) { $! = 0; syscall($call, -1, -1, -1, -1); print $!+0, "\\n" }`)
    const { stdout } = await runIn(setting, { command, through: withNewerCalls(calls) })
    expect(stdout.trim().split('\n').map(Number)).toEqual(calls.map(() => errno.ENOSYS))
  })

  test('has them all without the filter, and makes no user namespace for all that', async () => {
    const features = USUAL.filter((feature) => feature !== 'seccomp')
    const { stdout } = await runIn(setting, { command: attempt(['keyctl']), sandbox: { features } })
    expect(Number(stdout)).not.toBe(errno.EPERM)
    const { stderr } = await runIn(setting, { command: sh('unshare -U true'), sandbox: { features } })
    expect(stderr).toContain('No space left on device')
  })

  test('traces its own processes, and those of nobody else', async () => {
    const trace = sh('strace -qq -o /tmp/calls -e trace=write echo traced; grep -c write /tmp/calls')
    expect((await runIn(setting, { command: trace })).stdout).toBe('traced\n1\n')
    const features = USUAL.filter((feature) => feature !== 'pid')
    expect((await runIn(setting, { command: trace, sandbox: { features } })).stdout).toBe('traced\n1\n')
    const other = await runIn(setting, { command: sh('strace -qq -p $PPID'), sandbox: { features } })
    expect(other.stderr).toContain('not permitted')
  })

  test('does not look into its init', async () => {
    const script = 'cat /proc/1/environ /proc/1/maps; ls /proc/1/fd /proc/1/root; kill -KILL 1; exit 0'
    const { stdout, stderr } = await runIn(setting, { command: sh(script) })
    expect([stdout, stderr.match(/Permission denied/g)?.length]).toEqual(['', 4])
  })

  test('has the namespaces that were asked for, and shares the others', async () => {
    const of = 'for kind in mnt pid uts ipc net cgroup user; do readlink /proc/self/ns/$kind; done; sleep 600'
    const kinds = ['mount', 'pid', 'uts', 'ipc', 'net', 'cgroup', 'user'] as const
    for (const features of [
      USUAL,
      USUAL.filter((feature) => feature !== 'net'),
      [...USUAL, 'cgroup'],
      ['user', 'uts'],
    ] as SandboxFeature[][]) {
      await using task = launchIn(setting, { command: sh(of), sandbox: { features } })
      const names = (await task.printed('user:[')).trim().split('\n')
      const { launcher_pid } = await task.started()
      const ofLauncher = (name: string) => readlinkSync(`/proc/${launcher_pid}/ns/${name.split(':')[0]}`)
      const own = names.map((name, i) => [kinds[i], name !== ofLauncher(name)])
      expect(own).toEqual(kinds.map((kind) => [kind, features.includes(kind)]))
    }
  })
})

describeSandboxes(
  'the filter of a sandbox',
  (setting) => {
    /** The numbers are those of x64. */
    test.skipIf(process.arch !== 'x64').each<[string, readonly [number, number], string]>([
      ['no flags, no family', [0, 0], '41 53'],
      ['the init; a faked input', [1, 0x5412], '16 142 144 203 302 314'],
      ['a user namespace', [0x1000_0000, 0], '41 53 56 272'],
      ['a time namespace; the init', [0x80, 1], '41 53 141 251 272'],
      ['the processes of a user', [2, 2], '141'],
      ['the processes of a user, for the disk', [3, 2], '41 53 251'],
      ['Netlink', [16, 0], ''],
    ])('answers each call as its rule says: %s', async (_, [first, second], refused) => {
      const mark = 0x7a5c_e37d
      // Without 335 and 336, by which probes return: the kernel lets no filter decide on them.
      const calls = numbersOf('0-334 337-600')
      const call = `$! = 0; syscall($call, ${first}, ${second}, 0, 0, 0, ${mark}); print $!+0, "\\n"`
      const command = perl(`for my $call (${[...calls]}, 0x40000000, 0x400001ff, 0x7fffffff) { ${call} }`)
      const { stdout } = await runIn(setting, { command, through: withMarkedCalls(mark) })
      const { EPERM, ENOSYS, EXDEV } = errno
      const always = `103 134 153-155 161 163-173 175-176 179 227 246 248-250 298 300 304 308 313 320-321 323 428-433 442-443 467`
      const forbidden = numbersOf(`${always} ${refused}`)
      const absent = numbersOf('425-427 435 470-600')
      const ofRules = [...calls].map((call) => (forbidden.has(call) ? EPERM : absent.has(call) ? ENOSYS : EXDEV))
      expect(stdout.trim().split('\n').map(Number)).toEqual([...ofRules, EPERM, EPERM, EPERM])
    })
  },
  { isHostVaried: false },
)

/** `1 3-4` as a set. */
const numbersOf = (ranges: string): ReadonlySet<number> =>
  new Set(
    ranges.match(/[\d-]+/g)!.flatMap((range) => {
      const [from, to = from] = range.split('-').map(Number) as [number, number?]
      return Array.from({ length: to - from + 1 }, (_, i) => from + i)
    }),
  )

test('a sandbox is never root', async () => {
  // As root without a user for its tasks; as anybody else with one.
  const isRoot = process.getuid?.() === 0
  await using task = launch(shippedLauncher, { command: ['true'], argv: argumentsWith(isRoot ? [] : ['1234']) })
  expect(await task.exited).toBe(125)
  expect(await task.complaints()).toBe('taskmill-launcher: --sandbox-uid is for root, which needs it\n')
  await using zero = launch(shippedLauncher, { command: ['true'], argv: argumentsWith(['0']) })
  expect(await zero.complaints()).toBe('taskmill-launcher: not a number that is possible: --sandbox-uid\n')
})

const argumentsWith = (uid: readonly string[]): string[] => [
  ...['--task-id', 'task-1', '--task-dir', '/no/such', '--workdir', '/', '--wall-time-ms', '1000', '--grace-ms', '0'],
  ...['--max-output-bytes', '1', '--sandbox', 'none', ...uid.flatMap((id) => ['--sandbox-uid', id]), '--', 'true'],
]

test('a task without a sandbox is what it was', async () => {
  const { stdout } = await run(shippedLauncher, { command: sh(STATUS) })
  expect(fields(stdout)).toMatchObject({ NoNewPrivs: '0', Seccomp: '0' })
})
