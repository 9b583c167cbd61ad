/**
 * Goal: the service knows what a sandbox can be made of here, because it was tried. Method: answers of the launcher, whole
 * and broken; the launcher itself on this host and where user namespaces are used up; tables of what plans are told.
 */
import { describe, expect, test } from 'bun:test'
import { constants } from 'node:os'
import { sandboxCapabilities } from '../../../runtime/launch/sandbox-capabilities.ts'
import {
  PROBED,
  type Probed,
  parseProbe,
  probeArguments,
  probeSandbox,
  type SandboxProbe,
} from '../../../runtime/launch/sandbox-probe.ts'
import { AVAILABLE } from '../../../runtime/plan/capability-set.ts'
import { SANDBOX_FEATURES } from '../../../runtime/plan/isolation.ts'
import { NAMESPACES } from '../../../shared/contract/runtime-request.ts'
import { shippedLauncher } from '../../support/launchers.ts'
import { missingSandbox, SANDBOX_UID } from '../../support/sandboxes.ts'

const { errno } = constants
const FAULT = { step: 'namespaces', errno: errno.EPERM }

/** A host where these do not work. */
const hostWithout = (...lacking: readonly Probed[]): SandboxProbe =>
  Object.fromEntries(PROBED.map((name) => [name, lacking.includes(name) ? FAULT : null])) as unknown as SandboxProbe

test.each([
  ['ok\n', null],
  ['namespaces 1\n', FAULT],
  ['', undefined],
  ['ok', undefined],
  ['OK\n', undefined],
  ['namespaces\n', undefined],
  ['namespaces x\n', undefined],
  ['namespaces 1 2\n', undefined],
  ['ok\nok\n', undefined],
])('the answer %j of a probe is %j', (text, result) => {
  expect(parseProbe(text)).toEqual(result as ReturnType<typeof parseProbe>)
})

describe('what plans are told', () => {
  const told = (probe: SandboxProbe | undefined, more = {}) =>
    sandboxCapabilities({ isLauncherNative: true, isDisabled: false, isRoot: true, probe, ...more })
  const available = (capabilities: ReturnType<typeof told>) => [
    ...(['linux_sandbox', 'seccomp', 'chroot', 'rootless'] as const).filter((name) => capabilities[name].isAvailable),
    ...NAMESPACES.filter((name) => capabilities.namespaces[name].isAvailable),
  ]
  const everything = ['linux_sandbox', 'seccomp', 'chroot', 'rootless', ...NAMESPACES] as const

  test('is everything where everything worked', () => {
    expect(available(told(hostWithout()))).toEqual([...everything])
  })

  test.each<[Probed]>(PROBED.filter((name) => name !== 'none' && name !== 'whole').map((name) => [name]))(
    'as root is all but what did not work: %s',
    (name) => {
      const isPart = name !== 'chroot' && name !== 'rootless'
      const host = hostWithout(name, ...(isPart ? (['whole'] as const) : []))
      expect(available(told(host))).toEqual(everything.filter((each) => each !== name))
    },
  )

  test.each([
    ['without a launcher', told(undefined, { isLauncherNative: false }), /^there is no launcher for /],
    ['when it is disabled', told(hostWithout(), { isDisabled: true }), /^--disable-linux-sandbox is set$/],
    ['when the launcher says nothing', told(undefined), /^the launcher does not say/],
    [
      'when root cannot become another user',
      told(hostWithout('none', 'whole')),
      /^a task was tried, and its namespaces/,
    ],
    ['without user namespaces, for who is not root', told(hostWithout('user'), { isRoot: false }), /^a task was tried/],
    ['when it all works but together', told(hostWithout('whole')), /^a task was tried/],
  ])('is that there is no sandbox %s', (_, capabilities, reason) => {
    expect(capabilities.linux_sandbox).toMatchObject({ isAvailable: false, reason: expect.stringMatching(reason) })
  })

  test('names the remedy', () => {
    const { pid } = told({ ...hostWithout(), pid: { step: 'proc', errno: errno.EPERM }, whole: FAULT }).namespaces
    expect(pid).toEqual({
      isAvailable: false,
      reason: 'a task was tried, and its /proc cannot be mounted: operation not permitted',
      remedy: expect.stringContaining('systempaths=unconfined'),
    })
    expect(told(hostWithout('pid', 'whole')).namespaces.mount).toEqual(AVAILABLE)
  })

  test.each([
    ['namespaces', errno.EPERM, 'seccomp=unconfined and --security-opt systempaths=unconfined'],
    ['user_namespace', errno.EROFS, '--security-opt systempaths=unconfined'],
    ['loopback', errno.EPERM, '--cap-add NET_ADMIN'],
    ['pivot', errno.EPERM, '--security-opt seccomp=unconfined'],
  ])('names what a container engine has to allow: %s', (step, number, remedy) => {
    const { net } = told({ ...hostWithout(), net: { step, errno: number }, whole: FAULT }).namespaces
    expect(net).toMatchObject({ isAvailable: false, remedy: expect.stringContaining(remedy) })
  })
})

describe.skipIf(missingSandbox !== undefined)(
  `this host${missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`}`,
  () => {
    const program = { wrapEnvironment: (env: Readonly<Record<string, string>>) => env, isNative: true }
    const uid = process.getuid?.() === 0 ? SANDBOX_UID : undefined

    test('can do it all, and says so', async () => {
      const command = shippedLauncher.command as [string]
      expect(await probeSandbox({ ...program, command }, uid)).toEqual(hostWithout())
    })

    test.each([
      ['a mask whose cover is missing', ['mask', '/usr', 'missing'], `mask ${errno.ENOENT}`],
      ['a mask of a path that does not exist', ['mask', '/no/such/path', 'missing'], 'ok'],
      [
        'a bind-try whose directory in the tmpfs is missing',
        ['bind-try', 'tmp', 'missing', '/tmp', 'same'],
        `tmp ${errno.ENOENT}`,
      ],
      ['a bind-try of a host path that does not exist', ['bind-try', 'expose', '/no/such', '/tmp', 'same'], 'ok'],
      [
        'a bind of a host path that does not exist',
        ['bind', 'script', '/no/such', '/tmp', 'same'],
        `places ${errno.ENOENT}`,
      ],
    ] as const)('passes over an entry only if there is nothing to do: %s', (_, mount, result) => {
      const words = probeArguments({ features: SANDBOX_FEATURES }, uid)
      const more = words.toSpliced(words.indexOf('--'), 0, '--mount', ...mount)
      const { stdout } = Bun.spawnSync([...shippedLauncher.command, ...more])
      expect(stdout.toString()).toBe(`${result}\n`)
    })

    test('is not probed with arguments that are no task', () => {
      for (const words of [['--probe'], probeArguments({ features: SANDBOX_FEATURES }, uid).slice(0, -1)]) {
        const { exitCode, stdout, stderr } = Bun.spawnSync([...shippedLauncher.command, ...words])
        expect([exitCode, stdout.toString()]).toEqual([125, ''])
        expect(stderr.toString()).toStartWith('taskmill-launcher: missing: ')
      }
    })

    test('says what is missing where user namespaces are used up', async () => {
      const script = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
      const through = ['unshare', '-Ur', 'sh', '-c', script, 'sh', ...shippedLauncher.command] as [string, ...string[]]
      // In there the only user is root, and there is no other to become.
      const probe = await probeSandbox({ ...program, command: through }, SANDBOX_UID)
      expect(probe?.none).toEqual({ step: 'sandbox_uid', errno: errno.EPERM })
      expect(probe?.rootless).toEqual({ step: 'sandbox_uid', errno: errno.EPERM })
    })

    test('says what is missing for root without its rights: namespaces, but not the filter', async () => {
      if (uid === undefined) return
      const through = ['setpriv', '--bounding-set', '-sys_admin', '--', ...shippedLauncher.command] as [
        string,
        ...string[],
      ]
      const probe = await probeSandbox({ ...program, command: through }, uid)
      for (const name of ['mount', 'pid', 'uts', 'ipc', 'net', 'chroot', 'whole'] as const) {
        expect([name, probe?.[name]]).toEqual([name, { step: 'namespaces', errno: errno.EPERM }])
      }
      expect([probe?.none, probe?.seccomp]).toEqual([null, null])
    })
  },
)
