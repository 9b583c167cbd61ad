/**
 * Goal: the service knows what a sandbox can be made of here, because it was tried. Method: answers of the launcher, whole
 * and broken; the launcher itself on this host and where user namespaces are used up; tables of what plans are told.
 */
import { describe, expect, test } from 'bun:test'
import { constants } from 'node:os'
import fc from 'fast-check'
import { AVAILABLE } from '../../../runtime/intake/capability-set.ts'
import { sandboxCapabilities } from '../../../runtime/launcher/sandbox-capabilities.ts'
import {
  PROBED,
  type Probed,
  parseProbe,
  probeArguments,
  probeSandbox,
  type SandboxProbe,
} from '../../../runtime/launcher/sandbox-probe.ts'
import { NAMESPACES } from '../../../shared/contract/runtime-request.ts'
import { shippedLauncher } from '../../support/launchers.ts'
import { missingSandbox, SANDBOX_UID } from '../../support/sandboxes.ts'

const { errno } = constants
const FAULT = { step: 'namespaces', errno: errno.EPERM }

/** A host where these do not work. */
const hostWithout = (...lacking: readonly Probed[]): SandboxProbe =>
  Object.fromEntries(PROBED.map((name) => [name, lacking.includes(name) ? FAULT : null])) as unknown as SandboxProbe

describe('the answer of a probe', () => {
  const answer = (probe: SandboxProbe): string =>
    PROBED.map(
      (name) => `${name} ${probe[name] === null ? 'ok' : `${probe[name]!.step} ${probe[name]!.errno}`}\n`,
    ).join('')

  test('is read as it was written', () => {
    const probes = fc.subarray([...PROBED]).map((lacking) => hostWithout(...lacking))
    fc.assert(fc.property(probes, (probe) => expect(parseProbe(answer(probe))).toEqual(probe)))
  })

  test('is none when any of it is missing or of another form', () => {
    const whole = answer(hostWithout('pid'))
    for (const text of [
      '',
      whole.replace('pid namespaces 1\n', ''),
      whole.replace('pid namespaces 1', 'pid'),
      whole.replace('pid namespaces 1', 'pid namespaces'),
      whole.replace('pid namespaces 1', 'pid namespaces x'),
      whole.replace('pid namespaces 1', 'pid namespaces 1 2'),
      whole.replace('mount ok', 'mount OK'),
    ]) {
      expect([text, parseProbe(text)]).toEqual([text, undefined])
    }
  })
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
      const words = probeArguments(uid)
      const more = words.toSpliced(words.indexOf('--chroot'), 0, '--mount', ...mount)
      const { stdout } = Bun.spawnSync([...shippedLauncher.command, ...more])
      expect(stdout.toString().split('\n', 1)).toEqual([`whole ${result}`])
    })

    test('is not probed without lists of mounts', () => {
      for (const words of [['--probe'], ['--probe', '1234'], probeArguments(uid).slice(0, -2)]) {
        const { exitCode, stdout } = Bun.spawnSync([...shippedLauncher.command, ...words])
        expect([exitCode, stdout.toString()]).toEqual([125, ''])
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
