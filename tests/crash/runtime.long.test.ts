/**
 * Kills the runtime service at random moments and looks whether it kept its promises.
 *
 * Each round starts it on the directory of the round before, lets a few clients submit, kill, look and delete at random,
 * and ends it with SIGKILL. Tasks outlive their service. After the last start: every acknowledged task that nobody deleted
 * is there and ended as its script says, each ran once and showed its own output, what a client saw as its end stays, no
 * process is left and nothing is reserved.
 */
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskStatusResponse, TaskSummary } from '../../shared/contract/runtime.ts'
import { hasEnded } from '../../shared/contract/runtime-status.ts'
import { markedProcesses } from '../../shared/process/processes.ts'
import { type DisturbedDisk, refusal } from '../support/disturbed-disk.ts'
import { FailingCalls, missingFailingCalls } from '../support/failing-calls.ts'
import { limitOf, type Random, ROUNDS, randomNumbers, SEED } from '../support/random.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { exitOf } from '../support/service.ts'
import { canMount, smallDisk } from '../support/small-disk.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const whyNone = missingFailingCalls === undefined ? '' : ` (skipped: ${missingFailingCalls})`

/** Submissions that are answered in each round, at least. */
const ANSWERS_A_ROUND = 3

/** What clients were told, and what the tasks are. */
class Promises {
  /** The exit code of each acknowledged task that nothing interferes with. */
  readonly exitCodes = new Map<string, number>()
  readonly ends = new Map<string, string>()
  readonly killed = new Set<string>()
  /** Tasks that were asked to be deleted, and those whose deletion was acknowledged. */
  readonly deleted = new Set<string>()
  readonly gone = new Set<string>()
  /** Tasks that were answered 503. */
  readonly refused: string[] = []
  /** Tasks that could not be started: there was no room to write down how they end. */
  readonly notLaunched = new Set<string>()
  /** Submissions that were answered. */
  get answered(): number {
    return this.exitCodes.size + this.refused.length
  }
  /** Whether there is always room on the disk. */
  isDiskFree = true

  saw(task: TaskSummary): void {
    const { task_id, status, exit_code, exit_signal } = task
    const end = `${status} ${exit_code} ${exit_signal}`
    const before = this.ends.get(task_id)
    if (before !== undefined) expect({ task_id, end }).toEqual({ task_id, end: before })
    if (hasEnded(status)) this.ends.set(task_id, end)
    if (!this.isDiskFree && task.error?.code === 'launch_failed') this.notLaunched.add(task_id)
  }

  /** Fails unless the task ended as it had to. */
  check(task: TaskSummary): void {
    this.saw(task)
    const { task_id, status, exit_code } = task
    if (this.killed.has(task_id) && status === 'cancelled') return
    if (this.notLaunched.has(task_id)) return
    const expected = this.exitCodes.get(task_id)!
    const wanted = { task_id, status: expected === 0 ? 'success' : 'failed', exit_code: expected }
    expect({ task_id, status, exit_code, error: task.error?.message }).toMatchObject(wanted)
  }
}

function randomTask(random: Random, task_id: string, log: string): { body: object; exitCode: number } {
  const exitCode = [0, 0, 3, 77][random(4)]!
  const pause = ['', 'sleep 0.01;', 'sleep 0.05;', 'sleep 0.2 & wait;', 'setsid sleep 30 &'][random(5)]!
  const script = `echo ${task_id}; echo ${task_id} >> ${log}; ${pause} exit ${exitCode}`
  const limits = { ...(random(3) === 0 && { memory_bytes: (1 + random(3)) * 512 * 1024 * 1024 }) }
  const control_context = random(3) === 0 ? { tenant: `t${random(2)}` } : {}
  return { body: { task_id, execution: { kind: 'script', script }, limits, control_context }, exitCode }
}

/** Its directory is free for the next task. */
async function remove(runtime: Runtime, promises: Promises, id: string): Promise<void> {
  promises.deleted.add(id)
  const { status } = await runtime.fetch(`/api/v1/tasks/${id}`, { method: 'DELETE' })
  expect([204, 503]).toContain(status)
  if (status === 204) promises.gone.add(id)
}

/** One client, until the service is gone. */
async function client(runtime: Runtime, promises: Promises, random: Random, name: string, log: string): Promise<void> {
  try {
    for (let n = 0; ; n++) {
      const id = `${name}-${n}`
      const { body, exitCode } = randomTask(random, id, log)
      const response = await runtime.post(body)
      if (response.status === 429 || response.status === 503) {
        if (response.status === 503) promises.refused.push(id)
        await response.body?.cancel()
        continue
      }
      expect(await response.json()).toMatchObject({ task_id: id })
      promises.exitCodes.set(id, exitCode)
      if (random(4) === 0) {
        promises.killed.add(id) // from here on we do not know until we are told
        await (await runtime.kill(id)).json()
      }
      const look = await runtime.fetch(`/api/v1/tasks/${id}?wait_ms=${random(30)}`)
      const task = (await look.json()) as TaskStatusResponse
      if (look.status !== 200) continue
      promises.saw(task)
      if (!hasEnded(task.status)) continue
      expect(['', `${id}\n`]).toContain(task.stdout)
      if (random(2) === 0) await remove(runtime, promises, id)
    }
  } catch (error) {
    await exitOf(runtime)
    if (runtime.process.exitCode !== null) throw new Error(`the service ended by itself: ${await runtime.stderr}`)
    if (runtime.process.signalCode === null) throw error
    if (!/ECONN|socket|closed|JSON/i.test(`${error}`)) throw error
  }
}

async function killAndCheck(dataDir: string, log: string, disk?: DisturbedDisk): Promise<void> {
  const random = randomNumbers(SEED)
  const promises = new Promises()
  promises.isDiskFree = disk === undefined
  writeFileSync(log, '')
  const options = {
    dataDir,
    env: disk?.env ?? {},
    flags: ['--termination-grace-ms', '100', '--tenant-quota', 't0=slots:2', '--capacity-memory-bytes', '2147483648'],
  }
  for (let round = 0; round < ROUNDS; round++) {
    disk?.restore()
    await using runtime = await startRuntime(options)
    const before = promises.answered
    const clients = Array.from({ length: 3 }, (_, c) => client(runtime, promises, random, `r${round}-c${c}`, log))
    // On a busy machine the first answers take longer than a round.
    await until(
      () => promises.answered - before,
      (answered) => answered >= ANSWERS_A_ROUND,
    )
    for (let pauses = 1 + random(3); pauses > 0; pauses--) {
      await Bun.sleep(random(60))
      disk?.disturb(random)
    }
    if (disk !== undefined && round === ROUNDS - 1) await refusal(disk, promises.refused, random)
    runtime.process.kill('SIGKILL')
    await runtime.process.exited
    await Promise.all(clients)
  }

  disk?.restore()
  await using runtime = await startRuntime(options)
  const tasks = await until(
    () => runtime.list(),
    (all) => all.every(({ status }) => hasEnded(status)),
  )
  const found = new Map(tasks.map((task) => [task.task_id, task]))
  const missing = [...promises.exitCodes.keys()].filter((id) => !found.has(id) && !promises.deleted.has(id))
  expect(missing, 'acknowledged, but missing').toEqual([])
  expect(
    promises.refused.filter((id) => found.has(id)),
    'answered 503, but stored',
  ).toEqual([])
  expect(
    [...promises.gone].filter((id) => found.has(id)),
    'deleted, but stored',
  ).toEqual([])
  for (const id of promises.exitCodes.keys()) if (found.has(id)) promises.check(found.get(id)!)

  const runs = readFileSync(log, 'utf8').trim().split('\n')
  expect(new Set(runs).size, 'tasks that ran twice').toBe(runs.length)
  const ran = new Set(runs)
  const mustHaveRun = [...promises.exitCodes.keys()].filter(
    (id) => !promises.killed.has(id) && !promises.notLaunched.has(id),
  )
  expect(
    mustHaveRun.filter((id) => !ran.has(id)),
    'said to have ended, but never ran',
  ).toEqual([])
  expect(ran.size).toBeGreaterThan(ROUNDS)
  if (disk !== undefined) expect(promises.refused.length, 'tasks answered 503').toBeGreaterThan(0)

  for (const { task_id } of tasks) {
    const seqs = (await runtime.events(task_id)).map(({ seq }) => seq)
    expect(seqs, `events of ${task_id}`).toEqual(seqs.map((_, i) => i + 1))
  }
  const { reserved, active_reservations, accepted_waiting_tasks } = await runtime.resources()
  expect({ reserved, active_reservations, accepted_waiting_tasks }).toEqual({
    reserved: { task_slots: 0, memory_bytes: 0, pids: 0 },
    active_reservations: [],
    accepted_waiting_tasks: 0,
  })
  await runtime.stop()
  const db = new Database(join(dataDir, 'runtime.db'), { readonly: true })
  expect(db.query('select task_id from tasks where reserved_at is not null and released_at is null').all()).toEqual([])
  expect(db.query('select task_id from tasks where request is not null').all()).toEqual([])
  db.close()
  expect(readdirSync(join(dataDir, 'tasks')).filter((id) => !found.has(id))).toEqual([])
  await until(
    () => markedProcesses('TASKMILL_TASK=').filter((pid) => readEnvironment(pid).includes(dataDir)),
    (pids) => pids.length === 0,
  )
}

test(
  `no acknowledged task is lost, run twice or misreported (${ROUNDS} kills, seed ${SEED})`,
  async () => {
    using dir = tempDir()
    await killAndCheck(join(dir.path, 'data'), join(dir.path, 'runs'))
  },
  limitOf(ROUNDS),
)

/** Large enough for what is kept, small enough to be filled in a moment. */
/** Room for what all rounds leave: six tasks or so each, of 20 KB. */
const DISK_BYTES = (64 + ROUNDS / 4) * 1024 * 1024

test.skipIf(!canMount)(
  `nor when the disk is full now and then (${ROUNDS} kills, seed ${SEED}; only root can mount a small disk)`,
  async () => {
    using dir = tempDir()
    using disk = smallDisk(join(dir.path, 'disk'), DISK_BYTES)
    await killAndCheck(join(disk.path, 'data'), join(dir.path, 'runs'), {
      disturb: (random) => (random(3) === 0 ? disk.free() : disk.fill()),
      restore: () => disk.free(),
    })
  },
  limitOf(ROUNDS),
)

test.skipIf(missingFailingCalls !== undefined)(
  `nor when syncs and renames fail now and then (${ROUNDS} kills, seed ${SEED})${whyNone}`,
  async () => {
    using dir = tempDir()
    using failing = new FailingCalls(dir.path)
    await killAndCheck(join(dir.path, 'data'), join(dir.path, 'runs'), {
      disturb: (random) => failing.fail((['none', 'syncs', 'renames', 'both'] as const)[random(4)]!),
      restore: () => failing.fail('none'),
      env: failing.env,
    })
  },
  limitOf(ROUNDS),
)

const readEnvironment = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1')
  } catch {
    return '' // ended
  }
}
