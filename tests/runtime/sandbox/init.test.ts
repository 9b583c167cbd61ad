/**
 * Goal: a task neither learns anything from the init of its sandbox, nor gets in its way. Method: what /proc tells of process
 * 1; calls that would change it; a signal that claims to come from outside; an init that dies while its namespace cannot end.
 */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { launch, rootTest, sh, shippedLauncher } from '../../support/launchers.ts'
import { describeSandboxes, missingSandbox, runIn, SANDBOX_UID, USUAL } from '../../support/sandboxes.ts'
import { childrenOf } from '../../support/task-processes.ts'
import { until } from '../../support/until.ts'

const { SIGKILL } = constants.signals
const [PTRACE, RT_SIGQUEUEINFO] = process.arch === 'x64' ? [101, 129] : [117, 138]

const perl = (script: string): [string, ...string[]] => ['/usr/bin/perl', '-e', script]

describeSandboxes('the init of a sandbox', (setting) => {
  test('shows its task nothing of the host', async () => {
    const script = 'tr "\\0" "\\n" </proc/1/cmdline | grep .; cat /proc/1/comm; cat /proc/1/environ || echo hidden'
    const ended = await runIn(setting, { command: sh(script) })
    expect(ended.stdout).toBe('taskmill-init\ntaskmill-init\nhidden\n')
  })

  test('keeps its limits and its priority, and a task sets its own', async () => {
    const changes = (pid: string) => [
      `prlimit --pid ${pid} --cpu=60`,
      `renice -n 19 -p ${pid}`,
      `chrt --idle -p 0 ${pid}`,
      `taskset -p 1 ${pid}`,
      `ionice -c 3 -p ${pid}`,
    ]
    const all = [...changes('1'), 'renice -n 19 -g 1', 'renice -n 19 -u $(id -u)', ...changes('$$')]
    const script = `exec 2>/dev/null; ${all.map((change) => `${change} >/dev/null; echo $?`).join('; ')}`
    const { stdout } = await runIn(setting, { command: sh(script) })
    const codes = stdout.trim().split('\n').map(Number)
    expect(codes.map((code) => code === 0)).toEqual([...Array(7).fill(false), ...Array(5).fill(true)])
  })

  test('passes on no signal that a task only says to come from outside', async () => {
    // The init reaps an orphan after the signal, which has the lower number.
    const script = `$| = 1; $SIG{USR1} = sub { print "forged\\n" };
      my $info = pack("l l l l l L", 10, 0, -1, 0, 0, 0) . "\\0" x 128;
      syscall(${RT_SIGQUEUEINFO}, 1, 10, $info) == 0 or print "refused\\n";
      pipe(my $from, my $to);
      if (!fork) { if (!fork) { print $to "$$\\n"; close $to } exit } wait; close $to;
      my $orphan = <$from> + 0; 1 while kill 0, $orphan; print "done\\n"`
    expect((await runIn(setting, { command: perl(script) })).stdout).toBe('done\n')
  })
})

const note = missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`

/** A debugger that does not look at what it attached to: that cannot be reaped once it has ended. */
const negligentDebugger = (pid: number) =>
  Bun.spawn(perl(`$| = 1; syscall(${PTRACE}, 0x4206, ${pid}, 0, 0) == 0 or die $!; print "attached\\n"; sleep 1000`), {
    stdout: 'pipe',
  })

const stateOf = (pid: number): string => /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))![1]!

if (missingSandbox !== undefined) test.skip(`a launcher whose init dies${note}`, () => {})
else
  rootTest('a launcher sleeps while its init, which was killed, waits for its namespace to end', async () => {
    const sandbox = { features: USUAL, masks: ['/root'], uid: SANDBOX_UID }
    await using task = launch(shippedLauncher, { command: sh('sleep 600 & wait'), sandbox })
    const launcher = task.launcher.pid
    const started = await task.started()
    const sleeper = await until(
      () => childrenOf(started.pid)[0],
      (pid) => pid !== undefined,
    )
    const [init] = childrenOf(launcher)
    const tracer = negligentDebugger(sleeper!)
    try {
      const { value } = await tracer.stdout.getReader().read()
      expect(Buffer.from(value!).toString()).toBe('attached\n')
      process.kill(init!, 'SIGKILL')
      // It has closed its files, and the socket with them.
      await until(() => readdirSync(`/proc/${init}/fd`), [])
      await until(() => stateOf(launcher), 'S')
    } finally {
      tracer.kill('SIGKILL')
    }
    expect((await task.outcome()).ending).toEqual({ how: 'signaled', signal: SIGKILL })
  })
