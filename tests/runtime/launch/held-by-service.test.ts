/**
 * Goal: a launch that a service prepared runs once if it is started and never if not, whatever ends in between. Method: a
 * service with a real fork server; the fork server, the held launcher or the service is killed after the preparation.
 */
import { expect, test } from 'bun:test'
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { installLauncher } from '../../../runtime/launch/embedded.ts'
import { MAX_HELD } from '../../../runtime/launch/fork-server.ts'
import { isLauncherAlive, readRecord } from '../../../runtime/launch/launcher-files.ts'
import type { LaunchPlan } from '../../../runtime/launch/plan.ts'
import { tryLock } from '../../../shared/files/directory-lock.ts'
import { LauncherService } from '../../support/launcher-service.ts'
import { sh, taskEnv } from '../../support/launchers.ts'
import { childrenOf, gone, stopProcess } from '../../support/task-processes.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

const MANY = MAX_HELD + 12

const RUNS = sh('echo ran >> ran')

const hasReserved = (dir: string): Promise<boolean> =>
  until(
    () => existsSync(join(dir, 'outcome.new')),
    (isThere) => isThere,
  )

function prepared(our: LauncherService, id = 'task-1') {
  const plan = our.planOf(id, RUNS)
  return { plan, dir: plan.task_dir, launch: our.host.prepare(plan, taskEnv) }
}

const runsOf = (dir: string): string => (existsSync(join(dir, 'ran')) ? readFileSync(join(dir, 'ran'), 'utf8') : '')

test('a prepared launch runs when it is started', async () => {
  await using our = new LauncherService()
  const { plan, dir, launch } = prepared(our)
  await hasReserved(dir)
  expect([runsOf(dir), our.events]).toEqual(['', []])
  expect(await our.startPrepared(plan, launch).gone).toEqual({ exitCode: 0 })
  expect(runsOf(dir)).toBe('ran\n')
})

test('a discarded launch is gone when that is said, as often as it is asked', async () => {
  await using our = new LauncherService()
  const { dir, launch } = prepared(our)
  const asked = performance.now()
  await Promise.all([launch.discard(), launch.discard()])
  // It waits for a second, in which a busy machine may not even start the fork server.
  if (performance.now() - asked > 900) await our.said('gone', 'task-1')
  expect([readdirSync(dir).toSorted(), isLauncherAlive(dir)]).toEqual([['stderr.log', 'stdout.log'], false])
  expect(await our.start('task-1', RUNS).gone).toEqual({ exitCode: 0 })
  expect(runsOf(dir)).toBe('ran\n')
})

test('a discarded launch is given up when the fork server does not answer, and never runs', async () => {
  await using our = new LauncherService()
  await our.start('warm-up', ['/bin/true']).gone
  const forkServer = our.forkServerPid!
  await stopProcess(forkServer)
  const { dir, launch } = prepared(our)
  await launch.discard()
  process.kill(forkServer, 'SIGCONT')
  await our.said('gone', 'task-1')
  expect([runsOf(dir), readRecord(dir)]).toEqual(['', {}])
})

test.each(['ready', 'on its way'])('the next fork server starts what the killed one held, once: %s', async (state) => {
  await using our = new LauncherService()
  await our.start('warm-up', ['/bin/true']).gone
  const forkServer = our.forkServerPid!
  if (state === 'on its way') await stopProcess(forkServer)
  const [first, second] = [prepared(our, 'first'), prepared(our, 'second')]
  if (state === 'ready') await Promise.all([hasReserved(first.dir), hasReserved(second.dir)])
  process.kill(forkServer, 'SIGKILL')
  await until(
    () => our.log.texts.length,
    (count) => count > 0,
  )
  await second.launch.discard()
  const started = our.startPrepared(first.plan, first.launch)
  await until(
    () => our.lookAround(),
    () => readRecord(first.dir).outcome !== undefined,
  )
  our.lookAround()
  expect(await started.gone).toEqual({ exitCode: 0 })
  expect([runsOf(first.dir), runsOf(second.dir)]).toEqual(['ran\n', ''])
})

test('another launcher takes the place of a held one that was killed', async () => {
  await using our = new LauncherService()
  const { plan, dir, launch } = prepared(our)
  await hasReserved(dir)
  const [launcher] = childrenOf(our.forkServerPid!)
  process.kill(launcher!, 'SIGKILL')
  await gone(launcher!)
  expect(await our.startPrepared(plan, launch).gone).toEqual({ exitCode: 0 })
  expect(runsOf(dir)).toBe('ran\n')
})

test('of many launches MAX_HELD are set up before they are started, and all run', async () => {
  await using our = new LauncherService()
  const all = Array.from({ length: MANY }, (_, i) => prepared(our, `task-${i}`))
  await Promise.all(all.slice(0, MAX_HELD).map(({ dir }) => hasReserved(dir)))
  expect(all.filter(({ dir }) => existsSync(join(dir, 'outcome.new'))).length).toBe(MAX_HELD)
  const ends = all.map(({ plan, launch }) => our.startPrepared(plan, launch).gone)
  expect(await Promise.all(ends)).toEqual(all.map(() => ({ exitCode: 0 })))
  expect(all.map(({ dir }) => runsOf(dir))).toEqual(all.map(() => 'ran\n'))
})

test('nothing is started of what was prepared when the service closes', async () => {
  await using our = new LauncherService()
  const { plan, dir, launch } = prepared(our)
  await hasReserved(dir)
  await our.host.close()
  our.startPrepared(plan, launch)
  await until(
    () => isLauncherAlive(dir),
    (alive) => !alive,
  )
  expect([runsOf(dir), readRecord(dir)]).toEqual(['', {}])
})

/** Prepares a launch, and is killed once the launcher is at work. */
const DYING = `
  import { existsSync, openSync } from 'node:fs'
  import { createLog, stdoutLines } from './shared/logs/log.ts'
  import { openFifo } from './runtime/launch/fifo.ts'
  import { ForkServer } from './runtime/launch/fork-server.ts'
  import { tryLock } from './shared/files/directory-lock.ts'
  const [program, dir, plan] = process.argv.slice(1)
  const [complaintsFd, directoryLockFd] = ['launchers.log', 'lock'].map((name) => openSync(dir + '/' + name, 'a'))
  tryLock(directoryLockFd)
  const surroundings = { program, notifyFd: openFifo(dir + '/notify'), complaintsFd, directoryLockFd, env: process.env }
  const host = new ForkServer(surroundings, createLog(stdoutLines(), 'info', 'test'))
  host.prepare(JSON.parse(plan), ${JSON.stringify(taskEnv)})
  while (!existsSync(JSON.parse(plan).task_dir + '/outcome.new')) await Bun.sleep(1)
  process.kill(process.pid, 'SIGKILL')`

test('what a killed service had prepared never runs, and is gone before another service can begin', async () => {
  using dir = tempDir()
  const task_dir = join(dir.path, 'task-1')
  mkdirSync(task_dir)
  const limits = { wall_time_ms: 60_000, grace_ms: 10_000, max_output_bytes: 1e9 }
  const plan: LaunchPlan = { task_id: 'task-1', task_dir, workdir: task_dir, command: RUNS, ...limits }
  const argv = [process.execPath, '-e', DYING, installLauncher(dir.path), dir.path, JSON.stringify(plan)]
  const dying = Bun.spawn(argv, { cwd: join(import.meta.dir, '../../..'), stdio: ['ignore', 'inherit', 'inherit'] })
  expect(await dying.exited).toBe(137)
  const lock = openSync(join(dir.path, 'lock'), 'a')
  await until(
    () => tryLock(lock),
    (isOurs) => isOurs,
  )
  closeSync(lock)
  expect([isLauncherAlive(task_dir), readdirSync(task_dir).toSorted()]).toEqual([false, ['stderr.log', 'stdout.log']])
})
