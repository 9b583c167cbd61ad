/**
 * Goal: nothing of a task outlives its launcher, though that was killed and what is left wears no mark and is in no group
 * or session of the task's, and nobody else is harmed. Method: such tasks beside others of the same fork server, whose
 * launchers run or are stopped.
 */
import { expect, test } from 'bun:test'
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readRecord } from '../../../runtime/launch/launcher-files.ts'
import { tryLock } from '../../../shared/files/directory-lock.ts'
import { BareForkServer } from '../../support/fork-servers.ts'
import { LauncherService, type StartedTask } from '../../support/launcher-service.ts'
import { describeLaunchers, type LauncherVariant, sh, shippedLauncher } from '../../support/launchers.ts'
import { childrenOf, endProcessesOf, gone, stopProcess } from '../../support/task-processes.ts'
import { tempDir } from '../../support/temp.ts'
import { missingTrace } from '../../support/trace.ts'
import { isAlive, until } from '../../support/until.ts'

/** A process that nothing leads to but its parents: writes its pid to a file of that name, runs `more`, and sleeps. */
const hidden = (name: string, more = ''): string =>
  `env -i setsid sh -c 'echo $$ > ${name}.new; mv ${name}.new ${name}; ${more} exec sleep 600' &`

/** Processes of a chain, each in a session of its own. */
const CHAIN = 60

/** A child of its own, hidden like itself. */
const nested = (name: string): string =>
  `env -i setsid sh -c "echo \\$\\$ > ${name}.new; mv ${name}.new ${name}; exec sleep 600" &`

/** The pids that processes have written below `dir`. */
const pidsOf = (dir: string, names: readonly string[]) =>
  until(
    () =>
      names.filter((name) => existsSync(join(dir, name))).map((name) => Number(readFileSync(join(dir, name), 'utf8'))),
    (pids) => pids.length === names.length,
  )

describeLaunchers('orphans of a launcher that is killed', cases, { isPortableIncluded: false })

function cases(variant: LauncherVariant) {
  const service = () => new LauncherService({ variant })

  async function killLauncherOf(our: LauncherService, task_id: string, task: StartedTask) {
    const { launcher_pid } = await our.said('started', task_id)
    process.kill(launcher_pid, 'SIGKILL')
    expect(await task.gone).toEqual({ exitCode: 137 })
  }

  test('end, and what they have started, too', async () => {
    await using our = service()
    const names = ['one', 'two', 'three', 'four']
    const script = `(${hidden('one')}) ; ${hidden('two', nested('three'))} (${hidden('four')}) ; exec sleep 600`
    const task = our.start('task-1', sh(script))
    await using _ = endProcessesOf(task.dir)
    const pids = await pidsOf(task.dir, names)
    await killLauncherOf(our, 'task-1', task)
    for (const pid of pids) await gone(pid)
    // Nor are they left as zombies.
    await until(() => childrenOf(our.forkServerPid!), [])
    expect(our.complaints()).toBe('')
  })

  test('are gone, however deep they go, before it is told of the end of their launcher', async () => {
    await using our = service()
    const chain = `use POSIX;
      for (1..${CHAIN}) { if (fork) { sleep 600; exit } setsid; open F, ">>", "pids"; print F "$$\n"; close F }
      sleep 600`
    const task = our.start('task-1', ['/usr/bin/env', '-i', '/usr/bin/perl', '-e', chain])
    await using _ = endProcessesOf(task.dir)
    const pids = await until(
      () => (existsSync(join(task.dir, 'pids')) ? readFileSync(join(task.dir, 'pids'), 'utf8').trim().split('\n') : []),
      (written) => written.length === CHAIN,
    )
    await killLauncherOf(our, 'task-1', task)
    const alive = await Promise.all(pids.map((pid) => isAlive(Number(pid))))
    expect(alive.filter(Boolean)).toEqual([])
  })

  test('end though they fork and leave their parents all the time', async () => {
    await using our = service()
    // All of them hold the lock that the first one has taken.
    const lock = 'open F, ">", "held" or die; flock F, 2'
    // It ends by itself in the end: nobody could catch it otherwise.
    const storm =
      'exit if fork; $end = time + 30; while (time < $end) { setsid; exit if fork; select undef, undef, undef, 0.001 }'
    const task = our.start('task-1', sh(`env -i perl -e 'use POSIX; ${lock}; ${storm}'; echo ready; exec sleep 600`))
    await using _ = endProcessesOf(task.dir)
    await until(
      () => existsSync(join(task.dir, 'stdout.log')) && readFileSync(join(task.dir, 'stdout.log'), 'utf8'),
      'ready\n',
    )
    const held = openSync(join(task.dir, 'held'), 'r')
    expect(tryLock(held)).toBe(false)
    await killLauncherOf(our, 'task-1', task)
    await until(() => tryLock(held), Boolean)
    closeSync(held)
  })

  test('go alone: tasks of others run on, with all that they have', async () => {
    await using our = service()
    const other = our.start('other', sh(`${hidden('one')} until test -e go; do sleep 0.01; done; exit 5`))
    const [ofOther] = await pidsOf(other.dir, ['one'])
    const { launcher_pid } = await our.said('started', 'other')
    const task = our.start('task-1', sh(`(${hidden('one')}) ; exec sleep 600`))
    await using _ = endProcessesOf(task.dir)
    const [orphan] = await pidsOf(task.dir, ['one'])
    await killLauncherOf(our, 'task-1', task)
    await gone(orphan!)
    await until(() => childrenOf(our.forkServerPid!), [launcher_pid])
    expect(await isAlive(ofOther!)).toBe(true)
    writeFileSync(join(other.dir, 'go'), '')
    expect(await other.gone).toEqual({ exitCode: 5 })
    await gone(ofOther!)
  })

  test('do not include a launcher that is stopped', async () => {
    await using our = service()
    const other = our.start('other', sh('until test -e go; do sleep 0.01; done; exit 6'))
    const { launcher_pid } = await our.said('started', 'other')
    await stopProcess(launcher_pid)
    const task = our.start('task-1', sh(`(${hidden('one')}) ; exec sleep 600`))
    await using _ = endProcessesOf(task.dir)
    const [orphan] = await pidsOf(task.dir, ['one'])
    await killLauncherOf(our, 'task-1', task)
    await gone(orphan!)
    expect(await isAlive(launcher_pid)).toBe(true)
    process.kill(launcher_pid, 'SIGCONT')
    writeFileSync(join(other.dir, 'go'), '')
    expect(await other.gone).toEqual({ exitCode: 6 })
  })
}

// A checker for leaks does not go with a tracer.
const whyNoTrace = missingTrace === undefined ? '' : ` (skipped: ${missingTrace})`
test.skipIf(missingTrace !== undefined)(
  `orphans are killed before it is told what left them${whyNoTrace}`,
  async () => {
    using dir = tempDir()
    const calls = join(dir.path, 'calls')
    const through = ['strace', '-qq', '-o', calls, '-e', 'trace=kill,write', '-e', 'signal=none']
    await using forkServer = new BareForkServer(shippedLauncher, { through })
    forkServer.write(forkServer.request('task-1', sh(`(${hidden('one')}) ; exec sleep 600`), 7))
    await using _ = endProcessesOf(forkServer.dirOf('task-1'))
    const [orphan] = await pidsOf(forkServer.dirOf('task-1'), ['one'])
    process.kill(readRecord(forkServer.dirOf('task-1')).process!.launcher_pid, 'SIGKILL')
    expect(await forkServer.hears('gone')).toEqual(['gone task-1 7 137 killed'])
    const lines = await until(
      () => readFileSync(calls, 'utf8').split('\n'),
      (said) => said.some((line) => line.startsWith('write(3, "gone task-1')),
    )
    const kill = lines.findIndex((line) => line.startsWith(`kill(${orphan}, SIGKILL)`))
    expect(kill).toBeGreaterThanOrEqual(0)
    expect(kill).toBeLessThan(lines.findIndex((line) => line.startsWith('write(3, "gone task-1')))
    await gone(orphan!)
  },
)
