/**
 * Goal: lines tell the service when a program runs and when its outcome is there, and nothing about the pipe is a trouble
 * for the task. Method: a real FIFO, read by the test, by nobody, or full.
 */
import { expect, test } from 'bun:test'
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { drain, makeFifo, openBothEnds, openWriteEnd } from '../../support/fifo.ts'
import { compiledOnly, describeLaunchers, type LaunchOptions, launch, run, sh } from '../../support/launchers.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

/** The pipe of a service, open at both ends. */
function notifyPipe() {
  const dir = tempDir()
  const path = join(dir.path, 'notify')
  makeFifo(path)
  const fd = openBothEnds(path)
  const options: Partial<LaunchOptions> = { inherited: [fd], descriptors: { notify_fd: 3 } }
  return {
    path,
    fd,
    options,
    [Symbol.dispose]() {
      closeSync(fd)
      dir[Symbol.dispose]()
    },
  }
}

describeLaunchers('the lines to the service', (launcher) => {
  test('tell when the program runs, and when its outcome is there', async () => {
    using pipe = notifyPipe()
    const command = sh('while [ ! -e go ]; do sleep 0.01; done; exit 3')
    await using task = launch(launcher, { command, task_id: 'a-b_c.9', ...pipe.options })
    const { launcher_pid, pid, pgid, start_time, started_ms } = await task.started()
    const line = await until(
      () => drain(pipe.fd),
      (text) => text !== '',
    )
    expect(line).toBe(`started a-b_c.9 ${launcher_pid} ${pid} ${pgid} ${start_time} ${started_ms}\n`)
    openAndClose(join(task.workdir, 'go'))
    const ended = await until(
      () => drain(pipe.fd),
      (text) => text !== '',
    )
    expect(ended).toBe('ended a-b_c.9\n')
    expect(task.file('outcome')).toEndWith('end=1\n')
    await task.outcome()
  })

  test('come once each, in this order; of a task that is over at once the second is enough', async () => {
    using pipe = notifyPipe()
    for (let i = 0; i < (launcher.isPortable ? 5 : 20); i++) {
      await run(launcher, { command: ['/bin/true'], ...pipe.options })
      expect(drain(pipe.fd)).toMatch(/^(started task-1( \d+){5}\n)?ended task-1\n$/)
    }
  })

  test('tell when the wall time is over, while the task still has its grace, once', async () => {
    using pipe = notifyPipe()
    const command = sh('trap "" TERM; while [ ! -e go ]; do sleep 0.01; done; exit 3')
    await using task = launch(launcher, { command, wall_time_ms: 2_000, grace_ms: 60_000, ...pipe.options })
    let said = ''
    await until(
      () => (said += drain(pipe.fd)),
      (text) => text.includes('timeout'),
    )
    expect(said).toMatch(/^started task-1( \d+){5}\ntimeout task-1\n$/)
    openAndClose(join(task.workdir, 'go'))
    expect(await task.outcome()).toMatchObject({ ending: { how: 'exited', exit_code: 3 }, reason: 'wall_time' })
    expect(drain(pipe.fd)).toBe('ended task-1\n')
  })

  test('say nothing of the wall time where something else ends the task', async () => {
    using pipe = notifyPipe()
    await using task = launch(launcher, {
      command: sh('trap "" TERM; echo on; sleep 600'),
      grace_ms: 10,
      ...pipe.options,
    })
    await task.printed('on\n')
    task.launcher.kill('SIGTERM')
    expect(await task.outcome()).toMatchObject({ reason: 'terminated' })
    expect(drain(pipe.fd)).not.toContain('timeout')
  })

  test('do not say started of a program that could not be', async () => {
    using pipe = notifyPipe()
    await run(launcher, { command: ['/no/such/program'], ...pipe.options })
    await run(launcher, { command: ['/bin/true'], workdir: '/no/such/dir', ...pipe.options })
    expect(drain(pipe.fd)).toBe('ended task-1\nended task-1\n')
  })

  test('say what failed where there will be no outcome', async () => {
    using pipe = notifyPipe()
    await using task = launch(launcher, { command: ['true'], task_dir: '/no/such/dir', ...pipe.options })
    expect(await task.exited).toBe(125)
    expect(drain(pipe.fd)).toBe('failed task-1 task_dir 2\n')
  })

  test('are lost without harm when the pipe is full', async () => {
    using pipe = notifyPipe()
    const filler = Buffer.alloc(4_096, 'x')
    expect(() => {
      for (;;) writeSync(pipe.fd, filler)
    }).toThrow('EAGAIN')
    const ended = await run(launcher, { command: sh('exit 3'), ...pipe.options })
    expect(ended.ending).toEqual({ how: 'exited', exit_code: 3 })
  })

  test('are lost without harm when nobody reads them', async () => {
    using dir = tempDir()
    const path = join(dir.path, 'notify')
    makeFifo(path)
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const fd = openWriteEnd(path)
    closeSync(reader)
    const options = { inherited: [fd], descriptors: { notify_fd: 3 } }
    const ended = await run(launcher, { command: sh('exit 3'), ...options })
    closeSync(fd)
    expect(ended.ending).toEqual({ how: 'exited', exit_code: 3 })
  })

  compiledOnly(launcher)('do not wait for a reader, though the pipe was opened to wait', async () => {
    using dir = tempDir()
    const path = join(dir.path, 'notify')
    makeFifo(path)
    const fd = openSync(path, constants.O_RDWR)
    const other = openBothEnds(path)
    expect(() => {
      for (;;) writeSync(other, Buffer.alloc(4_096, 'x'))
    }).toThrow('EAGAIN')
    const ended = await run(launcher, { command: sh('exit 3'), inherited: [fd], descriptors: { notify_fd: 3 } })
    closeSync(fd)
    closeSync(other)
    expect(ended.ending).toEqual({ how: 'exited', exit_code: 3 })
  })
})

const openAndClose = (path: string): void => closeSync(openSync(path, 'w'))
