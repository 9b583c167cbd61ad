/**
 * Goal: nothing of a task outlives it, however it hides, and the outcome comes when nothing is left. Method: families
 * that fork, leave their group, their session, their parents; storms of forks that end by themselves after ten seconds,
 * or some thousand processes, should we fail.
 */
import { expect, test } from 'bun:test'
import { chmodSync, copyFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { compiledOnly, describeLaunchers, launch, run, sh } from '../../support/launchers.ts'
import { tempDir } from '../../support/temp.ts'
import { isAlive, until } from '../../support/until.ts'

const { SIGKILL, SIGTERM } = constants.signals

/** Pids that the task printed, one a line. */
const pidsIn = (stdout: string): number[] =>
  stdout
    .split('\n')
    .filter((line) => /^\d+$/.test(line))
    .map(Number)

const livingOf = async (pids: readonly number[]): Promise<number[]> => {
  const alive = await Promise.all(pids.map(isAlive))
  return pids.filter((_, i) => alive[i])
}

/** Waits, in a shell, until the process `pid` leads a session of its own. */
const HAS_LEFT = 'left() { while ! grep -q " $1 $1 " /proc/$1/stat; do :; done; }'

/** A command that runs another one as root, out of reach for a launcher that is not. */
function asRoot(dir: string): string {
  const setpriv = join(dir, 'setpriv')
  copyFileSync('/usr/bin/setpriv', setpriv)
  chmodSync(setpriv, 0o4755)
  chmodSync(dir, 0o755)
  return `${setpriv} --reuid 0`
}

/** Only root can make such a command, and only where set-user-id counts. */
const whyNoRoot = ((): string => {
  if (process.getuid?.() !== 0) return ' (skipped: only root can make a program that runs as root)'
  using dir = tempDir()
  const { stdout } = Bun.spawnSync(sh(`${asRoot(dir.path)} id -ru`), { uid: 65_534, stderr: 'ignore' })
  return stdout.toString() === '0\n' ? '' : ' (skipped: the temporary directory is mounted nosuid)'
})()

describeLaunchers('what a task leaves behind', (launcher) => {
  test('is killed as soon as its main process has ended', async () => {
    const ended = await run(launcher, { command: sh('sleep 600 & echo $!; sleep 600 & echo $!; exit 3') })
    expect([ended.ending, ended.reason, ended.leftovers_killed]).toEqual([{ how: 'exited', exit_code: 3 }, 'none', 2])
    expect(pidsIn(ended.stdout)).toHaveLength(2)
    expect(await livingOf(pidsIn(ended.stdout))).toEqual([])
  })

  compiledOnly(launcher)('is killed in a session of its own, too, and when its parent has ended long ago', async () => {
    const script = `${HAS_LEFT}
      setsid sleep 600 & left $!; echo $! >> pids
      (setsid sh -c 'sleep 600 & echo $! >> pids; (sleep 600 & echo $! >> pids)') & wait $!
      (trap "" TERM HUP INT; setsid sh -c '(sleep 600) & echo $$ >> pids; wait' &)
      until [ "$(grep -c . pids)" = 4 ]; do :; done; cat pids`
    const ended = await run(launcher, { command: sh(script) })
    expect(ended.ending).toEqual({ how: 'exited', exit_code: 0 })
    expect(pidsIn(ended.stdout)).toHaveLength(4)
    expect(ended.leftovers_killed).toBe(5)
    expect(await livingOf(pidsIn(ended.stdout))).toEqual([])
  })

  test('is killed when it is stopped', async () => {
    const ended = await run(launcher, { command: sh('sleep 600 & kill -STOP $!; echo $!') })
    expect([ended.leftovers_killed, await livingOf(pidsIn(ended.stdout))]).toEqual([1, []])
  })

  compiledOnly(launcher)('is killed at the end of a limit and on request, however far away it is', async () => {
    const script = `${HAS_LEFT}; setsid sh -c 'trap "" TERM; sleep 600 & echo $!; wait' & left $!; echo $!; sleep 600`
    const ended = await run(launcher, { command: sh(script), wall_time_ms: 700 })
    expect([ended.ending, ended.reason]).toEqual([{ how: 'signaled', signal: SIGTERM }, 'wall_time'])
    expect(await livingOf(pidsIn(ended.stdout))).toEqual([])
  })

  test('counts only while it lives: what had ended already was not killed', async () => {
    const script = `(setsid sh -c 'echo $$ >a' &); (sh -c 'echo $$ >b' &)
      for f in a b; do until test -s $f && ! test -e /proc/$(cat $f); do sleep 0.01; done; done; exit 0`
    const ended = await run(launcher, { command: sh(script) })
    expect(ended.leftovers_killed).toBe(0)
  })

  compiledOnly(launcher)('is killed from a chain as deep as three hundred sessions', async () => {
    const perl = `
      for my $depth (1 .. 300) { my $pid = fork(); die unless defined $pid; if ($pid) { sleep 600; exit } setpgrp(0, 0); }
      $| = 1; print "bottom\\n"; sleep 600`
    await using task = launch(launcher, { command: ['/usr/bin/perl', '-e', perl] })
    await task.printed('bottom\n')
    const { pid } = await task.started()
    process.kill(pid, 'SIGKILL')
    const { ending, leftovers_killed } = await task.outcome()
    expect([ending, leftovers_killed]).toEqual([{ how: 'signaled', signal: SIGKILL }, 300])
  })

  test('is reaped while the task runs: orphans do not pile up as zombies', async () => {
    const script = 'for i in $(seq 100); do (true &); done; echo done; sleep 600'
    await using task = launch(launcher, { command: sh(script) })
    await task.printed('done\n')
    const { launcher_pid, pid } = await task.started()
    const children = async () => await Bun.file(`/proc/${launcher_pid}/task/${launcher_pid}/children`).text()
    await until(children, (list) => list === `${pid} `)
  })

  test.skipIf(whyNoRoot !== '')(`and cannot be killed is given up and counted${whyNoRoot}`, async () => {
    using dir = tempDir()
    const script = `${asRoot(dir.path)} sleep 600 & echo $!; until grep -q sleep /proc/$!/comm; do :; done`
    const ended = await run(launcher, { command: sh(script), uid: 65_534, give_up_ms: 200 })
    const [pid] = pidsIn(ended.stdout)
    try {
      const { ending, leftovers_killed, leftovers_alive } = ended
      expect([ending, leftovers_killed, leftovers_alive]).toEqual([{ how: 'exited', exit_code: 0 }, 0, 1])
      expect(await isAlive(pid!)).toBe(true)
    } finally {
      process.kill(pid!, 'SIGKILL')
    }
  })

  test.skipIf(whyNoRoot !== '')(`with a main process that cannot be killed is abandoned${whyNoRoot}`, async () => {
    using dir = tempDir()
    const ended = await run(launcher, {
      command: sh(`exec ${asRoot(dir.path)} sleep 600`),
      ...{ uid: 65_534, wall_time_ms: 2_500, grace_ms: 50, give_up_ms: 100 },
    })
    try {
      const { ending, reason, leftovers_alive, code } = ended
      expect([ending, reason, leftovers_alive, code]).toEqual([{ how: 'abandoned' }, 'wall_time', 1, 125])
    } finally {
      process.kill(ended.process!.pid, 'SIGKILL')
    }
  })
})

/** A storm that is over after ten seconds or `$max` forks of one line, whatever happens. `leave` runs in every process. */
const storm = (lines: number, leave: string) => `
  use POSIX ();
  $| = 1; my $end = time + 10; my $max = 20_000;
  for my $line (1 .. ${lines}) {
    next if fork();
    for (1 .. $max) { exit if time > $end; ${leave} my $pid = fork(); exit if $pid; }
    exit;
  }
  print "storm\\n"; sleep 600`

describeLaunchers('a storm of forks', (launcher) => {
  for (const [kind, leave] of [
    ['within the group of the task', ''],
    ['where each process leads a group of its own', 'setpgrp(0, 0);'],
    ['where each process leads a session of its own', 'POSIX::setsid();'],
  ] as const) {
    ;(leave === '' ? test : compiledOnly(launcher))(`is ended ${kind}`, async () => {
      await using task = launch(launcher, { command: ['/usr/bin/perl', '-e', storm(20, leave)], give_up_ms: 20_000 })
      await task.printed('storm\n')
      const { pid } = await task.started()
      process.kill(pid, 'SIGKILL')
      const { ending, leftovers_alive } = await task.outcome()
      expect([ending, leftovers_alive]).toEqual([{ how: 'signaled', signal: SIGKILL }, 0])
    })
  }
})
