/**
 * Goal: no mount of a sandbox appears on the host, not even where the host shares its mounts, as systemd makes it, and
 * where the kernel is old or a filter forbids newer calls. Method: throw-away hosts of that kind, whose mounts are
 * compared before and after.
 */
import { describe, expect, test } from 'bun:test'
import { chmodSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { probeArguments } from '../../../runtime/launch/sandbox-probe.ts'
import { SANDBOX_FEATURES } from '../../../runtime/plan/isolation.ts'
import { CALLS, recordedSharedMounts, withoutCalls } from '../../support/hosts.ts'
import { sh, shippedLauncher } from '../../support/launchers.ts'
import { becoming } from '../../support/ordinary-user.ts'
import { missingSandbox, runIn, SANDBOX_UID, testRootfs } from '../../support/sandboxes.ts'
import { testEnvironment } from '../../support/service.ts'
import { SMALL_DISK } from '../../support/small-disk.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'

const isRoot = process.getuid?.() === 0
const why = missingSandbox ?? (isRoot ? undefined : 'only root can share mounts')
const asRoot = { variant: shippedLauncher, isRoot: true, uid: SANDBOX_UID }

/** Without the small disks of other tests: one goes here, too, as soon as its test removes the directory below it. */
const mounts = (dir: TempDir, when: 'before' | 'after'): string =>
  readFileSync(join(dir.path, when), 'utf8')
    .split('\n')
    .filter((line) => !line.includes(` - tmpfs ${SMALL_DISK} `))
    .join('\n')

describe.skipIf(why !== undefined)(
  `where the host shares its mounts${why === undefined ? '' : ` (skipped: ${why})`}`,
  () => {
    describe.each(Object.entries(CALLS))('and its kernel lacks %s', (_, calls) => {
      const host = (dir: TempDir): string[] => [...recordedSharedMounts(dir.path), ...withoutCalls(calls)]

      test.each(['the host', 'a root of its own'])(
        'a sandbox with the view of %s mounts nothing there',
        async (view) => {
          using dir = tempDir()
          using rootfs = view === 'the host' ? undefined : testRootfs()
          const sandbox = rootfs === undefined ? {} : { rootfs: rootfs.path }
          const script = 'echo x > /tmp/file && cat /tmp/file; touch /etc/x || echo refused'
          const ended = await runIn(asRoot, { command: sh(script), sandbox, through: host(dir) })
          expect(ended.stdout).toBe('x\nrefused\n')
          expect(mounts(dir, 'before')).toContain(' shared:')
          expect(mounts(dir, 'after')).toBe(mounts(dir, 'before'))
        },
      )

      test('a sandbox without a pid namespace mounts nothing there', async () => {
        using dir = tempDir()
        const sandbox = { features: ['mount', 'user', 'seccomp'] as const }
        const ended = await runIn(asRoot, { command: sh('id -u'), sandbox, through: host(dir) })
        expect(ended.stdout).toBe(`${SANDBOX_UID}\n`)
        expect(mounts(dir, 'after')).toBe(mounts(dir, 'before'))
      })

      test.each([
        ['root', [], { features: SANDBOX_FEATURES }, SANDBOX_UID],
        ['root, with a rootfs', [], { features: SANDBOX_FEATURES, isRooted: true }, SANDBOX_UID],
        ['root, without its rights', [], { features: SANDBOX_FEATURES, isRootless: true }, SANDBOX_UID],
        ['a user', becoming(), { features: SANDBOX_FEATURES }, undefined],
      ] as const)('the probe of %s mounts nothing there', async (_who, become, attempt, uid) => {
        using dir = tempDir()
        chmodSync(dir.path, 0o755)
        const probe = [...host(dir), ...become, ...shippedLauncher.command, ...probeArguments(attempt, uid)]
        const { stdout } = Bun.spawnSync(probe, { env: testEnvironment() })
        expect(stdout.toString()).toBe('ok\n')
        expect(mounts(dir, 'after')).toBe(mounts(dir, 'before'))
      })
    })
  },
)
