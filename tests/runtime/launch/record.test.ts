/**
 * Goal: the files of a task tell who runs and how it ended, or nothing, in every order of events; the lock tells whether
 * its launcher lives. Method: real disks that are full, directories that cannot be written, launchers that are killed.
 */
import { expect, test } from 'bun:test'
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { taskDirId } from '../../../runtime/files/task-dir.ts'
import { parseOutcome, parseStarted } from '../../../runtime/launch/outcome.ts'
import { tryLock } from '../../../shared/files/directory-lock.ts'
import { compiledOnly, complaintOf, describeLaunchers, launch, rootTest, run, sh } from '../../support/launchers.ts'
import { SMALL_DISK } from '../../support/small-disk.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

/** The exit code of a launcher whose task has ended, and that could not write down how (outcome.h). */
const EXIT_OUTCOME_LOST = 123

/** Whether nobody holds the lock of the directory. */
function isFree(dir: string): boolean {
  const fd = openSync(dir, 'r')
  try {
    return tryLock(fd)
  } finally {
    closeSync(fd)
  }
}

describeLaunchers('the record', (launcher) => {
  compiledOnly(launcher)('says who runs before the program does', async () => {
    using dir = tempDir()
    const {
      ending,
      stdout,
      process: who,
    } = await run(launcher, {
      command: ['/bin/cat', join(dir.path, 'started')],
      task_dir: dir.path,
    })
    expect([ending, parseStarted(stdout)]).toEqual([{ how: 'exited', exit_code: 0 }, who!])
  })

  test('says who runs: its pid, start time, boot', async () => {
    await using task = launch(launcher, {
      command: sh('cut -d " " -f 22 /proc/$$/stat; echo $PPID; echo ready; sleep 600'),
    })
    const started = await task.started()
    const [startTime, launcherPid] = (await task.printed('ready\n')).split('\n')
    expect(started).toMatchObject({ start_time: Number(startTime), launcher_pid: Number(launcherPid) })
    expect(started.launcher_pid).toBe(task.launcher.pid)
    expect(started.boot_id).toBe(readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim())
    expect(existsSync(join(task.dir, 'outcome'))).toBe(false)
    expect(parseOutcome(task.file('started'))).toBeUndefined()
  })

  test('is one file: the outcome begins with who ran', async () => {
    await using task = launch(launcher, { command: sh('echo ready; while [ ! -e go ]; do sleep 0.01; done') })
    await task.printed('ready\n')
    await task.started()
    const before = task.file('started')
    writeFileSync(join(task.workdir, 'go'), '')
    const outcome = await task.outcome()
    expect(task.file('outcome').startsWith(before)).toBe(true)
    expect(outcome.process).toEqual(parseStarted(before)!)
    expect(statSync(join(task.dir, 'outcome')).mode & 0o777).toBe(0o600)
  })

  test('has its place on the disk while the program runs', async () => {
    await using task = launch(launcher, { command: sh('echo ready; sleep 600') })
    await task.printed('ready\n')
    await task.started() // the portable launcher writes it a little later
    expect(statSync(join(task.dir, 'started')).blocks * 512).toBeGreaterThanOrEqual(4_096)
  })

  test('lets no task run twice', async () => {
    for (const left of ['started', 'outcome']) {
      using dir = tempDir()
      writeFileSync(join(dir.path, left), 'of an earlier run\n')
      await using task = launch(launcher, { command: sh('echo again'), task_dir: dir.path })
      expect(await task.exited).toBe(125)
      expect(await task.complaints()).toMatch(complaintOf('task_dir'))
      expect(readdirSync(dir.path)).toEqual([left])
    }
  })

  test('is not made in a directory that another task has by now', async () => {
    using dir = tempDir()
    writeFileSync(join(dir.path, 'request.json'), 'of the old task')
    const old = taskDirId(dir.path)!
    const again = (task_dir_id: string) => launch(launcher, { command: ['true'], task_dir: dir.path, task_dir_id })
    utimesSync(join(dir.path, 'request.json'), 1, 1) // as written at another time, with the inode of the first
    for (const other of [old, '0:0', `${taskDirId(dir.path)}0`]) {
      await using task = again(other)
      expect(await task.exited).toBe(125)
      expect(await task.complaints()).toMatch(complaintOf('task_dir'))
      expect(readdirSync(dir.path)).toEqual(['request.json'])
    }
    await using task = again(taskDirId(dir.path)!)
    expect((await task.outcome()).ending).toEqual({ how: 'exited', exit_code: 0 })
  })

  test('is missing where the directory of the task is', async () => {
    using dir = tempDir()
    writeFileSync(join(dir.path, 'file'), '')
    for (const name of ['missing', 'file']) {
      await using task = launch(launcher, { command: ['true'], task_dir: join(dir.path, name) })
      expect(await task.exited).toBe(125)
      expect(await task.complaints()).toMatch(complaintOf('task_dir'))
    }
  })

  rootTest('is missing where the directory of the task cannot be written', async () => {
    using dir = tempDir()
    chmodSync(dir.path, 0o755)
    await using task = launch(launcher, { command: sh('touch ran'), task_dir: dir.path, uid: 65_534 })
    expect(await task.exited).toBe(125)
    expect(await task.complaints()).toMatch(complaintOf('outcome'))
    expect(existsSync(join(task.workdir, 'ran'))).toBe(false)
  })
})

/** A disk of one megabyte with nothing on it, gone with its files at the end of its block. */
function smallDisk() {
  const dir = tempDir()
  const mount = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=1m', SMALL_DISK, dir.path], { stderr: 'pipe' })
  if (mount.exitCode !== 0) throw new Error(String(mount.stderr))
  return {
    path: dir.path,
    [Symbol.dispose]() {
      Bun.spawnSync(['umount', dir.path])
      dir[Symbol.dispose]()
    },
  }
}

/** Fills a disk to the last byte, by a file of that name. */
const fill = (disk: string) => `dd if=/dev/zero of=${disk}/filler bs=4096 2> /dev/null; sync ${disk}/filler`

describeLaunchers('a record that its task removes', (launcher) => {
  test.each([125, 137])('is told by an exit code that is not that of the task (%i)', async (code) => {
    const script = `until test -e ../task/started; do sleep 0.01; done; rm ../task/started; exit ${code}`
    await using task = launch(launcher, { command: sh(script) })
    expect(await task.exited).toBe(EXIT_OUTCOME_LOST)
    expect(await task.complaints()).toMatch(complaintOf('outcome'))
    expect(readdirSync(task.dir).toSorted()).toEqual(['stderr.log', 'stdout.log'])
  })
})

describeLaunchers('a full disk', (launcher) => {
  rootTest('keeps a task from being started', async () => {
    using disk = smallDisk()
    const task_dir = join(disk.path, 'task')
    mkdirSync(task_dir)
    Bun.spawnSync(sh(fill(disk.path)))
    await using task = launch(launcher, { command: sh('touch ran'), task_dir })
    expect(await task.exited).toBe(125)
    expect(await task.complaints()).toMatch(complaintOf('outcome'))
    expect(existsSync(join(task.workdir, 'ran'))).toBe(false)
  })

  rootTest('that fills up while the task runs loses no ending', async () => {
    using disk = smallDisk()
    const task_dir = join(disk.path, 'task')
    mkdirSync(task_dir)
    const script = `${fill(disk.path)}; echo hello || exit 7`
    const ended = await run(launcher, { command: sh(script), task_dir })
    expect([ended.ending, ended.stdout]).toEqual([{ how: 'exited', exit_code: 7 }, ''])
  })

  rootTest('by the output of the task ends the writer, not the launcher', async () => {
    using disk = smallDisk()
    const task_dir = join(disk.path, 'task')
    mkdirSync(task_dir)
    const ended = await run(launcher, { command: sh('yes 2> /dev/null || exit 6'), task_dir })
    expect(ended.ending).toEqual({ how: 'exited', exit_code: 6 })
    expect(ended.stdout_bytes).toBeGreaterThan(900_000)
  })
})

describeLaunchers('the lock', (launcher) => {
  test('is held while the task runs, and free when it has ended', async () => {
    await using task = launch(launcher, { command: sh('echo ready; while [ ! -e go ]; do sleep 0.01; done') })
    await task.printed('ready\n')
    expect(isFree(task.dir)).toBe(false)
    writeFileSync(join(task.workdir, 'go'), '')
    await task.outcome()
    expect(isFree(task.dir)).toBe(true)
  })

  test('is not the task’s: what outlives a killed launcher does not hold it', async () => {
    await using task = launch(launcher, { command: sh('setsid sleep 600 & echo $!; echo ready; wait') })
    const stray = Number((await task.printed('ready\n')).split('\n')[0])
    await task.started()
    task.launcher.kill('SIGKILL')
    await task.exited
    try {
      await until(() => isFree(task.dir))
    } finally {
      process.kill(stray, 'SIGKILL')
    }
  })

  test('may come from the service, and outlives it', async () => {
    using dir = tempDir()
    const path = join(dir.path, 'lock')
    const fd = openSync(path, 'w')
    expect(tryLock(fd)).toBe(true)
    const command = sh('echo ready; while [ ! -e go ]; do sleep 0.01; done')
    await using task = launch(launcher, { command, inherited: [fd], descriptors: { lock_fd: 3 } })
    closeSync(fd)
    await task.printed('ready\n')
    expect([isFree(path), isFree(task.dir)]).toEqual([false, true])
    writeFileSync(join(task.workdir, 'go'), '')
    await task.outcome()
    expect(isFree(path)).toBe(true)
  })

  test('that somebody else has keeps a launcher from touching anything', async () => {
    using dir = tempDir()
    const fd = openSync(dir.path, 'r')
    expect(tryLock(fd)).toBe(true)
    await using task = launch(launcher, { command: ['true'], task_dir: dir.path })
    expect(await task.exited).toBe(125)
    expect(await task.complaints()).toMatch(complaintOf('lock'))
    closeSync(fd)
    expect(readdirSync(dir.path)).toEqual([])
  })

  test('is taken over from a launcher that was killed before it began', async () => {
    using dir = tempDir()
    for (const left of ['outcome.new', 'stdout.log', 'stderr.log']) writeFileSync(join(dir.path, left), '')
    const ended = await run(launcher, { command: sh('echo hello'), task_dir: dir.path })
    expect([ended.ending, ended.stdout]).toEqual([{ how: 'exited', exit_code: 0 }, 'hello\n'])
  })
})
