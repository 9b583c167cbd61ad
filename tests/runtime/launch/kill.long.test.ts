/**
 * Goal: a request to kill ends a task whenever it comes, the first reason is the one that is told, and a task that came
 * to its end by itself keeps its own. Method: the signal of a service comes while the task runs, among others, and after;
 * strace has it come before.
 */
import { expect, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { requestKill } from '../../../runtime/launch/launcher-files.ts'
import { describeLaunchers, type LaunchedTask, launch, sh, shippedLauncher } from '../../support/launchers.ts'
import { missingTrace } from '../../support/trace.ts'

const { SIGKILL, SIGTERM } = constants.signals

/** The program of the portable launcher may run a moment before it is written down who that is. */
async function request(task: LaunchedTask): Promise<void> {
  await task.started()
  expect(requestKill(task.dir)).toBe(true)
}

describeLaunchers('a request to kill', (launcher) => {
  test('ends a task by TERM', async () => {
    await using task = launch(launcher, { command: sh('echo ready; exec sleep 600') })
    await task.printed('ready\n')
    await request(task)
    const { ending, reason } = await task.outcome()
    expect([ending, reason, await task.exited]).toEqual([{ how: 'signaled', signal: SIGTERM }, 'kill', 128 + SIGTERM])
  })

  test('lets it clean up within its grace; its exit code does not matter', async () => {
    await using task = launch(launcher, { command: sh('trap "exit 0" TERM; echo ready; while :; do sleep 0.02; done') })
    await task.printed('ready\n')
    await request(task)
    const { ending, reason } = await task.outcome()
    expect([ending, reason]).toEqual([{ how: 'exited', exit_code: 0 }, 'kill'])
  })

  test('ends one that ignores TERM by KILL when its grace is over', async () => {
    const grace_ms = 200
    await using task = launch(launcher, {
      command: sh('trap "" TERM; echo ready; while :; do sleep 0.02; done'),
      grace_ms,
    })
    await task.printed('ready\n')
    const before = performance.now()
    await request(task)
    const { ending, reason } = await task.outcome()
    expect([ending, reason]).toEqual([{ how: 'signaled', signal: SIGKILL }, 'kill'])
    expect(performance.now() - before).toBeGreaterThanOrEqual(grace_ms)
  })

  test('reaches every process of the task, and stopped ones', async () => {
    const script = 'for i in 1 2 3; do sleep 600 & done; kill -STOP $!; echo ready; wait; echo not reached'
    await using task = launch(launcher, { command: sh(script) })
    await task.printed('ready\n')
    await request(task)
    const { ending, reason } = await task.outcome()
    expect([ending, reason, task.stdout]).toEqual([{ how: 'signaled', signal: SIGTERM }, 'kill', 'ready\n'])
  })

  test('a hundred times is one', async () => {
    await using task = launch(launcher, { command: sh('sleep 600 & trap "echo heard" TERM; echo ready; wait; wait') })
    await task.printed('ready\n')
    await request(task)
    for (let i = 0; i < 100; i++) requestKill(task.dir)
    await task.printed('heard\n')
    const { reason } = await task.outcome()
    expect([reason, task.stdout]).toEqual(['kill', 'ready\nheard\n'])
  })

  test('after the wall time is not the reason', async () => {
    const command = sh('trap "echo heard" TERM; while [ ! -e go ]; do sleep 0.02; done; exit 3')
    await using task = launch(launcher, { command, wall_time_ms: 2_000, grace_ms: 60_000 })
    await task.printed('heard\n')
    await request(task)
    writeFileSync(join(task.workdir, 'go'), '')
    const { ending, reason } = await task.outcome()
    expect([ending, reason]).toEqual([{ how: 'exited', exit_code: 3 }, 'wall_time'])
  })

  test('before the wall time is the reason, and so it is before a signal to the launcher', async () => {
    const command = sh('trap "echo heard" TERM; echo ready; while :; do sleep 0.02; done')
    await using task = launch(launcher, { command, wall_time_ms: 4_500, grace_ms: 5_000 })
    await task.printed('ready\n')
    await request(task)
    await task.printed('heard\n')
    task.launcher.kill('SIGTERM')
    const { ending, reason } = await task.outcome()
    expect([ending, reason]).toEqual([{ how: 'signaled', signal: SIGKILL }, 'kill'])
  })
})

const why = missingTrace === undefined ? '' : ` (skipped: ${missingTrace})`

test.skipIf(missingTrace !== undefined)(
  `a request to kill that comes first keeps the program from being run${why}`,
  async () => {
    // Its last call before it makes a process.
    const through = 'strace -qq -o /dev/null -e trace=prctl -e inject=prctl:signal=SIGUSR2:when=1'.split(' ')
    await using task = launch(shippedLauncher, { command: sh(': > marker'), through })
    const { ending, reason } = await task.outcome()
    expect([ending, reason]).toEqual([{ how: 'signaled', signal: SIGTERM }, 'kill'])
    expect(readdirSync(task.workdir)).toEqual([])
  },
)
