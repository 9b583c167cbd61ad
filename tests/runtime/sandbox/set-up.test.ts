/**
 * Goal: a sandbox that cannot be set up is told as that, with the step and the system's reason; older kernels that lack a
 * call are no reason. Method: strace lets a call fail, as if it were not there or forbidden.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { classify } from '../../../runtime/launch/classification.ts'
import { explainFault } from '../../../runtime/launch/faults.ts'
import { requestKill } from '../../../runtime/launch/launcher-files.ts'
import { sh, shippedLauncher } from '../../support/launchers.ts'
import {
  launchIn,
  MASKS,
  missingSandbox,
  runIn,
  SANDBOX_UID,
  type Setting,
  testRootfs,
} from '../../support/sandboxes.ts'
import { tempDir } from '../../support/temp.ts'
import { missingTrace } from '../../support/trace.ts'
import { until } from '../../support/until.ts'

const { errno } = constants
const isRoot = process.getuid?.() === 0
const setting: Setting = { variant: shippedLauncher, isRoot, uid: isRoot ? SANDBOX_UID : process.getuid!() }

const why = missingSandbox ?? missingTrace

/**
 * Lets calls fail, in the launcher and what it starts; `when` is which of them, as strace counts. Each call of `slow`
 * takes a tenth of a second.
 */
function failing(calls: string, error: string, { when = '1+', slow }: { when?: string; slow?: string } = {}) {
  const dir = tempDir()
  const log = join(dir.path, 'calls')
  const injection = [
    ...['-e', `trace=${slow === undefined ? calls : `${calls},${slow}`}`],
    ...['-e', `inject=${calls}:error=${error}:when=${when}`],
    ...(slow === undefined ? [] : ['-e', `inject=${slow}:delay_exit=100000`]),
  ]
  return {
    through: ['sh', '-c', 'exec strace "$@" 2> /dev/null', 'sh', '-f', '-qq', '-o', log, ...injection],
    hasAsked: () => readFileSync(log, 'utf8').includes('(INJECTED)'),
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  }
}

/** Lets whoever makes such a call stop after it, as one does that uses a file system whose server is gone. */
function hanging(call: string) {
  const dir = tempDir()
  const log = join(dir.path, 'calls')
  const injection = ['-e', `trace=${call}`, '-e', `inject=${call}:signal=SIGSTOP:when=1`]
  return {
    through: ['sh', '-c', 'exec strace "$@" 2> /dev/null', 'sh', '-f', '-qq', '-o', log, ...injection],
    hasStopped: () => existsSync(log) && readFileSync(log, 'utf8').includes('stopped by SIGSTOP'),
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  }
}

describe.skipIf(why !== undefined)(`a sandbox${why === undefined ? '' : ` (skipped: ${why})`}`, () => {
  test.each([
    ['clone', 'EPERM', 'namespaces', errno.EPERM],
    ['clone', 'ENOSPC', 'namespaces', errno.ENOSPC],
    ['socketpair', 'EMFILE', 'init', errno.EMFILE],
    ['mount_setattr', 'EINVAL', 'freeze', errno.EINVAL],
    ['capset', 'EPERM', isRoot ? 'sandbox_uid' : 'privileges', errno.EPERM],
    ['seccomp', 'EINVAL', 'seccomp', errno.EINVAL],
  ])('that has no %s (%s) says so: %s', async (call, error, step, number) => {
    using kernel = failing(call, error)
    const { ending, code } = await runIn(setting, { command: sh('true'), through: kernel.through })
    const mount = step === 'freeze' && { mount: '/' }
    expect([ending, code]).toEqual([{ how: 'sandbox_setup_failed', step, errno: number, ...mount }, 125])
    expect(kernel.hasAsked()).toBe(true)
    expect(explainFault(step, number).details.remedy?.length).toBeGreaterThan(10)
  })

  test('says what failed also where its task is gone before the launcher looks at it', async () => {
    using kernel = failing('seccomp', 'EINVAL', { slow: 'recvmsg' })
    const { ending, code } = await runIn(setting, { command: sh('true'), through: kernel.through })
    expect([ending, code]).toEqual([{ how: 'sandbox_setup_failed', step: 'seccomp', errno: errno.EINVAL }, 125])
  })

  test.each([
    ['the service', (dir: string) => requestKill(dir), 'kill'],
    ['somebody else', (_: string, launcher: number) => process.kill(launcher, 'SIGTERM'), 'terminated'],
  ] as const)('that hangs while it is set up is ended when %s asks for that', async (_, ask, reason) => {
    using kernel = hanging('mount')
    await using task = launchIn(setting, { command: sh('echo ran'), through: kernel.through })
    await until(kernel.hasStopped, Boolean)
    const [, launcher] = /launcher_pid=(\d+)/.exec(task.file('outcome.new'))!
    expect(ask(task.dir, Number(launcher))).toBe(true)
    const { ending, reason: found, process: none } = await task.outcome()
    expect([ending, found, none]).toEqual([{ how: 'signaled', signal: constants.signals.SIGKILL }, reason, undefined])
    expect(task.stdout).toBe('')
  })

  test('that hangs while it is set up is ended when its wall time is over', async () => {
    using kernel = hanging('mount')
    await using task = launchIn(setting, { command: sh('echo ran'), through: kernel.through, wall_time_ms: 300 })
    const outcome = await task.outcome()
    expect(outcome).toMatchObject({ ending: { how: 'signaled' }, reason: 'wall_time', leftovers_alive: 0 })
    const asked = { program: 'sh', workdir: '/', wall_time_ms: 300, max_output_bytes: 100 }
    expect(classify(outcome, asked).error).toMatchObject({
      code: 'timeout',
      details: { wall_time_ms: 300, remedy: expect.stringContaining('was still being set up') },
    })
  })

  test('says which of its mounts failed, whichever it is', async () => {
    const [steps, mounts] = [new Set<string>(), new Set<string>()]
    for (let nth = 1; ; nth++) {
      using kernel = failing('mount', 'EPERM', { when: String(nth) })
      const { ending } = await runIn(setting, { command: sh('true'), through: kernel.through })
      if (ending.how === 'exited') break // it needs no more than that
      expect(ending).toMatchObject({ how: 'sandbox_setup_failed', errno: errno.EPERM })
      const { step, mount } = ending as { step: string; mount?: string }
      steps.add(step)
      if (mount !== undefined) mounts.add(mount.endsWith('/work') ? 'workspace' : mount)
    }
    expect([...steps].toSorted()).toEqual([
      ...['devices', 'mask', 'proc', 'propagation', 'scaffold', 'tmp', 'workspace'],
    ])
    const devices = ['null', 'zero', 'full', 'random', 'urandom', 'tty', 'pts', 'shm'].map((name) => `/dev/${name}`)
    const own = ['.', '/dev', ...devices, '/proc', '/tmp', 'workspace']
    expect([...mounts].toSorted()).toEqual([...MASKS, ...own].toSorted())
  })

  test.each(['mount', 'pivot_root', 'umount2'])('with a root of its own says that %s failed', async (call) => {
    using rootfs = testRootfs()!
    using kernel = failing(call, 'EPERM')
    const sandbox = { rootfs: rootfs.path }
    const { ending } = await runIn(setting, { command: sh('true'), sandbox, through: kernel.through })
    const failed = call === 'mount' ? { step: 'propagation' } : { step: 'pivot', mount: 'root' }
    expect(ending).toEqual({ how: 'sandbox_setup_failed', ...failed, errno: errno.EPERM })
  })

  test('is whole without mount_setattr, mount by mount', async () => {
    using kernel = failing('mount_setattr', 'ENOSYS')
    const script = `for path in /usr/x /etc/x /x /sys/x /home/x; do touch $path 2> /dev/null && echo "wrote $path"; done
      touch file /tmp/file /dev/shm/file && echo written; for path in $(cut -d' ' -f5 /proc/self/mountinfo); do
      case $path in /tmp*|/dev*|/proc*) ;; *) [ -w "$path" ] && echo "open $path"; esac; done; exit 0`
    const { stdout } = await runIn(setting, { command: sh(script), through: kernel.through })
    expect([stdout, kernel.hasAsked()]).toEqual(['written\n', true])
  })

  test('with a root of its own is whole without mount_setattr', async () => {
    using rootfs = testRootfs()!
    using kernel = failing('mount_setattr', 'ENOSYS')
    const script =
      'for path in /x /etc/x /bin/x; do echo x 2> /dev/null > $path && echo "wrote $path"; done; echo x > x; cat x'
    const sandbox = { rootfs: rootfs.path }
    const { stdout } = await runIn(setting, { command: sh(script), sandbox, through: kernel.through })
    expect([stdout, kernel.hasAsked()]).toEqual(['x\n', true])
  })
})
