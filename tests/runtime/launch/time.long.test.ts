/**
 * Goal: limits end a task: TERM, grace, KILL; the first reason is the one that is told. Method: programs that obey TERM,
 * ignore it, handle it, are stopped, use up their time; the clock is only asked whether enough of it has passed.
 */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { compiledOnly, describeLaunchers, launch, run, sh } from '../../support/launchers.ts'
import { isAlive, until } from '../../support/until.ts'

const { SIGKILL, SIGTERM, SIGXCPU } = constants.signals

/** Long enough for a program that starts, on a machine that stalls for a second or two. */
const SOON_MS = 2_500

describeLaunchers('the wall time', (launcher) => {
  test('ends a task by TERM, and the launcher says 124', async () => {
    const ended = await run(launcher, { command: ['sleep', '600'], wall_time_ms: SOON_MS })
    expect([ended.ending, ended.reason, ended.code]).toEqual([{ how: 'signaled', signal: SIGTERM }, 'wall_time', 124])
    expect(ended.duration_ms).toBeGreaterThanOrEqual(SOON_MS)
    expect(ended.duration_ms).toBeLessThan(10_000)
  })

  test('ends a task that ignores TERM by KILL when its grace is over', async () => {
    const grace_ms = 200
    const script = 'trap "" TERM; echo ready; while :; do sleep 0.05; done'
    const ended = await run(launcher, { command: sh(script), wall_time_ms: SOON_MS, grace_ms })
    expect([ended.ending, ended.reason, ended.code]).toEqual([{ how: 'signaled', signal: SIGKILL }, 'wall_time', 124])
    expect(ended.duration_ms).toBeGreaterThanOrEqual(SOON_MS + grace_ms)
    expect(ended.stdout).toBe('ready\n')
  })

  test('without grace ends a task by KILL at once', async () => {
    const script = 'trap "" TERM; while :; do sleep 0.05; done'
    const ended = await run(launcher, { command: sh(script), wall_time_ms: SOON_MS, grace_ms: 0 })
    expect([ended.ending, ended.reason]).toEqual([{ how: 'signaled', signal: SIGKILL }, 'wall_time'])
  })

  test('lets a task clean up within its grace, and tells its exit code', async () => {
    const script = 'trap "echo cleaning; exit 9" TERM; while :; do sleep 0.05; done'
    const ended = await run(launcher, { command: sh(script), wall_time_ms: SOON_MS })
    expect([ended.ending, ended.reason, ended.code, ended.stdout]).toEqual([
      { how: 'exited', exit_code: 9 },
      'wall_time',
      124,
      'cleaning\n',
    ])
  })

  test('asks every process of the group, not just the first', async () => {
    const script = '(trap "echo child; exit" TERM; while :; do sleep 0.02; done) & trap : TERM; wait; wait; exit 4'
    const ended = await run(launcher, { command: sh(script), wall_time_ms: SOON_MS })
    expect([ended.ending, ended.stdout]).toEqual([{ how: 'exited', exit_code: 4 }, 'child\n'])
  })

  test('wakes a task that was stopped, so that it hears TERM', async () => {
    const ended = await run(launcher, {
      command: sh('trap "echo heard; exit 3" TERM; kill -STOP $$; while :; do sleep 0.02; done'),
      wall_time_ms: SOON_MS,
    })
    expect([ended.ending, ended.reason, ended.stdout]).toEqual([
      { how: 'exited', exit_code: 3 },
      'wall_time',
      'heard\n',
    ])
  })

  test('is no reason for a task that came to its end before', async () => {
    const ended = await run(launcher, { command: sh('exit 6'), wall_time_ms: 10_000 })
    expect([ended.ending, ended.reason]).toEqual([{ how: 'exited', exit_code: 6 }, 'none'])
  })

  test('may be shorter than it takes to start', async () => {
    const ended = await run(launcher, { command: ['sleep', '600'], wall_time_ms: 1, grace_ms: 0 })
    expect([ended.ending.how, ended.reason, ended.code]).toEqual(['signaled', 'wall_time', 124])
  })
})

describeLaunchers('a limit of the process', (launcher) => {
  test('on CPU time ends it by SIGXCPU', async () => {
    const ended = await run(launcher, { command: sh('while :; do :; done'), cpu_time_sec: 1 })
    expect([ended.ending, ended.reason]).toEqual([{ how: 'signaled', signal: SIGXCPU }, 'none'])
    // The kernel counts ticks for the limit and precise times for the usage: 748 ms were seen on a busy machine.
    expect((ended.user_cpu_ms ?? 0) + (ended.system_cpu_ms ?? 0)).toBeGreaterThanOrEqual(500)
  })

  test('on CPU time ends one that ignores SIGXCPU a second later', async () => {
    const ended = await run(launcher, { command: sh('trap "" XCPU; while :; do :; done'), cpu_time_sec: 1 })
    expect(ended.ending).toEqual({ how: 'signaled', signal: SIGKILL })
    expect((ended.user_cpu_ms ?? 0) + (ended.system_cpu_ms ?? 0)).toBeGreaterThanOrEqual(1_000)
  })

  test('on its address space lets allocations fail', async () => {
    const command: [string, ...string[]] = ['/usr/bin/perl', '-e', '$x = "a" x 300_000_000; print "got it\\n"']
    const ended = await run(launcher, { command, address_space_bytes: 200_000_000 })
    expect(ended.ending).not.toEqual({ how: 'exited', exit_code: 0 })
    expect(ended.stdout).toBe('')
    const roomy = await run(launcher, { command, address_space_bytes: 2_000_000_000 })
    expect([roomy.ending, roomy.stdout]).toEqual([{ how: 'exited', exit_code: 0 }, 'got it\n'])
  })
})

describeLaunchers('the output limit', (launcher) => {
  test('ends a task that writes too much to either stream', async () => {
    for (const [stream, script] of [
      ['stdout_bytes', 'trap "" TERM; echo $$; exec yes'],
      ['stderr_bytes', 'trap "" TERM; exec yes >&2'],
    ] as const) {
      const ended = await run(launcher, { command: sh(script), max_output_bytes: 1_000 })
      expect([stream, ended.ending, ended.reason]).toEqual([
        stream,
        { how: 'signaled', signal: SIGKILL },
        'output_limit',
      ])
      expect(ended[stream]).toBeGreaterThan(1_000)
    }
  })

  compiledOnly(launcher)('is looked at soon where little is left of it', async () => {
    const tookMs: number[] = []
    for (let i = 0; i < 50 && !(Math.min(...tookMs) < 150); i++) {
      const ended = await run(launcher, { command: sh('echo too much; exec sleep 600'), max_output_bytes: 1 })
      expect([ended.ending, ended.reason]).toEqual([{ how: 'signaled', signal: SIGKILL }, 'output_limit'])
      tookMs.push(ended.duration_ms)
    }
    // A busy machine may be late, but not each time.
    expect(Math.min(...tookMs)).toBeLessThan(150)
  })

  test('leaves a task alone that writes just as much as it may', async () => {
    // It outlives several looks at its output.
    const ended = await run(launcher, { command: sh('head -c 1000 /dev/zero; sleep 0.7'), max_output_bytes: 1_000 })
    expect([ended.ending, ended.reason, ended.stdout_bytes]).toEqual([{ how: 'exited', exit_code: 0 }, 'none', 1_000])
  })

  test('counts in the grace after TERM, too, and does not become the reason then', async () => {
    const script = `trap "" TERM; sleep ${SOON_MS / 1000 + 1}; exec yes`
    const ended = await run(launcher, {
      command: sh(script),
      wall_time_ms: SOON_MS,
      grace_ms: 60_000,
      max_output_bytes: 1_000,
    })
    expect([ended.ending, ended.reason]).toEqual([{ how: 'signaled', signal: SIGKILL }, 'wall_time'])
  })
})

describeLaunchers('a signal to the launcher', (launcher) => {
  test('ends the task, and is told as what it was', async () => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const) {
      await using task = launch(launcher, {
        command: sh('trap "exit 8" TERM; echo ready; while :; do sleep 0.02; done'),
      })
      await task.printed('ready\n')
      task.launcher.kill(signal)
      const { ending, reason } = await task.outcome()
      expect([signal, ending, reason]).toEqual([signal, { how: 'exited', exit_code: 8 }, 'terminated'])
    }
  })

  test('of any other kind does nothing', async () => {
    await using task = launch(launcher, { command: sh('echo ready; while [ ! -e go ]; do sleep 0.01; done; exit 5') })
    await task.printed('ready\n')
    for (const signal of ['SIGUSR1', 'SIGALRM', 'SIGPIPE', 'SIGTSTP', 'SIGXCPU', 'SIGIO'] as const) {
      task.launcher.kill(signal)
    }
    writeFileSync(join(task.workdir, 'go'), '')
    const { ending, reason } = await task.outcome()
    expect([ending, reason]).toEqual([{ how: 'exited', exit_code: 5 }, 'none'])
  })

  compiledOnly(launcher)('that kills it takes the main process along', async () => {
    await using task = launch(launcher, { command: sh('echo ready; exec sleep 600') })
    await task.printed('ready\n')
    const { pid } = await task.started()
    await task.started()
    task.launcher.kill('SIGKILL')
    await task.exited
    await until(() => isAlive(pid), false)
    expect(() => task.file('outcome')).toThrow()
    expect(task.file('started')).toContain(`pid=${pid}\n`)
  })
})
