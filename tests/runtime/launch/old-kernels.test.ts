/**
 * Goal: the launcher does without what older kernels, some file systems and filters for system calls lack. Method: strace
 * lets the call fail for the launcher alone, as if it were not there.
 */
import { describe, expect, test } from 'bun:test'
import { closeSync, openSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { drain, makeFifo, openBothEnds } from '../../support/fifo.ts'
import { launch, run, sh, shippedLauncher } from '../../support/launchers.ts'
import { linkOf } from '../../support/task-processes.ts'
import { tempDir } from '../../support/temp.ts'
import { missingTrace } from '../../support/trace.ts'

const { errno } = constants

const launcher = shippedLauncher

/** Runs a launcher without a system call, and knows whether it ever asked for that. */
function without(call: string, error: string, ...selection: string[]) {
  const dir = tempDir()
  const log = join(dir.path, 'calls')
  const injection = ['-e', `trace=${call}`, '-e', `inject=${call}:error=${error}`]
  return {
    // Its own remarks on the selection are not the launcher's.
    through: ['sh', '-c', 'exec strace "$@" 2> /dev/null', 'sh', '-qq', '-o', log, ...selection, ...injection],
    hasAsked: () => readFileSync(log, 'utf8').includes('(INJECTED)'),
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  }
}

const why = missingTrace === undefined ? '' : ` (skipped: ${missingTrace})`

describe.skipIf(missingTrace !== undefined)(`a launcher${why}`, () => {
  test('closes stray descriptors without close_range', async () => {
    using kernel = without('close_range', 'ENOSYS')
    using dir = tempDir()
    const stray = openSync('/etc/passwd', 'r')
    const lock = openSync(dir.path, 'r')
    const given = { inherited: [stray, lock, stray], descriptors: { lock_fd: 4 } }
    const command = sh('ls -l /proc/$$/fd; echo ready; sleep 600')
    await using task = launch(launcher, { command, ...given, through: kernel.through })
    closeSync(stray)
    closeSync(lock)
    expect(await task.printed('ready\n')).not.toContain('/etc/passwd')
    const { launcher_pid } = await task.started()
    const fds = readdirSync(`/proc/${launcher_pid}/fd`).map((fd) => linkOf(`/proc/${launcher_pid}/fd/${fd}`))
    expect(fds).not.toContain('/etc/passwd')
    expect(fds).toContain(dir.path)
    expect(kernel.hasAsked()).toBe(true)
  })

  test('takes room for the outcome without fallocate', async () => {
    using kernel = without('fallocate', 'EOPNOTSUPP')
    const command = sh('echo ready; while [ ! -e go ]; do sleep 0.01; done; exit 3')
    await using task = launch(launcher, { command, through: kernel.through })
    await task.printed('ready\n')
    expect(statSync(join(task.dir, 'started')).blocks * 512).toBeGreaterThanOrEqual(4_096)
    expect(task.file('started')).toMatch(/^version=1\n[^\0]*\nstarted_ms=\d+\n$/)
    writeFileSync(join(task.workdir, 'go'), '')
    expect((await task.outcome()).ending).toEqual({ how: 'exited', exit_code: 3 })
    expect(kernel.hasAsked()).toBe(true)
  })

  test('finds its children without a list of them', async () => {
    using kernel = without('openat,open', 'ENOENT', '-P', '/proc/thread-self/children')
    const script = 'setsid sleep 600 & sleep 600 & (sleep 600 &); exit 3'
    const ended = await run(launcher, { command: sh(script), through: kernel.through })
    expect([ended.ending, ended.leftovers_killed, ended.leftovers_alive]).toEqual([
      { how: 'exited', exit_code: 3 },
      3,
      0,
    ])
    expect(kernel.hasAsked()).toBe(true)
  })

  test.each([
    ['prctl', 'EINVAL', 'supervision', errno.EINVAL],
    ['fork,clone,vfork', 'EAGAIN', 'fork', errno.EAGAIN],
  ])('says so when it has no %s', async (call, error, step, errno) => {
    using kernel = without(call, error)
    await using task = launch(launcher, { command: ['true'], through: kernel.through })
    const { ending } = await task.outcome()
    expect([ending, kernel.hasAsked()]).toEqual([{ how: 'launch_failed', step, errno }, true])
  })

  const runWithout = async (kernel: ReturnType<typeof without>) => {
    const dir = tempDir()
    makeFifo(join(dir.path, 'notify'))
    const notify = openBothEnds(join(dir.path, 'notify'))
    const given = { inherited: [notify], descriptors: { notify_fd: 3 } }
    const task = launch(launcher, { command: sh('exit 7'), ...given, through: kernel.through })
    const exitCode = await task.exited
    const said = drain(notify)
    closeSync(notify)
    dir[Symbol.dispose]()
    return { task, exitCode, said }
  }

  test('has only its exit code and the pipe to speak when the record cannot have its name', async () => {
    using kernel = without('rename,renameat,renameat2', 'EIO', '-f')
    const { task: launched, exitCode, said } = await runWithout(kernel)
    await using task = launched
    expect([exitCode, kernel.hasAsked()]).toEqual([125, true])
    expect(said).toBe(`failed task-1 outcome ${errno.EIO}\n`)
    expect(readdirSync(task.dir)).not.toContain('outcome')
  })

  test('has told its service of an outcome that then cannot be synced', async () => {
    using kernel = without('fdatasync', 'EIO')
    const { task: launched, exitCode, said } = await runWithout(kernel)
    await using task = launched
    expect([exitCode, kernel.hasAsked()]).toEqual([7, true])
    expect(said).toEndWith('ended task-1\n')
    expect(task.file('outcome')).toEndWith('end=1\n')
  })
})
