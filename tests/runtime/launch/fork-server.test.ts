/**
 * Goal: whatever happens to a fork server, each launcher that a service asked for runs once, harms nobody by its birth, and is
 * heard of. Method: real fork servers with a service, stopped, killed and starved; those without one: bare-fork-server.long.test.ts.
 */
import { expect, test } from 'bun:test'
import { closeSync, openSync, readdirSync, readFileSync, readSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isLauncherAlive, readRecord, requestKill } from '../../../runtime/launch/launcher-files.ts'
import { markedProcesses } from '../../../shared/process/processes.ts'
import { LauncherService } from '../../support/launcher-service.ts'
import { describeLaunchers, type LauncherVariant, sh, taskEnv } from '../../support/launchers.ts'
import { childrenOf, gone, linkOf, stopProcess } from '../../support/task-processes.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

/** The exit code of a launcher whose task has ended, and that could not write down how (outcome.h). */
const EXIT_OUTCOME_LOST = 123

/** Whether `text` is in what a process may write of its memory. */
function memoryHolds(pid: number, text: string): boolean {
  const memory = openSync(`/proc/${pid}/mem`, 'r')
  const ranges = readFileSync(`/proc/${pid}/maps`, 'utf8').matchAll(/^([0-9a-f]+)-([0-9a-f]+) rw/gm)
  const holds = [...ranges].some(([, from, to]) => {
    const [begin, end] = [Number.parseInt(from!, 16), Number.parseInt(to!, 16)]
    if (end - begin > MAX_RANGE_BYTES) return false // of a checker: bits about the rest
    const bytes = Buffer.alloc(end - begin)
    return bytes.subarray(0, readSync(memory, bytes, 0, bytes.length, begin)).includes(text)
  })
  closeSync(memory)
  return holds
}
const MAX_RANGE_BYTES = 2 ** 27

describeLaunchers('the launchers of a fork server', cases, { isPortableIncluded: false })

function cases(variant: LauncherVariant) {
  const service = () => new LauncherService({ variant })

  test('give their tasks the environment that was asked for, a session, and three descriptors', async () => {
    await using our = service()
    const script = 'env; echo; for fd in /proc/$$/fd/*; do readlink $fd; done; cat /proc/$PPID/stat'
    const task = our.start('task-1', sh(script), { PATH: '/usr/bin:/bin', B: '2', TASKMILL_TASK: 's:task-1' })
    await task.gone
    const [environment, rest] = readFileSync(join(task.dir, 'stdout.log'), 'utf8').split('\n\n') as [string, string]
    const own = environment.split('\n').filter((line) => !/^(PWD|_|SHLVL|OLDPWD)=/.test(line))
    expect(own.toSorted()).toEqual(['B=2', 'PATH=/usr/bin:/bin', 'TASKMILL_TASK=s:task-1'])
    const [stdin, stdout, stderr, ...more] = rest.trim().split('\n')
    expect([stdin, stdout, stderr]).toEqual(['/dev/null', join(task.dir, 'stdout.log'), join(task.dir, 'stderr.log')])
    // A shell may have its script open; nothing of ours is.
    expect(more.join('\n')).not.toMatch(/socket:|signalfd|notify|launchers\.log|lock$/m)
    const { launcher_pid } = readRecord(task.dir).process!
    const stat = more.at(-1)!
    const [, , group, session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    expect([group, session]).toEqual([String(launcher_pid), String(launcher_pid)])
  })

  test('keep no descriptor of the fork server, and show whose they are', async () => {
    await using our = service()
    const env = { ...taskEnv, TASKMILL_TASK: 'mark-of:task-1' }
    const task = our.start('task-1', sh('exec sleep 600'), env)
    const { launcher_pid, pid } = await our.said('started', 'task-1')
    const fds = readdirSync(`/proc/${launcher_pid}/fd`).map((fd) => linkOf(`/proc/${launcher_pid}/fd/${fd}`))
    expect(fds).toContain(task.dir)
    expect(fds).not.toContain(join(our.path, 'lock'))
    expect(fds.filter((name) => name.startsWith('socket:'))).toEqual([])
    expect(fds.filter((name) => name.includes('signalfd'))).toHaveLength(1)
    const [program, ...shown] = readFileSync(`/proc/${launcher_pid}/cmdline`, 'utf8').split('\0')
    expect(program).toContain('launcher')
    expect(shown.slice(0, 4)).toEqual(['--task-id', 'task-1', '--task-dir', task.dir])
    // The task shows its own once it is through with the exec of the shell's.
    await until(() => markedProcesses('TASKMILL_TASK=mark-of:task-1\0').toSorted(), [launcher_pid, pid].toSorted())
    expect(readFileSync(`/proc/${our.forkServerPid}/cmdline`, 'utf8')).toContain('\0--fork-server\0')
  })

  test('have no room for a longer mark, nor for longer arguments, and run all the same', async () => {
    await using our = service()
    const env = { ...taskEnv, TASKMILL_TASK: 'x'.repeat(5_000) }
    const plan = { ...our.planOf('task-1', sh('exit 4')), workdir: `${our.path}${'/.'.repeat(1_000)}` }
    expect(await our.startPlan(plan, env).gone).toEqual({ exitCode: 4 })
    expect(our.complaints()).toBe('')
  })

  test.each([125, 137])('take a task once that removes its record and exits with %i', async (code) => {
    await using our = service()
    const task = our.start('task-1', sh(`echo ran >> ran; rm started; exit ${code}`))
    expect(await task.gone).toEqual({ exitCode: EXIT_OUTCOME_LOST })
    expect(readFileSync(join(task.dir, 'ran'), 'utf8')).toBe('ran\n')
  })

  test('have no secret of another task, though that was longer, and their fork server neither', async () => {
    await using our = service()
    const secret = 'secret-of-first-Zm9vYmFy'
    const env = { ...taskEnv, LONG: 'x'.repeat(20_000), SECRET: secret, MORE: 'y'.repeat(10_000) }
    const wait = sh('until test -e go; do sleep 0.01; done')
    const [first, second] = [our.start('first', wait, env), our.start('second', wait)]
    const [{ launcher_pid: ofFirst }, { launcher_pid: ofSecond }] = await Promise.all([
      our.said('started', 'first'),
      our.said('started', 'second'),
    ])
    const holders = [our.forkServerPid!, ofFirst, ofSecond].filter((pid) => memoryHolds(pid, secret))
    expect(holders).toEqual([ofFirst])
    for (const { dir } of [first, second]) writeFileSync(join(dir, 'go'), '')
    await Promise.all([first.gone, second.gone])
  })

  test(`leave nothing behind, were they ever so many`, async () => {
    await using our = service()
    const count = variant.command[0]!.includes('checked') ? 100 : 300
    await our.start('first', ['/bin/true']).gone
    const pid = our.forkServerPid
    const fdsOf = (process: number) => readdirSync(`/proc/${process}/fd`).length
    const before = fdsOf(pid!)
    for (let i = 0; i < count; ) {
      const some = Array.from({ length: 50 }, () => our.start(`task-${i++}`, ['/bin/true']).gone)
      expect(new Set((await Promise.all(some)).map(({ exitCode }) => exitCode))).toEqual(new Set([0]))
    }
    expect([childrenOf(pid!), fdsOf(pid!), our.forkServerPid]).toEqual([[], before, pid])
    expect(our.log.texts).toEqual([])
  }, 60_000)
}

describeLaunchers(
  'a fork server',
  (variant) => {
    const service = () => new LauncherService({ variant })

    test('that is killed harms no task, and another takes its place', async () => {
      await using our = service()
      const [first, second] = [1, 2].map((n) =>
        our.start(`task-${n}`, sh('while [ ! -e go ]; do sleep 0.01; done; exit 5')),
      )
      for (const id of ['task-1', 'task-2']) await our.said('started', id)
      const pid = our.forkServerPid
      process.kill(pid!, 'SIGKILL')
      await gone(pid!)
      const third = our.start('task-3', sh('exit 6'))
      expect(await third.gone).toEqual({ exitCode: 6 })
      expect(our.forkServerPid).not.toBe(pid)
      expect([isLauncherAlive(first!.dir), isLauncherAlive(second!.dir)]).toEqual([true, true])
      expect(requestKill(second!.dir)).toBe(true)
      writeFileSync(join(first!.dir, 'go'), '')
      await Promise.all([our.said('ended', 'task-1'), our.said('ended', 'task-2')])
      expect(readRecord(first!.dir).outcome!.ending).toEqual({ how: 'exited', exit_code: 5 })
      expect(readRecord(second!.dir).outcome!.reason).toBe('kill')
      expect(our.log.lines()).toMatchObject([{ level: 'warn', exit_code: 137 }])
    })

    test('that is killed before it has read anything has its requests read by another, once', async () => {
      await using our = service()
      await our.start('warm-up', ['/bin/true']).gone
      const pid = our.forkServerPid
      await stopProcess(pid!)
      // More than the pipe holds: the rest is with us still.
      const large = Array.from({ length: 10 }, () => 'x'.repeat(5_000))
      const ids = Array.from({ length: 20 }, (_, i) => `task-${i}`)
      const tasks = ids.map((id) => our.start(id, [...sh('echo ran >> ran; exit 7'), ...large]))
      process.kill(pid!, 'SIGKILL')
      expect(await Promise.all(tasks.map((task) => task.gone))).toEqual(ids.map(() => ({ exitCode: 7 })))
      expect(tasks.map(({ dir }) => readFileSync(join(dir, 'ran'), 'utf8'))).toEqual(ids.map(() => 'ran\n'))
    })

    test('that does not read keeps nobody waiting, and loses nothing', async () => {
      await using our = service()
      await our.start('warm-up', ['/bin/true']).gone
      const pid = our.forkServerPid
      await stopProcess(pid!)
      // Ten times what the pipe holds.
      const large = Array.from({ length: 20 }, () => 'x'.repeat(5_000)) as [string, ...string[]]
      const ids = Array.from({ length: 20 }, (_, i) => `task-${i}`)
      const tasks = ids.map((id) => our.start(id, ['/bin/sh', '-c', 'exit $#', ...large]))
      expect(tasks.some(({ dir }) => isLauncherAlive(dir))).toBe(false)
      process.kill(pid!, 'SIGCONT')
      expect(await Promise.all(tasks.map((task) => task.gone))).toEqual(ids.map(() => ({ exitCode: 19 })))
    })

    test('that speaks of another launch of a task is not heard for this one', async () => {
      await using our = service()
      await our.start('warm-up', ['/bin/true']).gone
      const task = our.start('task-1', sh('exec sleep 600'))
      const { launcher_pid } = await our.said('started', 'task-1')
      for (const launch of [0, 1]) {
        our.hear({ event: 'gone', task_id: 'task-1', launch, exit_code: 125, is_killed: false })
        our.hear({ event: 'gone', task_id: 'task-2', launch, exit_code: 125, is_killed: false })
      }
      process.kill(launcher_pid, 'SIGKILL')
      expect(await task.gone).toEqual({ exitCode: 137 })
    })

    test('of which a launcher is left that is killed: the end of that is seen by looking', async () => {
      await using our = service()
      const task = our.start('task-1', sh('exec sleep 600'))
      const { launcher_pid } = await our.said('started', 'task-1')
      const pid = our.forkServerPid
      process.kill(pid!, 'SIGKILL')
      await until(() => our.log.texts.length, 1)
      our.lookAround()
      expect(isLauncherAlive(task.dir)).toBe(true)
      process.kill(launcher_pid, 'SIGKILL')
      await gone(launcher_pid)
      our.lookAround()
      expect(await task.gone).toEqual({})
    })

    test('is not ended by signals, but by the end of its service', async () => {
      await using our = service()
      await our.start('task-1', ['/bin/true']).gone
      const pid = our.forkServerPid
      for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGPIPE'] as const) {
        process.kill(pid!, signal)
      }
      expect(await our.start('task-2', sh('exit 8')).gone).toEqual({ exitCode: 8 })
      expect(our.forkServerPid).toBe(pid)
      await our.host.close()
      await gone(pid!)
    })
  },
  { isPortableIncluded: false },
)

test('a fork server that ends each time is tried a few times, then the task is told so', async () => {
  using dir = tempDir()
  const program = join(dir.path, 'ends-at-once')
  writeFileSync(program, '#!/bin/sh\necho so >&2\nexit 9\n', { mode: 0o700 })
  await using our = new LauncherService({ program })
  const { gone } = our.start('task-1', ['/bin/true'])
  expect((await gone).error).toMatchObject({
    code: 'launch_failed',
    message: expect.stringContaining('each of 3 times'),
  })
  expect(our.complaints()).toBe('so\n'.repeat(3))
  expect(our.log.lines().map(({ exit_code }) => exit_code)).toEqual([9, 9, 9])
})
