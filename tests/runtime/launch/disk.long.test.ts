/**
 * Goal: a task allocates no more in its workspace than --disk-bytes, whatever it does to hide it.
 * Method: launchers run small scripts that write to a workspace.
 */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { missingCgroups, testCgroups } from '../../support/cgroups.ts'
import {
  compiledOnly,
  describeLaunchers,
  type LauncherVariant,
  launch,
  rootTest,
  run,
  sh,
  shippedLauncher,
} from '../../support/launchers.ts'
import { until } from '../../support/until.ts'

setDefaultTimeout(60_000)

const { SIGKILL } = constants.signals
const KIB = 1024
const LIMIT = 512 * KIB

/** Runs `script` in an empty workspace. */
const write = (launcher: LauncherVariant, script: string, disk_bytes = LIMIT, owner: { uid?: number } = {}) =>
  run(launcher, { command: sh(`mkdir ../task/workspace; cd ../task/workspace; ${script}`), disk_bytes, ...owner })

const KILLED = { ending: { how: 'signaled', signal: SIGKILL }, reason: 'disk_limit' }

describeLaunchers('the limit on the workspace', (launcher) => {
  test.each([
    ['writes a file', 'head -c 2000000 /dev/zero > big; exec sleep 600'],
    ['reserves space', 'fallocate -l 2000000 big; exec sleep 600'],
    [
      'writes small files in directories',
      'for d in a b c; do mkdir -p $d/$d; for i in 1 2 3 4 5; do head -c 80000 /dev/zero > $d/$d/$i; done; done; exec sleep 600',
    ],
    ['ignores TERM', 'trap "" TERM; cat /dev/zero > big & head -c 2000000 /dev/zero > other; sleep 600'],
  ])('ends a task that %s', async (_, script) => {
    const ended = await write(launcher, script)
    expect(ended).toMatchObject(KILLED)
    expect(ended.disk_bytes).toBeGreaterThan(LIMIT)
  })

  test('counts what is allocated: holes are free, and a file with two names counts once', async () => {
    const script = 'truncate -s 1G hole; head -c 300000 /dev/zero > file; ln file name; ln file another; sleep 0.7'
    const ended = await write(launcher, script)
    expect([ended.ending, ended.reason]).toEqual([{ how: 'exited', exit_code: 0 }, 'none'])
    expect(ended.disk_bytes).toBeGreaterThanOrEqual(290_000)
    expect(ended.disk_bytes).toBeLessThan(400_000)
  })

  test('tells what a task wrote that ended before anybody looked', async () => {
    const ended = await write(launcher, 'head -c 2000000 /dev/zero > big')
    expect(ended.disk_bytes).toBeGreaterThan(LIMIT)
  })

  test('is not there without --disk-bytes', async () => {
    const ended = await run(launcher, { command: sh('mkdir ../task/workspace; echo x > ../task/workspace/x') })
    expect(ended).not.toHaveProperty('disk_bytes')
  })

  // Root passes each directory. An ordinary user does not, not even as its owner.
  const owner = process.getuid?.() === 0 ? { uid: 65_534 } : {}

  compiledOnly(launcher)('counts what is in a directory that is closed to its owner', async () => {
    const script = 'mkdir shut; exec 3> shut/big; chmod 000 shut; head -c 2000000 /dev/zero >&3; exec sleep 600'
    expect(await write(launcher, script, LIMIT, owner)).toMatchObject(KILLED)
  })

  compiledOnly(launcher)('leaves such a directory as it is', async () => {
    const script =
      'mkdir shut; echo x > shut/x; chmod 000 shut; sleep 0.7; until [ $(stat -c %a shut) = 0 ]; do :; done'
    const ended = await write(launcher, script, LIMIT, owner)
    expect([ended.ending, ended.reason]).toEqual([{ how: 'exited', exit_code: 0 }, 'none'])
  })

  compiledOnly(launcher)('leaves the mode that a task sets while such a directory is counted', async () => {
    const script = `mkdir shut; touch shut/file; perl -e 'link "shut/file", "shut/$_" or die for 1 .. 20_000'; chmod 000 shut
      until [ $(stat -c %a shut) = 700 ]; do :; done
      chmod 750 shut
      for i in $(seq 300); do [ $(stat -c %a shut) = 750 ] || exit 9; done`
    const ended = await write(launcher, script, 100_000_000, owner)
    expect([ended.ending, ended.reason]).toEqual([{ how: 'exited', exit_code: 0 }, 'none'])
  })

  test.each([
    ['too deep to be counted', 'exec sleep 600', KILLED],
    ['too deep, of a task that may end before anybody looks', '', {}],
  ])('tells of directories that are %s', async (_, then, expected) => {
    const script = `mkdir -p $(printf 'd/%.0s' $(seq 300)); ${then}`
    const ended = await write(launcher, script, 100_000_000)
    expect(ended).toMatchObject({ ...expected, disk_too_deep: 1 })
    expect(ended.disk_bytes).toBeLessThan(100_000_000)
  })
})

/** Hundredths of a second for which the launcher has used a processor. */
function ticksOf(launcherPid: number): number {
  const fields = readFileSync(`/proc/${launcherPid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return Number(fields[11]) + Number(fields[12])
}

describeLaunchers('a task that fills the disk', (launcher) => {
  test('is ended although the count of its many files is not due', async () => {
    const script = `mkdir ../task/workspace; cd ../task/workspace; touch file; perl -e 'link "file", $_ or die for 1 .. 60_000'; echo made
      until [ -e go ]; do sleep 0.05; done
      fallocate -l 200M big; sleep 1.5; rm big`
    await using task = launch(launcher, { command: sh(script), disk_bytes: 64 * KIB * KIB })
    await task.printed('made\n')
    const { launcher_pid } = await task.started()
    // A count of all files takes ticks, and after it the launcher rests.
    const madeTicks = ticksOf(launcher_pid)
    await until(
      () => ticksOf(launcher_pid),
      (ticks) => ticks > madeTicks + 3,
    )
    const ticksNow = async () => {
      const before = ticksOf(launcher_pid)
      await Bun.sleep(50)
      return ticksOf(launcher_pid) - before
    }
    await until(ticksNow, (ticks) => ticks === 0)
    writeFileSync(join(task.dir, 'workspace/go'), '')
    expect(await task.outcome()).toMatchObject(KILLED)
  })
})

const whyNoGroups = missingCgroups === undefined ? '' : ` (skipped: ${missingCgroups})`

describe.skipIf(missingCgroups !== undefined)(`removed files${whyNoGroups}`, () => {
  const { mmap, read, exit } = { x64: { mmap: 9, read: 0, exit: 60 }, arm64: { mmap: 222, read: 63, exit: 93 } }[
    process.arch as 'x64' | 'arm64'
  ]

  /** Runs a command in an empty workspace, with a control group. */
  async function writeIn(program: string, script: string, options: { wall_time_ms?: number } = {}) {
    await using groups = testCgroups()
    const make = 'mkdir ../task/workspace; cd ../task/workspace; ulimit -S -n $(ulimit -H -n); exec "$@"'
    const flag = program.endsWith('perl') ? '-e' : '-c'
    const command: [string, ...string[]] = ['/bin/sh', '-c', make, 'sh', program, flag, script]
    return await run(shippedLauncher, {
      command,
      cgroup: groups.tasks.forTask('task-1')!,
      disk_bytes: LIMIT,
      ...options,
    })
  }

  test('count while a process has them open', async () => {
    expect(
      await writeIn('/bin/sh', 'exec 3> big; rm big; head -c 2000000 /dev/zero >&3; exec sleep 600'),
    ).toMatchObject(KILLED)
  })

  rootTest('count while a process has them mapped', async () => {
    const script = `
      open my $file, "+>", "big"; truncate $file, 1 << 22;
      my $address = syscall(${mmap}, 0, 1 << 22, 3, 1, fileno $file, 0);
      unlink "big"; close $file;
      open my $zero, "<", "/dev/zero"; syscall(${read}, fileno $zero, $address, 2_000_000); sleep 600`
    expect(await writeIn('/usr/bin/perl', script)).toMatchObject(KILLED)
  })

  test.skipIf(!existsSync('/usr/bin/python3'))('count while a thread outlives the main one with them', async () => {
    const script = [
      'import ctypes, os, threading, time',
      'file = os.open("big", os.O_CREAT | os.O_WRONLY); os.unlink("big")',
      'threading.Thread(target=lambda: (time.sleep(0.1), os.write(file, bytes(2000000)), time.sleep(600))).start()',
      `ctypes.CDLL(None).syscall(${exit}, 0)`,
    ].join('\n')
    expect(await writeIn('/usr/bin/python3', script)).toMatchObject(KILLED)
  })

  test('do not keep the launcher from its deadlines, however many processes have them open', async () => {
    const script = `
      for (1 .. 1024) { open my $file, ">", "some" or die $!; push @files, $file; unlink "some" }
      use POSIX; for (1 .. 18_000) { defined POSIX::dup(fileno $files[-1]) or last }
      for (1 .. 60) { fork or do { sleep 600; exit } }
      $| = 1; print "ready"; sleep 600`
    const ended = await writeIn('/usr/bin/perl', script, { wall_time_ms: 4000 })
    expect([ended.stdout, ended.reason]).toEqual(['ready', 'wall_time'])
    expect(ended.duration_ms).toBeLessThan(5000)
  })
})
