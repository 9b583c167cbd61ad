/**
 * Goal: with a root of its own a task sees that tree, read-only, its workspace, and nothing of the host. Method: a tree of
 * a static shell; odd trees.
 */
import { describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { makeFifo } from '../../support/fifo.ts'
import { sh } from '../../support/launchers.ts'
import { describeSandboxes, launchIn, MASKS, runIn, testRootfs } from '../../support/sandboxes.ts'

const { errno } = constants

const hasShell = Bun.spawnSync(['sh', '-c', 'command -v /usr/bin/busybox']).exitCode === 0
const why = hasShell ? '' : ' (skipped: busybox-static is not here)'
const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '')

describe.skipIf(!hasShell)(`rootfs${why}`, () => {
  describeSandboxes('the root of a sandbox', (setting) => {
    test('is the tree with the workspace, and no more', async () => {
      using rootfs = testRootfs()!
      writeFileSync(join(rootfs.path, 'etc/file'), 'of the tree\n', { mode: 0o644 })
      const script = 'pwd; ls /; cat /etc/file; echo made > file; cat file; id -u; ls /proc/1/root /etc/passwd'
      await using task = launchIn(setting, { command: sh(script), sandbox: { rootfs: rootfs.path } })
      await task.outcome()
      expect(lines(task.stdout)).toEqual([
        ...['/workspace', 'bin', 'dev', 'etc', 'proc', 'tmp', 'workspace', 'of the tree', 'made', String(setting.uid)],
      ])
      expect(readFileSync(join(task.workdir, 'file'), 'utf8')).toBe('made\n')
      expect(task.file('stderr.log')).toMatch(/1\/root: Permission denied\n.*passwd: No such file/)
    })

    test('can be written in the workspace, /tmp and /dev/shm alone', async () => {
      using rootfs = testRootfs()!
      for (const name of ['', 'etc', 'bin']) chmodSync(join(rootfs.path, name), 0o777)
      const script = `for path in /x /etc/x /bin/x /dev/x /proc/x /tmp/x /dev/shm/x /workspace/x; do
        echo x 2> /dev/null > $path && echo $path; done; exit 0`
      const { stdout } = await runIn(setting, { command: sh(script), sandbox: { rootfs: rootfs.path } })
      expect(lines(stdout)).toEqual(['/tmp/x', '/dev/shm/x', '/workspace/x'])
    })

    test('has links, files and directories at its top, whatever else lies there', async () => {
      using rootfs = testRootfs()!
      rmSync(join(rootfs.path, 'tmp'), { recursive: true })
      symlinkSync('/etc/passwd', join(rootfs.path, 'tmp')) // where it must not be followed
      symlinkSync('bin', join(rootfs.path, 'sbin'))
      writeFileSync(join(rootfs.path, 'file with a space'), 'text\n', { mode: 0o644 })
      mkdirSync(join(rootfs.path, 'a\\040b\nc'), { mode: 0o755 })
      makeFifo(join(rootfs.path, 'pipe'))
      const script = 'ls / | cat; readlink /sbin; cat "/file with a space"; echo x > /tmp/x && echo fine'
      const { stdout } = await runIn(setting, { command: sh(script), sandbox: { rootfs: rootfs.path } })
      expect(stdout).toStartWith('a\\040b?c\nbin\ndev\n')
      expect(lines(stdout).slice(-3)).toEqual(['bin', 'text', 'fine'])
      expect(stdout).not.toContain('pipe')
    })

    test('has a /proc in which is hidden what is masked, and a /dev of its own whatever is', async () => {
      using rootfs = testRootfs()!
      const masks = ['/proc/cpuinfo', '/proc/sys/kernel', `/proc/${process.pid}`, '/dev/shm']
      const script = 'cat /proc/cpuinfo; ls /proc/sys/kernel; cat /proc/sys/fs/nr_open > /dev/shm/x && echo the rest'
      for (const tree of [rootfs.path, '/']) {
        const { stdout } = await runIn(setting, { command: sh(script), sandbox: { rootfs: tree, masks } })
        expect(lines(stdout)).toEqual(['the rest'])
      }
    })

    test('has the script at /script', async () => {
      using rootfs = testRootfs()!
      const script = join(rootfs.path, 'etc/given')
      writeFileSync(script, 'echo $0; pwd; echo x > /script', { mode: 0o644 })
      const sandbox = { rootfs: rootfs.path, script }
      const { stdout, stderr } = await runIn(setting, { command: ['/bin/sh', '/script'], sandbox })
      expect([lines(stdout), stderr]).toEqual([['/script', '/workspace'], expect.stringContaining('Read-only')])
    })

    test('is the machine itself, if that is wanted: read-only, without what others have in memory', async () => {
      const script = 'ls -d /usr; touch /usr/x /etc/x; ls /tmp /dev/shm'
      const { stdout, stderr } = await runIn(setting, { command: sh(script), sandbox: { rootfs: '/' } })
      expect(lines(stdout)).toEqual(['/usr', '/dev/shm:', '/tmp:'])
      expect(stderr.match(/Read-only file system/g)).toHaveLength(2)
    })

    test('shows nothing that is hidden of the host', async () => {
      using rootfs = testRootfs()!
      const hidden = ['etc/hidden', 'etc/hidden file', 'keys']
      for (const name of ['etc/hidden', 'keys']) mkdirSync(join(rootfs.path, name), { mode: 0o777 })
      for (const name of ['etc/hidden/key', 'etc/hidden file', 'keys/key'])
        writeFileSync(join(rootfs.path, name), 'secret')
      const masks = [...hidden, 'missing', 'etc/missing'].map((name) => join(rootfs.path, name))
      const script =
        'ls /; ls /etc/hidden /keys; cat "/etc/hidden file"; for path in /etc/hidden/x /keys/x; do echo x 2> /dev/null > $path && echo $path; done; exit 0'
      const { stdout } = await runIn(setting, { command: sh(script), sandbox: { rootfs: rootfs.path, masks } })
      expect(lines(stdout)).toEqual([
        ...['bin', 'dev', 'etc', 'keys', 'proc', 'tmp', 'workspace', '/etc/hidden:', '/keys:'],
      ])
      const whole = await runIn(setting, { command: sh('ls -A /run /home'), sandbox: { rootfs: '/', masks: MASKS } })
      expect(lines(whole.stdout)).toEqual(['/home:', '/run:'])
    })

    test('is no part of the host that is hidden, but one that is shown after all', async () => {
      using rootfs = testRootfs()!
      const refused = { how: 'sandbox_setup_failed', step: 'rootfs', errno: errno.EACCES } as const
      const hidden = { ...refused, mount: rootfs.path }
      const given = { command: sh('exit 4'), sandbox: { rootfs: rootfs.path } } as const
      for (const masks of [[rootfs.path], [join(rootfs.path, '..')]]) {
        const top = masks.map((path) => join(path, '.').replace(/\/$/, ''))
        expect((await runIn(setting, { ...given, sandbox: { ...given.sandbox, masks: top } })).ending).toEqual(hidden)
        const shown = { ...given.sandbox, masks: top, exposed: [rootfs.path] }
        expect((await runIn(setting, { ...given, sandbox: shown })).ending).toEqual({ how: 'exited', exit_code: 4 })
      }
    })

    test.each([
      ['that is not there', () => '/no/such/tree', errno.ENOENT],
      ['that is no directory', () => '/etc/passwd', errno.ENOTDIR],
    ])('%s is a fault of the set-up', async (_, rootfs, error) => {
      const { ending, code } = await runIn(setting, { command: sh('true'), sandbox: { rootfs: rootfs() } })
      expect([ending, code]).toEqual([
        { how: 'sandbox_setup_failed', step: 'rootfs', errno: error, mount: rootfs() },
        125,
      ])
    })

    test('has at most 256 entries', async () => {
      using rootfs = testRootfs()!
      // Those that are ours do not count.
      for (let i = 0; i < 254; i++) mkdirSync(join(rootfs.path, `entry-${i}`), { mode: 0o755 })
      const given = { command: sh('ls / | grep -c entry-'), sandbox: { rootfs: rootfs.path } } as const
      const { ending } = await runIn(setting, { ...given, command: sh('exit 4') })
      expect(ending).toEqual({ how: 'exited', exit_code: 4 })
      mkdirSync(join(rootfs.path, 'one-more'))
      expect((await runIn(setting, given)).ending).toEqual({
        ...{ how: 'sandbox_setup_failed', step: 'rootfs', errno: errno.E2BIG, mount: rootfs.path },
      })
    })
  })
})
