/**
 * Goal: a control group limits, measures and ends exactly the task, and is gone when it is. Method: real groups of
 * whichever version the machine has, below the one that the tests run in.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { membersOf, writeAttribute } from '../../../runtime/host/cgroup-files.ts'
import type { TaskCgroup } from '../../../runtime/host/task-cgroups.ts'
import { requestKill } from '../../../runtime/launch/launcher-files.ts'
import { PIDFD_OPEN } from '../../../shared/process/pidfd.ts'
import { missingCgroups, testCgroups } from '../../support/cgroups.ts'
import { withoutCalls } from '../../support/hosts.ts'
import { describeLaunchers, launch, run, sh, shippedLauncher } from '../../support/launchers.ts'
import { tempDir } from '../../support/temp.ts'
import { missingTrace } from '../../support/trace.ts'
import { isAlive, until } from '../../support/until.ts'

const { errno, signals } = constants

const MIB = 1024 * 1024

const WITHOUT_PORTABLE = { isPortableIncluded: false }

const pathsOf = (group: TaskCgroup): string[] =>
  group.version === 2 ? [group.path] : [group.pids_path, group.memory_path].filter((path) => path !== undefined)

/** Touches as much memory as that, then goes on. */
const eat = (mib: number, then = '') => `my $x = "a" x (${mib} * 1048576); ${then}`
const perl = (script: string): [string, ...string[]] => ['/usr/bin/perl', '-e', script]

const why = missingCgroups === undefined ? '' : ` (skipped: ${missingCgroups})`

describe.skipIf(missingCgroups !== undefined)(`with control groups${why}`, () => {
  describeLaunchers(
    'a task',
    (launcher) => {
      test('is in its group before its program is, and the launcher never', async () => {
        await using groups = testCgroups()
        const cgroup = groups.tasks.forTask('task-1')!
        await using task = launch(launcher, { command: sh('cat /proc/self/cgroup; echo ready; sleep 600'), cgroup })
        const seen = await task.printed('ready\n')
        const { launcher_pid, pid } = await task.started()
        const launchers = readFileSync(`/proc/${launcher_pid}/cgroup`, 'utf8')
        for (const path of pathsOf(cgroup)) {
          expect(seen).toContain('/service.task-1\n')
          expect(membersOf(path)).toContain(pid)
        }
        expect(launchers).not.toContain('service.task-1')
      })

      const HANDLED =
        "trap 'wait; exit 3' TERM; (trap 'echo told; exit' TERM; echo ready; while :; do sleep 0.01; done) & wait"

      test.skipIf(missingTrace !== undefined)(
        'signals its members by pidfds, once they are on the list again',
        async () => {
          await using groups = testCgroups()
          using dir = tempDir()
          const cgroup = groups.tasks.forTask('task-1')!
          const log = join(dir.path, 'calls')
          const calls = 'trace=kill,pidfd_open,pidfd_send_signal,openat,open'
          const through = ['sh', '-c', 'exec strace "$@" 2> /dev/null', 'sh', '-qq', '-o', log, '-e', calls]
          await using task = launch(launcher, { command: sh(HANDLED), cgroup, through })
          await task.printed('ready\n')
          const { pid } = await task.started()
          requestKill(task.dir)
          expect((await task.outcome()).ending).toEqual({ how: 'exited', exit_code: 3 })
          expect(task.stdout).toContain('told\n')
          const made = readFileSync(log, 'utf8')
          const opened = new RegExp(
            `pidfd_open\\(${pid}, 0\\) += (\\d+)\n[^]*?"cgroup\\.procs"[^]*?pidfd_send_signal\\(\\1, SIGTERM`,
          )
          expect(made).toMatch(opened)
          expect(made).not.toMatch(/^kill\(\d+, SIGTERM\)/m)
        },
      )

      test('signals its members by their pids where there are no pidfds', async () => {
        await using groups = testCgroups()
        const cgroup = groups.tasks.forTask('task-1')!
        const through = withoutCalls([PIDFD_OPEN])
        await using task = launch(launcher, { command: sh(HANDLED), cgroup, through })
        await task.printed('ready\n')
        requestKill(task.dir)
        expect((await task.outcome()).ending).toEqual({ how: 'exited', exit_code: 3 })
        expect(task.stdout).toContain('told\n')
      })

      test('may have as many processes as it was given, itself included', async () => {
        await using groups = testCgroups()
        const cgroup = groups.tasks.forTask('task-1')!
        const alone = await run(launcher, { command: sh('(exit 0) || exit 3'), cgroup, pids_max: 1 })
        expect([alone.ending.how, alone.stderr]).toEqual(['exited', expect.stringContaining('Cannot fork')])
        const together = await run(launcher, {
          command: sh('sleep 0.1 & sleep 0.1 & (exit 0); wait'),
          cgroup,
          pids_max: 4,
        })
        expect([together.ending, together.stderr]).toEqual([{ how: 'exited', exit_code: 0 }, ''])
      })

      test('that takes too much memory is killed, and the outcome says why', async () => {
        await using groups = testCgroups()
        const cgroup = groups.tasks.forTask('task-1')!
        const ended = await run(launcher, { command: perl(eat(200)), cgroup, memory_max: 64 * MIB })
        expect([ended.ending, ended.reason]).toEqual([{ how: 'signaled', signal: signals.SIGKILL }, 'none'])
        expect(ended.oom_kills).toBeGreaterThanOrEqual(1)
        expect(ended.memory_peak_bytes ?? 64 * MIB).toBeGreaterThan(60 * MIB)
        expect(ended.memory_peak_bytes ?? 0).toBeLessThanOrEqual(64 * MIB)
      })

      test('whose child takes too much memory has that in its outcome, too', async () => {
        await using groups = testCgroups()
        const cgroup = groups.tasks.forTask('task-1')!
        const script = `/usr/bin/perl -e '${eat(200)}' || exit 7`
        const ended = await run(launcher, { command: sh(script), cgroup, memory_max: 64 * MIB })
        // Version 2 ends the whole group.
        const isWhole = cgroup.version === 2
        expect(ended.ending).toEqual(
          isWhole ? { how: 'signaled', signal: signals.SIGKILL } : { how: 'exited', exit_code: 7 },
        )
        expect(ended.oom_kills).toBeGreaterThanOrEqual(1)
      })

      test('has its peak of memory measured, without the launcher', async () => {
        await using groups = testCgroups()
        const cgroup = groups.tasks.forTask('task-1')!
        const small = await run(launcher, { command: ['/bin/true'], cgroup })
        expect(small.oom_kills).toBe(0)
        expect(small.memory_peak_bytes ?? 1).toBeLessThan(5 * MIB)
        const large = await run(launcher, { command: perl(eat(50)), cgroup, memory_max: 500 * MIB })
        expect(large.oom_kills).toBe(0)
        expect(large.memory_peak_bytes ?? 50 * MIB).toBeGreaterThanOrEqual(50 * MIB)
        expect(large.memory_peak_bytes ?? 0).toBeLessThan(200 * MIB)
      })

      test('hears TERM in every process, those that left its group and session, too', async () => {
        await using groups = testCgroups()
        const cgroup = groups.tasks.forTask('task-1')!
        const away = `trap "echo heard; : > heard; exit" TERM; echo ready; while :; do sleep 0.02; done`
        const command = sh(`trap : TERM; (setsid sh -c '${away}' &); while [ ! -e heard ]; do sleep 0.02; done; exit 4`)
        await using task = launch(launcher, { command, cgroup })
        await task.printed('ready\n')
        task.launcher.kill('SIGTERM')
        const { ending, reason } = await task.outcome()
        expect([ending, reason, task.stdout]).toEqual([{ how: 'exited', exit_code: 4 }, 'terminated', 'ready\nheard\n'])
      })

      test('is ended with a storm of forks, wherever each process went', async () => {
        await using groups = testCgroups()
        const cgroup = groups.tasks.forTask('task-1')!
        const storm = `use POSIX (); $| = 1; my $end = time + 10;
        for (1 .. 40) { my $child; do { $child = fork() } until defined $child; next if $child; while (time < $end) { POSIX::setsid(); my $pid = fork(); exit if $pid; } exit }
        print "storm\\n"; sleep 600`
        await using task = launch(launcher, { command: perl(storm), cgroup, pids_max: 400, give_up_ms: 20_000 })
        await task.printed('storm\n')
        process.kill((await task.started()).pid, 'SIGKILL')
        const { ending, leftovers_alive } = await task.outcome()
        expect([ending, leftovers_alive]).toEqual([{ how: 'signaled', signal: signals.SIGKILL }, 0])
        for (const path of pathsOf(cgroup)) expect(existsSync(path)).toBe(false)
      })

      test('takes its group along, whether it ran or not', async () => {
        await using groups = testCgroups()
        const cgroup = groups.tasks.forTask('task-1')!
        for (const command of [['/bin/true'], ['/no/such/program'], sh('sleep 600 & exit 1')] as const) {
          await run(launcher, { command: [...command] as [string, ...string[]], cgroup })
          for (const path of pathsOf(cgroup)) expect([command, existsSync(path)]).toEqual([command, false])
        }
      })

      test('makes do with the group of one that is gone, but not of one that lives', async () => {
        await using groups = testCgroups()
        const cgroup = groups.tasks.forTask('task-1')!
        for (const path of pathsOf(cgroup)) mkdirSync(path)
        expect((await run(launcher, { command: ['/bin/true'], cgroup })).ending).toEqual({
          how: 'exited',
          exit_code: 0,
        })
        await using first = launch(launcher, { command: sh('echo ready; exec sleep 600'), cgroup })
        await first.printed('ready\n')
        const second = await run(launcher, { command: ['/bin/true'], cgroup })
        expect(second.ending).toEqual({ how: 'sandbox_setup_failed', step: 'cgroup_create', errno: errno.EBUSY })
        expect(await isAlive((await first.started()).pid)).toBe(true)
      })

      test('is not started where its group cannot be made', async () => {
        const cgroup: TaskCgroup = { version: 2, path: '/no/such/group' }
        const ended = await run(launcher, { command: ['/bin/true'], cgroup })
        expect([ended.ending, ended.code]).toEqual([
          { how: 'sandbox_setup_failed', step: 'cgroup_create', errno: errno.ENOENT },
          125,
        ])
      })

      test('is not started where its limits cannot be set', async () => {
        for (const [limit, step] of [
          [{ memory_max: MIB }, 'cgroup_memory'],
          [{ pids_max: 5 }, 'cgroup_pids'],
        ] as const) {
          // A directory that is no control group has no such files.
          const cgroup: TaskCgroup = { version: 2, path: join('/tmp', `taskmill-no-group-${process.pid}`) }
          const ended = await run(launcher, { command: ['/bin/true'], cgroup, ...limit })
          expect(ended.ending).toEqual({ how: 'sandbox_setup_failed', step, errno: errno.ENOENT })
          expect(existsSync(cgroup.path)).toBe(false)
        }
      })

      test('is not started where it cannot join', async () => {
        const cgroup: TaskCgroup = { version: 1, pids_path: join('/tmp', `taskmill-no-group-${process.pid}`) }
        const ended = await run(launcher, { command: ['/bin/true'], cgroup })
        expect(ended.ending).toEqual({ how: 'sandbox_setup_failed', step: 'cgroup_join', errno: errno.ENOENT })
      })
    },
    WITHOUT_PORTABLE,
  )

  describe('the groups of a service', () => {
    test('are found after a crash, and ended with all that is in them', async () => {
      await using groups = testCgroups('one')
      await using others = testCgroups('another')
      const cgroup = groups.tasks.forTask('a.b')!
      const paths = pathsOf(cgroup)
      for (const path of paths) mkdirSync(path)
      for (const path of pathsOf(others.tasks.forTask('c')!)) mkdirSync(path)
      // One in the group, and one in a group below it.
      const below = join(paths[0]!, 'below')
      mkdirSync(below)
      const strays = [paths[0]!, below].map((group) => {
        const stray = Bun.spawn(['sleep', '600'], { stdio: ['ignore', 'ignore', 'ignore'] })
        writeAttribute(group, 'cgroup.procs', String(stray.pid))
        return stray
      })
      expect([groups.tasks.taskIds(), others.tasks.taskIds()]).toEqual([['a.b'], ['c']])
      expect(await groups.tasks.end('a.b')).toBe(true)
      expect(await Promise.all(strays.map((stray) => stray.exited))).toEqual([137, 137])
      for (const path of paths) expect(existsSync(path)).toBe(false)
      expect([groups.tasks.taskIds(), others.tasks.taskIds()]).toEqual([[], ['c']])
      expect(await groups.tasks.end('a.b')).toBe(true)
    })

    test('of a launcher that was killed are ended, too', async () => {
      await using groups = testCgroups()
      const cgroup = groups.tasks.forTask('task-1')!
      const command = sh('setsid sleep 600 & echo $!; echo ready; wait')
      await using task = launch(shippedLauncher, { command, cgroup })
      const stray = Number((await task.printed('ready\n')).split('\n')[0])
      await task.started()
      task.launcher.kill('SIGKILL')
      await task.exited
      expect(groups.tasks.taskIds()).toEqual(['task-1'])
      expect(await groups.tasks.end('task-1')).toBe(true)
      await until(() => isAlive(stray), false)
    })
  })
})
