/**
 * Goal: a request to kill ends a task whenever it comes, the first reason is the one that is told, and a task that came
 * to its end by itself keeps its own. Method: the byte goes into the FIFO before, while and after.
 */
import { expect, test } from 'bun:test'
import { closeSync, existsSync, mkdirSync, writeSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { makeFifo, openBothEnds, openWriteEnd } from '../../support/fifo.ts'
import { describeLaunchers, type LaunchedTask, launch, run, sh } from '../../support/launchers.ts'
import { tempDir } from '../../support/temp.ts'

const { SIGKILL, SIGTERM } = constants.signals

function request(task: LaunchedTask, bytes = 'k'): void {
  const fd = openWriteEnd(join(task.dir, 'kill'))
  writeSync(fd, bytes)
  closeSync(fd)
}

describeLaunchers('a request to kill', (launcher) => {
  test('ends a task by TERM', async () => {
    await using task = launch(launcher, { command: sh('echo ready; exec sleep 600') })
    await task.printed('ready\n')
    request(task)
    const { ending, reason } = await task.outcome()
    expect([ending, reason, await task.exited]).toEqual([{ how: 'signaled', signal: SIGTERM }, 'kill', 128 + SIGTERM])
  })

  test('lets it clean up within its grace; its exit code does not matter', async () => {
    await using task = launch(launcher, { command: sh('trap "exit 0" TERM; echo ready; while :; do sleep 0.02; done') })
    await task.printed('ready\n')
    request(task)
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
    request(task)
    const { ending, reason } = await task.outcome()
    expect([ending, reason]).toEqual([{ how: 'signaled', signal: SIGKILL }, 'kill'])
    expect(performance.now() - before).toBeGreaterThanOrEqual(grace_ms)
  })

  test('reaches every process of the task, and stopped ones', async () => {
    const script = 'for i in 1 2 3; do sleep 600 & done; kill -STOP $!; echo ready; wait; echo not reached'
    await using task = launch(launcher, { command: sh(script) })
    await task.printed('ready\n')
    request(task)
    const { ending, reason } = await task.outcome()
    expect([ending, reason, task.stdout]).toEqual([{ how: 'signaled', signal: SIGTERM }, 'kill', 'ready\n'])
  })

  test('twice, or among bytes that mean nothing, is one', async () => {
    await using task = launch(launcher, { command: sh('sleep 600 & trap "echo heard" TERM; echo ready; wait; wait') })
    await task.printed('ready\n')
    request(task, 'x\0y')
    request(task, 'aakk')
    await task.printed('heard\n')
    const { reason } = await task.outcome()
    expect([reason, task.stdout]).toEqual(['kill', 'ready\nheard\n'])
  })

  test('that means nothing does nothing', async () => {
    await using task = launch(launcher, { command: sh('echo ready; sleep 0.3; exit 4') })
    await task.printed('ready\n')
    request(task, 'x'.repeat(1_000))
    const { ending, reason } = await task.outcome()
    expect([ending, reason]).toEqual([{ how: 'exited', exit_code: 4 }, 'none'])
  })

  test('that was there before the launcher keeps the program from being run', async () => {
    using dir = tempDir()
    const task_dir = join(dir.path, 'task')
    mkdirSync(task_dir)
    makeFifo(join(task_dir, 'kill'))
    const fd = openBothEnds(join(task_dir, 'kill'))
    writeSync(fd, 'k')
    const marker = join(dir.path, 'marker')
    const ended = await run(launcher, {
      command: sh(`: > ${marker}`),
      ...{ task_dir, inherited: [fd], descriptors: { kill_fd: 3 } },
    })
    closeSync(fd)
    expect([ended.ending.how, ended.reason, existsSync(marker)]).toEqual(['signaled', 'kill', false])
  })

  test('comes through a FIFO of the service, too', async () => {
    using dir = tempDir()
    const task_dir = join(dir.path, 'task')
    mkdirSync(task_dir)
    makeFifo(join(task_dir, 'kill'))
    const fd = openBothEnds(join(task_dir, 'kill'))
    const command = sh('echo ready; exec sleep 600')
    await using task = launch(launcher, { command, task_dir, inherited: [fd], descriptors: { kill_fd: 3 } })
    closeSync(fd)
    await task.printed('ready\n')
    request(task)
    const { ending, reason } = await task.outcome()
    expect([ending, reason]).toEqual([{ how: 'signaled', signal: SIGTERM }, 'kill'])
  })

  test('finds nobody when the task has ended', async () => {
    await using task = launch(launcher, { command: ['true'] })
    await task.outcome()
    expect(() => request(task)).toThrow('ENOENT')
  })

  test('finds nobody when the launcher was killed', async () => {
    await using task = launch(launcher, { command: sh('echo ready; exec sleep 600') })
    await task.printed('ready\n')
    await task.started()
    task.launcher.kill('SIGKILL')
    await task.exited
    expect(() => request(task)).toThrow('ENXIO')
  })

  test('after the wall time is not the reason', async () => {
    const command = sh('trap "echo heard" TERM; while :; do sleep 0.02; done')
    await using task = launch(launcher, { command, wall_time_ms: 700, grace_ms: 500 })
    await task.printed('heard\n')
    request(task)
    const { ending, reason } = await task.outcome()
    expect([ending, reason]).toEqual([{ how: 'signaled', signal: SIGKILL }, 'wall_time'])
  })

  test('before the wall time is the reason, and so it is before a signal to the launcher', async () => {
    const command = sh('trap "echo heard" TERM; echo ready; while :; do sleep 0.02; done')
    await using task = launch(launcher, { command, wall_time_ms: 1_500, grace_ms: 2_000 })
    await task.printed('ready\n')
    request(task)
    await task.printed('heard\n')
    task.launcher.kill('SIGTERM')
    const { ending, reason } = await task.outcome()
    expect([ending, reason]).toEqual([{ how: 'signaled', signal: SIGKILL }, 'kill'])
  })
})
