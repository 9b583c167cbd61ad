/**
 * Goal: a task in a sandbox sees the host as it is, read-only, without what is hidden, and writes where it may and nowhere
 * else. Method: tasks that look around and try; the files of the host before and after.
 */
import { expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sh } from '../../support/launchers.ts'
import { describeSandboxes, launchIn, MASKS, runIn, USUAL } from '../../support/sandboxes.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'

/** Files that everybody may read and write, with places below that are hidden or shown. */
function openTree(): TempDir {
  const temp = tempDir()
  for (const name of ['', 'secret', 'secret/part', 'secret/part/inner']) {
    mkdirSync(join(temp.path, name), { recursive: true })
    chmodSync(join(temp.path, name), 0o777)
  }
  for (const name of ['plain', 'secret/key', 'secret/part/shown', 'secret/part/inner/key']) {
    writeFileSync(join(temp.path, name), `${name}\n`)
    chmodSync(join(temp.path, name), 0o666)
  }
  return temp
}

const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '')

describeSandboxes('the view of a sandbox', (setting) => {
  test('is that of the host, which it cannot write', async () => {
    const script = `cat /etc/hostname; for path in /usr/x /etc/x /x /dev/x /sys/x ${MASKS.map((mask) => `${mask}/x`).join(' ')}; do
      touch $path 2> /dev/null && echo "wrote $path"; done; exit 0`
    const ended = await runIn(setting, { command: sh(script) })
    expect(ended.stdout).toBe(readFileSync('/etc/hostname', 'utf8'))
    expect(ended.stderr).toBe('')
  })

  test('has a workspace, which is the working directory and belongs to the task', async () => {
    await using task = launchIn(setting, { command: sh('pwd; id -u; stat -c %u .; echo made > file; mkdir dir') })
    await task.outcome()
    expect(lines(task.stdout)).toEqual([task.workdir, String(setting.uid), String(setting.uid)])
    const made = statSync(join(task.workdir, 'file'))
    expect([made.uid, readFileSync(join(task.workdir, 'file'), 'utf8')]).toEqual([setting.uid, 'made\n'])
  })

  test('has a /tmp and a /dev/shm that nobody else sees, of a limited size, and that take no devices', async () => {
    const name = `taskmill-view-${process.pid}`
    const script = `for path in /tmp/${name} /dev/shm/${name}; do echo hello > $path; cat $path; done
      stat -c '%a %F' /tmp /dev/shm; df --output=size -B1M /tmp /dev/shm | grep -v M | tr -d ' '
      awk '$5 == "/tmp" || $5 == "/dev/shm" { top[$5] = $6 } END { for (path in top) print top[path] }' \\
        /proc/self/mountinfo | grep -vc nodev`
    const { stdout } = await runIn(setting, { command: sh(script) })
    expect(lines(stdout)).toEqual(['hello', 'hello', '1777 directory', '1777 directory', '512', '512', '0'])
    expect(['/tmp', '/dev/shm'].map((dir) => existsSync(join(dir, name)))).toEqual([false, false])
  })

  test('takes no more into /tmp than its limit', async () => {
    const script = 'fallocate -l 1M /tmp/small && echo small; fallocate -l 513M /tmp/large || echo too large'
    const { stdout, stderr } = await runIn(setting, { command: sh(script) })
    expect(lines(stdout)).toEqual(['small', 'too large'])
    expect(stderr).toContain('No space left on device')
  })

  test('has the devices that all programs expect, and no others', async () => {
    const script = `ls /dev /dev/pts; head -c 3 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c; echo x > /dev/null
      echo x 2> /dev/null > /dev/full || echo full; readlink /dev/fd /dev/stdin /dev/stdout /dev/stderr /dev/ptmx`
    const { stdout, stderr } = await runIn(setting, { command: sh(script) })
    expect(lines(stdout)).toEqual([
      ...['/dev:', 'fd', 'full', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'tty', 'urandom'],
      ...['zero', '/dev/pts:', 'ptmx', '3', '3', 'full'],
      ...['/proc/self/fd', '/proc/self/fd/0', '/proc/self/fd/1', '/proc/self/fd/2', 'pts/ptmx'],
    ])
    expect(stderr).toBe('')
  })

  test('lets a program have a terminal of its own', async () => {
    const { stdout } = await runIn(setting, { command: sh('script -qec "tty; echo in it" /dev/null < /dev/null') })
    expect(stdout).toMatch(/^\/dev\/pts\/\d+\r\nin it\r\n/)
  })

  test('shows its own processes: an init that is ours, and itself', async () => {
    const { stdout } = await runIn(setting, { command: sh('echo $$ $PPID; ls -d /proc/[0-9]*; cat /proc/1/comm') })
    expect(lines(stdout).slice(0, 3)).toEqual(['2 1', '/proc/1', '/proc/2'])
    expect(lines(stdout).at(-1)).toBe('taskmill-init')
  })

  test('may open /dev/stdout and /dev/stderr again', async () => {
    const { stdout, stderr } = await runIn(setting, {
      command: sh('echo one; echo two >> /dev/stdout; echo three > /dev/stderr'),
    })
    expect([stdout, stderr]).toEqual(['one\ntwo\n', 'three\n'])
  })

  test('hides what is masked, shows parts of it, and writes to none', async () => {
    using tree = openTree()
    const [secret, part, inner] = ['secret', 'secret/part', 'secret/part/inner'].map((name) => join(tree.path, name))
    // Under /tmp everything is hidden, so what is there has to be shown first.
    const sandbox = { masks: [secret!, inner!], exposed: [tree.path, part!, join(tree.path, 'missing')] }
    const script = `cd ${tree.path}; find . -type f | sort; cat plain secret/part/shown
      for path in plain secret/new secret/part/shown secret/part/inner/new; do echo x 2> /dev/null > $path && echo "wrote $path"; done; exit 0`
    const { stdout } = await runIn(setting, { command: sh(script), sandbox })
    expect(lines(stdout)).toEqual(['./plain', './secret/part/shown', 'plain', 'secret/part/shown'])
  })

  test('hides single files, and shows a masked place whole again', async () => {
    using tree = openTree()
    const secret = join(tree.path, 'secret')
    const sandbox = { masks: [join(tree.path, 'plain'), secret], exposed: [tree.path, secret] }
    const script = `cd ${tree.path}; wc -c < plain; cat secret/key secret/part/inner/key; echo x 2> /dev/null > secret/key; cat secret/key`
    const { stdout } = await runIn(setting, { command: sh(script), sandbox })
    expect(lines(stdout)).toEqual(['0', 'secret/key', 'secret/part/inner/key', 'secret/key'])
  })

  test('has a /dev/shm of its own, whatever is hidden there, and shows parts of that of the host', async () => {
    using shm = tempDir('/dev/shm')
    mkdirSync(join(shm.path, 'hidden'))
    mkdirSync(join(shm.path, 'shown'))
    writeFileSync(join(shm.path, 'shown/file'), 'shown\n')
    chmodSync(shm.path, 0o755)
    const sandbox = { masks: [shm.path, join(shm.path, 'hidden')], exposed: [join(shm.path, 'shown')] }
    const script = `cd ${shm.path}; find . | sort; cat shown/file; echo x 2> /dev/null > shown/file || echo x > /dev/shm/x && cat /dev/shm/x`
    const { stdout } = await runIn(setting, { command: sh(script), sandbox })
    expect(lines(stdout)).toEqual(['.', './shown', './shown/file', 'shown', 'x'])
  })

  test('shows devices of the host that are exposed, to be opened by whom their mode lets, and no others', async () => {
    const names = ['full', 'null', ...(existsSync('/dev/kmsg') ? ['kmsg'] : [])]
    const sandbox = { exposed: [...names, 'missing'].map((name) => `/dev/${name}`) }
    const script = `ls /dev | tr '\\n' ' '; echo; echo x > /dev/null && echo x 2>&- > /dev/full || echo full`
    const { stdout } = await runIn(setting, { command: sh(script), sandbox })
    const own = ['fd', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'tty', 'urandom', 'zero']
    expect(lines(stdout)).toEqual([`${[...own, ...names].sort().join(' ')} `, 'full'])
  })

  test('hides what is masked of /proc, in a new one as in that of the host', async () => {
    const sandbox = { masks: ['/proc/cpuinfo', '/proc/sys/kernel', '/proc/sys/kernel/random', `/proc/${process.pid}`] }
    const script = 'wc -c < /proc/cpuinfo; ls /proc/sys/kernel; cat /proc/sys/fs/nr_open > /dev/null && echo the rest'
    for (const features of [USUAL, USUAL.filter((feature) => feature !== 'pid')]) {
      const { stdout } = await runIn(setting, { command: sh(script), sandbox: { ...sandbox, features } })
      expect(lines(stdout)).toEqual(['0', 'the rest'])
    }
  })

  test('has the script at its place, to be read and not written', async () => {
    using dir = tempDir()
    chmodSync(dir.path, 0o755)
    const script = join(dir.path, 'script')
    writeFileSync(script, `echo $0; ls ${dir.path}; echo x > ${script}; exit 3`, { mode: 0o644 })
    const ended = await runIn(setting, { command: ['/bin/sh', script], sandbox: { script, masks: [dir.path] } })
    expect([ended.ending, lines(ended.stdout)]).toEqual([{ how: 'exited', exit_code: 3 }, [script, 'script']])
    expect(ended.stderr).toContain('Read-only file system')
  })

  test('takes a link that leads out of the workspace nowhere', async () => {
    using tree = openTree()
    await using task = launchIn(setting, {
      command: sh('until [ -L link ]; do sleep 0.01; done; ls link/secret; echo x > link/plain'),
    })
    symlinkSync(tree.path, join(task.workdir, 'link'))
    expect((await task.outcome()).ending).not.toEqual({ how: 'exited', exit_code: 0 })
    expect([task.stdout, readFileSync(join(tree.path, 'plain'), 'utf8')]).toEqual(['', 'plain\n'])
  })

  test('is that of the host where it has no mounts of its own: as another user, or not at all', async () => {
    const sandbox = { features: ['pid', 'uts', 'ipc', 'user', 'seccomp'] } as const
    const { stdout } = await runIn(setting, { command: sh('id -u; touch file && echo made; pwd'), sandbox })
    expect(lines(stdout).slice(0, 2)).toEqual([String(setting.uid), 'made'])
  })
})
