/**
 * Sandboxes of the launcher under test: as root, where tasks become another user, and as an ordinary user.
 *
 * Tests that need them are skipped on a machine without sandboxes, with the reason in their names.
 * TASKMILL_MUST_SANDBOX=1 makes them fail instead.
 */
import { afterAll, describe } from 'bun:test'
import { chmodSync, copyFileSync, mkdirSync, symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { failureOf } from '../../runtime/launch/faults.ts'
import type { LaunchSandbox } from '../../runtime/launch/plan.ts'
import { probeSandbox } from '../../runtime/launch/sandbox-probe.ts'
import type { SandboxFeature } from '../../runtime/plan/isolation.ts'
import { CALLS, SHARED_MOUNTS, withoutCalls } from './hosts.ts'
import {
  describeLaunchers,
  type LauncherVariant,
  type LaunchOptions,
  launch,
  run,
  shippedLauncher,
} from './launchers.ts'
import { type TempDir, tempDir } from './temp.ts'

/** A user that no machine has, and that of tasks in sandboxes of root. */
const ORDINARY_UID = 61_234
export const SANDBOX_UID = 65_531

const isRoot = process.getuid?.() === 0

/** What a sandbox has where nobody says. */
export const USUAL: readonly SandboxFeature[] = ['mount', 'pid', 'uts', 'ipc', 'net', 'user', 'seccomp']

export const MASKS: readonly string[] = ['/home', '/root', '/run', '/var/tmp']

/** Who starts sandboxes, and the user of their tasks. */
export interface Setting {
  readonly variant: LauncherVariant
  readonly isRoot: boolean
  /** Of the task. */
  readonly uid: number
}

type SandboxedOptions = Omit<LaunchOptions, 'sandbox' | 'uid'> & {
  readonly sandbox?: Partial<Omit<LaunchSandbox, 'workspace' | 'uid'>>
}

const optionsOf = ({ isRoot: isByRoot, uid }: Setting, { sandbox, ...more }: SandboxedOptions): LaunchOptions => ({
  ...more,
  ...(isRoot && !isByRoot && { uid }),
  sandbox: {
    features: USUAL,
    ...(sandbox?.rootfs === undefined && { masks: MASKS }),
    ...sandbox,
    ...(isByRoot && { uid }),
  },
})

export const launchIn = (setting: Setting, options: SandboxedOptions) =>
  launch(setting.variant, optionsOf(setting, options))

export const runIn = (setting: Setting, options: SandboxedOptions) => run(setting.variant, optionsOf(setting, options))

/** Why there can be no sandbox here, or undefined. */
export const missingSandbox = await (async (): Promise<string | undefined> => {
  const { command } = shippedLauncher
  const probe = await probeSandbox(
    { command: command as [string], wrapEnvironment: (env) => env, isNative: true },
    isRoot ? SANDBOX_UID : undefined,
  )
  const fault = probe === undefined ? { step: 'probe', errno: 0 } : (probe.whole ?? probe.rootless ?? probe.chroot)
  if (fault === null) return undefined
  const { what, reason } = failureOf(fault.step, fault.errno)
  if (process.env.TASKMILL_MUST_SANDBOX === '1') throw new Error(`there can be no sandbox: ${what}: ${reason}`)
  return `${what}: ${reason}`
})()

/** A host as systemd makes it, with the calls of the oldest kernel that we support. */
const ODD_HOST = [...SHARED_MOUNTS, ...withoutCalls(CALLS['every call newer than Linux 4.9'])]

/**
 * Describes `cases` for each launcher that is built, as each kind of user that there can be, and unless told otherwise
 * also on a host that shares its mounts and has an old kernel.
 */
export function describeSandboxes(
  subject: string,
  cases: (setting: Setting) => void,
  { isHostVaried = true } = {},
): void {
  if (missingSandbox !== undefined) {
    describe.skip(`${subject} (skipped: ${missingSandbox})`, () => {
      cases({ variant: shippedLauncher, isRoot, uid: ORDINARY_UID })
    })
    return
  }
  describeLaunchers(
    subject,
    (variant) => {
      if (isRoot) describe('as root', () => cases({ variant, isRoot: true, uid: SANDBOX_UID }))
      const uid = isRoot ? ORDINARY_UID : process.getuid!()
      describe('as an ordinary user', () => cases({ variant: reachable(variant), isRoot: false, uid }))
      if (!isHostVaried || !isRoot || variant !== shippedLauncher) return
      const onOddHost = { ...variant, command: [...ODD_HOST, ...variant.command] }
      describe('as root, on a host with shared mounts and the calls of Linux 4.9', () =>
        cases({ variant: onOddHost, isRoot: true, uid: SANDBOX_UID }))
    },
    { isPortableIncluded: false },
  )
}

/** The same launcher where every user can run it, for the tests of the present block. */
function reachable(variant: LauncherVariant): LauncherVariant {
  if (!isRoot || variant.command.length === 0) return variant
  const programs = tempDir()
  afterAll(() => programs[Symbol.dispose]())
  chmodSync(programs.path, 0o755)
  const path = join(programs.path, basename(variant.command[0]!))
  copyFileSync(variant.command[0]!, path)
  chmodSync(path, 0o755)
  return { ...variant, command: [path] }
}

/** A tree that can be a root: a shell and its tools, and a file. Undefined where there is no static shell. */
export function testRootfs(): TempDir | undefined {
  if (Bun.spawnSync(['/usr/bin/busybox', 'true'], { stderr: 'ignore' }).exitCode !== 0) return undefined
  const temp = tempDir()
  chmodSync(temp.path, 0o755)
  for (const name of ['bin', 'etc', 'proc', 'tmp', 'workspace']) mkdirSync(join(temp.path, name), { mode: 0o755 })
  copyFileSync('/usr/bin/busybox', join(temp.path, 'bin/busybox'))
  chmodSync(join(temp.path, 'bin/busybox'), 0o755)
  for (const name of ['sh', 'cat', 'echo', 'id', 'ls', 'pwd', 'touch', 'readlink', 'sleep']) {
    symlinkSync('busybox', join(temp.path, 'bin', name))
  }
  return temp
}
