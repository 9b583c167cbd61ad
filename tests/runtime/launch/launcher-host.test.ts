/**
 * Goal: a service has launchers started, hears of them, ends them, and after its own end finds them again, by their files
 * alone. Method: the real launchers, each as a service starts it; a service that is another process and dies.
 */
import { describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { installLauncher } from '../../../runtime/launch/embedded.ts'
import { isLauncherAlive, readRecord, requestKill } from '../../../runtime/launch/launcher-files.ts'
import type { LaunchPlan } from '../../../runtime/launch/plan.ts'
import { compile } from '../../../scripts/build.ts'
import { LauncherService } from '../../support/launcher-service.ts'
import { describeLaunchers, portableLauncher, rootTest, sh, taskEnv } from '../../support/launchers.ts'
import { SMALL_DISK } from '../../support/small-disk.ts'
import { gone } from '../../support/task-processes.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

const { ENOSPC } = constants.errno

describeLaunchers('a service', (variant) => {
  const service = () => new LauncherService({ variant })

  test('starts a launcher, hears when the program runs and when it has ended, and reads how', async () => {
    await using our = service()
    const task = our.start('task-1', sh('until test -e go; do sleep 0.01; done; exit 3'))
    await our.said('started', 'task-1')
    writeFileSync(join(task.dir, 'go'), '')
    expect(await task.gone).toEqual({ exitCode: 3 })
    await our.said('ended', 'task-1')
    const { process: who, outcome } = readRecord(task.dir)
    const { launcher_pid, pid, pgid, start_time, started_ms } = who!
    expect(our.events.slice(0, 2)).toEqual([
      { event: 'started', task_id: 'task-1', launcher_pid, pid, pgid, start_time, started_ms },
      { event: 'ended', task_id: 'task-1' },
    ])
    expect(outcome!.ending).toEqual({ how: 'exited', exit_code: 3 })
    expect(our.complaints()).toBe('')
  })

  test('asks the lock whether a launcher lives', async () => {
    await using our = service()
    const task = our.start('task-1', sh('exec sleep 600'))
    await our.said('started', 'task-1')
    expect(isLauncherAlive(task.dir)).toBe(true)
    expect(requestKill(task.dir)).toBe(true)
    await task.gone
    expect([isLauncherAlive(task.dir), isLauncherAlive('/no/such/dir')]).toEqual([false, false])
    expect([requestKill(task.dir), requestKill('/no/such/dir')]).toEqual([false, false])
  })

  test('may end a task as soon as there is somebody to tell', async () => {
    await using our = service()
    for (let i = 0; i < (variant.isPortable ? 2 : 20); i++) {
      const task = our.start(`task-${i}`, sh('exec sleep 600'))
      await until(() => requestKill(task.dir))
      await task.gone
      const { outcome } = readRecord(task.dir)
      expect([outcome!.reason, outcome!.ending.how]).toEqual(['kill', 'signaled'])
    }
  })

  test('finds nobody where a launcher was killed, and no outcome', async () => {
    await using our = service()
    const task = our.start('task-1', sh('exec sleep 600'))
    const { launcher_pid, pid } = await our.said('started', 'task-1')
    process.kill(launcher_pid, 'SIGKILL')
    expect(await task.gone).toEqual({ exitCode: 137 })
    const { outcome } = readRecord(task.dir)
    expect([isLauncherAlive(task.dir), requestKill(task.dir), outcome]).toEqual([false, false, undefined])
    if (variant.isPortable) process.kill(pid, 'SIGKILL') // nothing takes it along
    await gone(pid)
  })

  test('is told in words what keeps a launcher from being started', async () => {
    await using our = service()
    const refused = (command: LaunchPlan['command']) => {
      const launched = our.host.launch(our.planOf('task-1', command), taskEnv)
      expect(isLauncherAlive(join(our.path, 'task-1'))).toBe(false)
      return 'error' in launched ? launched.error : undefined
    }
    const long = Array.from({ length: 100 }, () => 'x'.repeat(100_000))
    expect(refused(['/bin/true', ...long])).toEqual({
      code: 'launch_failed',
      message:
        'cannot start the task: its arguments and environment are too long (shorten them, or pass the data in a file)',
      details: { step: 'spawn', errno: 'E2BIG', remedy: 'shorten them, or pass the data in a file' },
    })
    expect(refused(['/bin/true', 'a\0b'])!.message).toContain('have a NUL character')
  })

  test('is told that the launcher is gone from where it was', async () => {
    const command = ['/no/such/launcher']
    await using our = new LauncherService({ variant: { ...variant, command } })
    const launched = our.host.launch(our.planOf('task-1', ['/bin/true']), taskEnv)
    expect(launched).toMatchObject({ error: { details: { step: 'spawn', errno: 'ENOENT' } } })
  })

  rootTest('is told that the disk has no room for the files of a task', async () => {
    await using our = service()
    using disk = tempDir()
    // Room for the directory of the task, and for one more file.
    Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'nr_inodes=3', SMALL_DISK, disk.path])
    try {
      const task_dir = join(disk.path, 'task-1')
      mkdirSync(task_dir)
      writeFileSync(join(disk.path, 'filler'), '')
      const task = our.startPlan({ ...our.planOf('task-1', ['/bin/true']), task_dir })
      expect(await task.gone).toEqual({ exitCode: 125 })
      expect(await our.said('failed', 'task-1')).toMatchObject({ step: 'outcome', errno: ENOSPC })
      expect(readdirSync(task_dir)).toEqual([])
    } finally {
      Bun.spawnSync(['umount', disk.path])
    }
  })

  test('leaves no descriptor open for the tasks it started', async () => {
    await using our = service()
    await our.start('warm-up', ['/bin/true']).gone
    const open = () => readdirSync('/proc/self/fd').length
    const before = open()
    for (let i = 0; i < (variant.isPortable ? 2 : 10); i++) await our.start(`task-${i}`, ['/bin/true']).gone
    our.host.launch(our.planOf('too-long', ['/bin/true', 'x'.repeat(10_000_000)]), taskEnv)
    await until(open, (count) => count <= before)
  })

  test('starts nothing once it has closed', async () => {
    await using our = service()
    await our.start('before', ['/bin/true']).gone
    await our.host.close()
    const { dir } = our.start('after', ['/bin/true'])
    expect([isLauncherAlive(dir), readRecord(dir), readdirSync(dir)]).toEqual([false, {}, []])
  })
})

test('a task has one launcher at a time where the service starts it itself', async () => {
  await using our = new LauncherService({ variant: portableLauncher })
  const task = our.start('task-1', sh('exec sleep 600'))
  expect(() => our.start('task-1', ['/bin/true'])).toThrow(`a launcher is at work in ${task.dir} already`)
  expect(() => our.host.launch({ ...our.planOf('task-2', ['/bin/true']), task_dir: '/no/such' }, taskEnv)).toThrow(
    'ENOENT',
  )
})

describe('a record', () => {
  const WHO = 'version=1\nlauncher_pid=1\npid=2\npgid=2\nstart_time=3\nboot_id=b\nstarted_ms=4\n'
  const END =
    'how=exited\nexit_code=0\nreason=none\nfinished_ms=5\nduration_ms=1\nleftovers_killed=0\nleftovers_alive=0\nend=1\n'

  test.each([
    ['nothing', {}, false, false],
    ['who runs', { started: WHO }, true, false],
    ['an outcome', { outcome: WHO + END }, true, true],
    ['one that did not get its name any more', { started: WHO + END }, true, true],
    ['one of a task that had no process', { 'outcome.new': `version=1\n${END}` }, false, true],
    ['one that was cut', { started: (WHO + END).slice(0, -2) }, true, false],
    ['room for one', { 'outcome.new': '' }, false, false],
    ['a file of somebody else', { outcome: 'hello\n', started: '\0\0\0' }, false, false],
  ])('of %s is read as that', (_, files, hasProcess, hasOutcome) => {
    using dir = tempDir()
    for (const [name, text] of Object.entries(files)) writeFileSync(join(dir.path, name), text)
    const record = readRecord(dir.path)
    expect(['process' in record, 'outcome' in record]).toEqual([hasProcess, hasOutcome])
  })
})

describe('the launcher in the executable', () => {
  const mode = (path: string) => statSync(path).mode & 0o777

  test('is put into the data directory once, under the name of its content', () => {
    using dir = tempDir()
    const path = installLauncher(dir.path)
    const { ino } = statSync(path)
    expect([readdirSync(dir.path), mode(path)]).toEqual([[path.slice(dir.path.length + 1)], 0o500])
    expect(installLauncher(dir.path)).toBe(path)
    expect(statSync(path).ino).toBe(ino)
  })

  test('is put there again when what is there is not it', () => {
    using dir = tempDir()
    const path = installLauncher(dir.path)
    const content = readFileSync(path)
    for (const spoil of [
      () => writeFileSync(path, content.subarray(1)),
      () => writeFileSync(path, Buffer.concat([content.subarray(1), Buffer.of(7)])),
      () => writeFileSync(path, ''),
    ]) {
      chmodSync(path, 0o700)
      spoil()
      expect(installLauncher(dir.path)).toBe(path)
      expect([readFileSync(path).equals(content), mode(path)]).toEqual([true, 0o500])
    }
    chmodSync(path, 0o777)
    installLauncher(dir.path)
    expect(mode(path)).toBe(0o500)
  })

  test('takes the place of those of other versions, and of one that was not finished', () => {
    using dir = tempDir()
    const path = installLauncher(dir.path)
    for (const name of [`launcher-${'0'.repeat(32)}`, `${path.slice(dir.path.length + 1)}.new`]) {
      writeFileSync(join(dir.path, name), 'of another version', { mode: 0o500 })
    }
    writeFileSync(join(dir.path, 'launcher-notes'), 'not ours')
    renameSync(path, `${path}.new`)
    expect(installLauncher(dir.path)).toBe(path)
    expect(readdirSync(dir.path).sort()).toEqual([path.slice(dir.path.length + 1), 'launcher-notes'].sort())
  })

  test('travels in a compiled one, and is the one that is checked in', async () => {
    using dir = tempDir()
    const program = join(dir.path, 'program')
    await compile(join(import.meta.dir, '../../fixtures/install-launcher.ts'), program)
    const { stdout, stderr } = Bun.spawnSync([program, dir.path], { cwd: '/', env: {}, stderr: 'pipe' })
    const path = stdout.toString().trim()
    expect([stderr.toString(), path]).toEqual(['', installLauncher(dir.path)])
    const bin = join(
      import.meta.dir,
      `../../../runtime/launch/bin/taskmill-launcher-${process.platform}-${process.arch}`,
    )
    expect(readFileSync(path).equals(readFileSync(bin))).toBe(true)
  })

  test('says what is in its way', () => {
    using dir = tempDir()
    expect(() => installLauncher(join(dir.path, 'missing'))).toThrow(/^cannot put the launcher into .*ENOENT/)
  })

  rootTest('says that it may not run where nothing may', () => {
    using dir = tempDir()
    const mount = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'noexec,size=1m', SMALL_DISK, dir.path])
    expect(mount.exitCode).toBe(0)
    try {
      expect(() => installLauncher(dir.path)).toThrow(
        'its file system is mounted noexec: choose another with --data-dir',
      )
    } finally {
      Bun.spawnSync(['umount', dir.path])
    }
  })
})
