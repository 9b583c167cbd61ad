/**
 * Goal: a task ends in a sandbox as it would outside: same exit code, same signal, same reason. Method: a table of endings,
 * each run in both; what is left behind; kills of the task, of its init and of the launcher.
 */
import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { requestKill } from '../../../runtime/launch/launcher-files.ts'
import { run, sh } from '../../support/launchers.ts'
import { describeSandboxes, launchIn, runIn, USUAL } from '../../support/sandboxes.ts'
import { endProcessesOf, noProcessesOf } from '../../support/task-processes.ts'
import { isAlive, until } from '../../support/until.ts'

const ENDINGS: readonly string[] = [
  ...['exit 0', 'exit 1', 'exit 2', 'exit 77', 'exit 124', 'exit 125', 'exit 126', 'exit 127', 'exit 137', 'exit 255'],
  ...'HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV PIPE TERM XCPU SYS'
    .split(' ')
    .map((name) => `kill -${name} $$`),
  'kill -40 $$',
  'kill -64 $$',
  '/no/such/program',
  'sh -c "kill -SEGV \\$\\$"',
  'sleep 600 & exit 3',
  'trap "exit 9" TERM; kill -TERM $$',
]

/** The words of the launcher for what a process started, without its own pid. */
const ending = ({ ending, reason, code, leftovers_killed }: Awaited<ReturnType<typeof run>>) => ({
  ...{ ending, reason, code, leftovers_killed },
})

describeSandboxes(
  'the end of a task in a sandbox',
  (setting) => {
    test('is what it is outside', async () => {
      for (const script of ENDINGS) {
        const outside = await run(setting.variant, { command: sh(script) })
        const inside = await runIn(setting, { command: sh(script) })
        expect([script, ending(inside)]).toEqual([script, ending(outside)])
      }
    })

    test('is what it is outside when the program is not there', async () => {
      for (const command of [['/no/such'], ['no-such'], ['/etc/passwd'], ['/usr']] as [string][]) {
        const outside = await run(setting.variant, { command })
        expect([command, ending(await runIn(setting, { command }))]).toEqual([command, ending(outside)])
      }
    })

    test('has the pid and the times of the task on the host', async () => {
      await using task = launchIn(setting, { command: sh('echo ready; exec sleep 600') })
      await task.printed('ready\n')
      const { pid, pgid } = await task.started()
      expect(pgid).toBe(pid)
      await until(() => Bun.file(`/proc/${pid}/comm`).text(), 'sleep\n')
      expect(await Bun.file(`/proc/${pid}/status`).text()).toContain(`\nNSpid:\t${pid}\t2\n`)
      process.kill(pid, 'SIGUSR1')
      expect((await task.outcome()).ending).toEqual({ how: 'signaled', signal: 10 })
    })

    test('leaves nothing: children, sessions, daemons, those that ignore TERM', async () => {
      const script = `sleep 600 & setsid sleep 600 & (setsid sh -c 'trap "" TERM; sleep 600' &)
      (trap '' TERM HUP; while :; do sleep 600; done) & exit 6`
      const ended = await runIn(setting, { command: sh(script) })
      expect(ended.ending).toEqual({ how: 'exited', exit_code: 6 })
      expect(ended.leftovers_killed).toBeGreaterThanOrEqual(4)
      expect(ended.leftovers_alive).toBe(0)
    })

    test('leaves nothing of a storm of forks, each in a session of its own', async () => {
      const storm = 'use POSIX; for (1..8) { next if fork; while (1) { setsid; exit if fork } } sleep 0.1; exit 8'
      const ended = await runIn(setting, {
        command: ['perl', '-e', storm.replace('sleep 0.1', 'select undef, undef, undef, 0.1')],
      })
      expect([ended.ending, ended.leftovers_alive]).toEqual([{ how: 'exited', exit_code: 8 }, 0])
    })

    test('is asked for first: everybody hears TERM, once', async () => {
      const hear = `trap 'echo "$0 heard" >> heard; sleep 0.2; exit 0' TERM; echo $0 >> ready; while :; do sleep 0.01; done`
      const script = `sh -c "$1" child & setsid sh -c "$1" session &
      trap 'echo main heard >> heard; wait; cat heard; exit 4' TERM
      until [ "$(wc -l < ready)" = 2 ]; do sleep 0.01; done 2> /dev/null; echo all ready; while :; do sleep 0.01; done`
      await using task = launchIn(setting, { command: [...sh(script), 'sh', hear] })
      await task.printed('all ready\n')
      expect(requestKill(task.dir)).toBe(true)
      const { reason, ending } = await task.outcome()
      expect([reason, ending]).toEqual(['kill', { how: 'exited', exit_code: 4 }])
      expect(task.stdout.trim().split('\n').slice(1).sort()).toEqual(['child heard', 'main heard', 'session heard'])
    })

    test('comes by KILL when the grace is over', async () => {
      const given = { command: sh("trap '' TERM; while :; do sleep 0.01; done"), wall_time_ms: 2_500, grace_ms: 200 }
      const ended = await runIn(setting, given)
      expect([ended.reason, ended.ending]).toEqual(['wall_time', { how: 'signaled', signal: 9 }])
      expect(ended.duration_ms).toBeGreaterThanOrEqual(2_700)
    })

    test('has the usage of all that was waited for, or none at all where that is lost with the init', async () => {
      const usageOf = async (script: string, features = USUAL) => {
        const given = { wall_time_ms: 2_500, grace_ms: 100, sandbox: { features } }
        const ended = await runIn(setting, { command: sh(script), ...given })
        expect(ended.reason).toBe('wall_time')
        const { user_cpu_ms, system_cpu_ms, max_rss_bytes } = ended
        return { signal: ended.ending, user_cpu_ms, system_cpu_ms, max_rss_bytes }
      }
      const signaled = (signal: number) => ({ signal: { how: 'signaled' as const, signal } })
      const known = {
        user_cpu_ms: expect.any(Number),
        system_cpu_ms: expect.any(Number),
        max_rss_bytes: expect.any(Number),
      }
      const lost = { user_cpu_ms: undefined, system_cpu_ms: undefined, max_rss_bytes: undefined }
      const busy = 'while :; do :; done'
      const withoutInit = USUAL.filter((feature) => feature !== 'pid')
      expect(await usageOf(busy)).toEqual({ ...signaled(15), ...known })
      expect(await usageOf(`trap "" TERM; ${busy}`)).toEqual({ ...signaled(9), ...lost })
      const used = await usageOf(`trap "" TERM; ${busy}`, withoutInit)
      expect(used).toEqual({ ...signaled(9), ...known })
      expect(used.max_rss_bytes).toBeGreaterThan(0)
    })

    test('can be requested, also of a stopped one', async () => {
      await using task = launchIn(setting, { command: sh('echo ready; kill -STOP $$; exit 5') })
      await task.printed('ready\n')
      await until(() => requestKill(task.dir))
      const { reason, ending } = await task.outcome()
      expect([reason, ending]).toEqual(['kill', { how: 'signaled', signal: 15 }])
    })

    test('is told when somebody kills its init', async () => {
      await using task = launchIn(setting, { command: sh('echo ready; sleep 600') })
      await task.printed('ready\n')
      const { pid } = await task.started()
      const stat = await Bun.file(`/proc/${pid}/stat`).text()
      process.kill(Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]), 'SIGKILL')
      const { reason, ending } = await task.outcome()
      expect([reason, ending]).toEqual(['none', { how: 'signaled', signal: 9 }])
    })

    test('is not in the hands of the task, which may send its init what it likes', async () => {
      const script = 'for s in HUP INT QUIT USR1 TERM STOP KILL SEGV 40; do kill -$s 1; done; sleep 0.1; exit 7'
      expect((await runIn(setting, { command: sh(script) })).ending).toEqual({ how: 'exited', exit_code: 7 })
    })

    test.each([
      ['with a pid namespace', USUAL],
      ['without', USUAL.filter((feature) => feature !== 'pid')],
    ])('comes with that of its launcher, at whatever instant that is killed: %s', async (_, features) => {
      for (let round = 0; round < 12; round++) {
        await using task = launchIn(setting, {
          command: sh('sleep 600 & setsid sleep 600 & sleep 600'),
          sandbox: { features },
        })
        await using _ = endProcessesOf(task.workdir) // without a pid namespace it is the service that sees to them
        if (round < 10) await Bun.sleep(round / 2)
        else await until(() => existsSync(join(task.dir, 'started')), Boolean)
        const pid = existsSync(join(task.dir, 'started')) ? (await task.started()).pid : undefined
        task.launcher.kill('SIGKILL')
        await task.exited
        if (pid !== undefined) await until(() => isAlive(pid), false)
        if (features === USUAL) await noProcessesOf(task.workdir)
      }
    })

    test('by a debugger that attaches to nobody is none: a task may ask to be traced', async () => {
      const script = 'syscall(101, 0, 0, 0, 0); kill "USR2", $$; exit 3' // PTRACE_TRACEME
      if (process.arch !== 'x64') return
      const ended = await runIn(setting, {
        command: ['perl', '-e', `$SIG{USR2} = sub { print "handled\\n" }; ${script}`],
      })
      expect([ended.stdout, ended.ending]).toEqual(['handled\n', { how: 'exited', exit_code: 3 }])
    })
  },
  { isHostVaried: false },
)
