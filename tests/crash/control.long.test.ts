/**
 * Kills the service at random moments and looks whether it kept its promises.
 *
 * Each round starts it on the directory of the round before, lets a few clients submit random graphs, cancel, delete and
 * look at random, and then ends the process with SIGKILL. What clients were told must hold after the next start: an
 * acknowledged graph is there, an outcome that was seen stays, what was deleted is gone, what was cancelled ends so. The
 * tasks, and entries of `on_end`, are shell scripts that write down which attempt they are: no attempt may run twice, and no
 * process may be left.
 *
 * The seed is part of the title; `make crash SEED= ROUNDS=` repeats a run.
 */
import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphSummary } from '../../shared/contract/graphs.ts'
import { ON_END_IDS } from '../../shared/contract/on-end.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { markedProcesses } from '../../shared/process/processes.ts'
import { type Control, startControl } from '../support/control.ts'
import { CrashStory } from '../support/crash-story.ts'
import { type DisturbedDisk, refusal } from '../support/disturbed-disk.ts'
import { FailingCalls, missingFailingCalls } from '../support/failing-calls.ts'
import { limitOf, type Random, ROUNDS, randomNumbers, SEED } from '../support/random.ts'
import { exitOf } from '../support/service.ts'
import { canMount, smallDisk } from '../support/small-disk.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const whyNone = missingFailingCalls === undefined ? '' : ` (skipped: ${missingFailingCalls})`

/** Ids are unique over all graphs, but for those of `on_end`. */
const nameOf = ({ id, graph_id }: Pick<TaskRecord, 'id' | 'graph_id'>): string =>
  id.startsWith(ON_END_IDS) ? `${graph_id}/${id}` : id

/** What clients were told. */
class Promises {
  /** Acknowledged and, as far as we were told, not deleted. */
  readonly present = new Set<string>()
  readonly outcomes = new Map<string, string>()
  readonly deleted = new Set<string>()
  readonly cancelled = new Set<string>()
  readonly attempts = new Map<string, number>()
  /** Names of graphs that were answered 503. */
  readonly refused: string[] = []

  saw(record: TaskRecord): void {
    const { status, attempt = 0 } = record
    const id = nameOf(record)
    const before = this.outcomes.get(id)
    if (before !== undefined) expect({ id, status }).toEqual({ id, status: before as TaskRecord['status'] })
    expect(attempt, `attempt of ${id}`).toBeGreaterThanOrEqual(this.attempts.get(id) ?? 0)
    this.attempts.set(id, attempt)
    if (isTerminal(status)) this.outcomes.set(id, status)
  }
}

function randomGraph(random: Random, name: string, log: string): object[] {
  const size = 1 + random(12)
  return Array.from({ length: size }, (_, i) => {
    const depends_on = Array.from({ length: i === 0 ? 0 : random(3) }, () => `${name}-${random(i)}`)
    const id = `${name}-${i}`
    const common = { id, depends_on, retry: random(3) }
    const kind = random(10)
    if (kind < 2) return { ...common, type: 'noop' }
    if (kind < 4) return { ...common, type: 'sleep', params: { duration_ms: random(30) } }
    const ending = ['exit 0', 'exit 0', 'exit 0', 'exit 3', `sleep 0.0${random(9)}`, 'sleep 0.2 & wait'][random(6)]
    return { ...common, type: 'shell', params: { script: `echo "$TASKMILL_ATTEMPT" >> ${log}; ${ending}` } }
  })
}

/** One client, until the service is gone. */
async function client(control: Control, promises: Promises, random: Random, name: string, log: string): Promise<void> {
  try {
    for (let n = 0; ; n++) {
      const isScoped = random(3) === 0
      const tasks = randomGraph(random, `${name}-${n}`, log)
      const script = `echo "$TASKMILL_ATTEMPT" >> ${log}; sleep 0.0${random(9)}`
      const ending = { scope: 'graph', on_end: random(2) === 0 ? [{ retry: 1, command: { script } }] : [] }
      const response = await control.post({ tasks, ...(isScoped && ending) })
      if (response.status === 503) {
        // The disk is full: nothing of the graph may ever be seen, which the names of later ones prove.
        promises.refused.push(`${name}-${n}`)
        await response.body?.cancel()
        continue
      }
      expect(response.status).toBe(202)
      const { task_ids: all, graph_id } = (await response.json()) as SubmitResponse
      const task_ids = all.slice(0, tasks.length)
      for (const id of all.slice(tasks.length)) promises.present.add(nameOf({ id, graph_id }))
      const below = isScoped ? `/graphs/${graph_id}/tasks` : '/tasks'
      for (const id of task_ids) promises.present.add(id)
      for (let look = random(4); look > 0; look--) {
        const id = task_ids[random(task_ids.length)]!
        const response = await control.fetch(`${below}/${id}?wait_ms=${random(20)}`)
        if (response.status === 200) promises.saw((await response.json()) as TaskRecord)
      }
      const id = task_ids[random(task_ids.length)]!
      const next = random(16)
      if (next < 4) {
        // From here on we do not know until we are told.
        promises.present.delete(id)
        const response = await control.fetch(`${below}/${id}`, { method: 'DELETE' })
        if (response.status === 204) promises.deleted.add(id)
      } else if (next < 7) {
        const response = await control.fetch(`${below}/${id}/cancel`, { method: 'POST' })
        if (response.status !== 202) continue
        const { tasks: told } = (await response.json()) as { tasks: { task_id: string; status: string }[] }
        if (told[0]?.status === 'cancelled' || told[0]?.status === 'cancelling') promises.cancelled.add(id)
      }
    }
  } catch (error) {
    // The service was killed in the middle of a call. Anything else is a fault.
    if (control.process.exitCode === null && control.process.signalCode === null) {
      await exitOf(control)
      if (control.process.signalCode === null) throw error
    }
    if (error instanceof Error && error.name !== 'TypeError' && !/ECONN|closed|reset|JSON/i.test(`${error}`))
      throw error
  }
}

/** All records: those of the service, and those below graphs with ids of their own. */
async function allRecords(control: Control): Promise<TaskRecord[]> {
  const records = [await control.list()]
  let cursor: string | null = ''
  do {
    const page = await control.fetch(`/graphs?limit=1000${cursor && `&cursor=${cursor}`}`)
    for (const { graph_id, scope } of (await page.json()) as GraphSummary[]) {
      if (scope !== 'graph') continue
      records.push((await (await control.fetch(`/graphs/${graph_id}/tasks`)).json()) as TaskRecord[])
    }
    cursor = page.headers.get('x-next-cursor')
  } while (cursor !== null)
  return records.flat()
}

async function check(control: Control, promises: Promises, { lives }: CrashStory): Promise<void> {
  const records = new Map((await allRecords(control)).map((task) => [nameOf(task), task]))
  const missing = [...promises.present].filter((id) => !records.has(id))
  expect(missing, `acknowledged and not deleted, but missing\n${lives}`).toEqual([])
  expect(
    [...promises.deleted].filter((id) => records.has(id)),
    `deleted, but back\n${lives}`,
  ).toEqual([])
  const refused = new Set(promises.refused)
  expect(
    [...records.keys()].filter((id) => refused.has(id.replace(/-\d+$/, ''))),
    `answered 503, but stored\n${lives}`,
  ).toEqual([])
  for (const record of records.values()) promises.saw(record)
}

const attemptsIn = (log: string): string[] => readFileSync(log, 'utf8').split('\n').slice(0, -1)

async function killAndCheck(dataDir: string, log: string, disk?: DisturbedDisk): Promise<void> {
  const random = randomNumbers(SEED)
  const promises = new Promises()
  const story = new CrashStory()
  writeFileSync(log, '')
  const options = {
    dataDir,
    env: { SERVICE_SHELL_POLICY: 'open', ...disk?.env },
    flags: ['--kill-grace', '100ms', '--persist-interval', '20ms', '--max-concurrency', '8'],
  }
  for (let round = 0; round < ROUNDS; round++) {
    disk?.restore()
    await using control = await startControl(options)
    story.follow(control)
    await check(control, promises, story)
    const clients = Array.from({ length: 3 }, (_, c) => client(control, promises, random, `r${round}-c${c}`, log))
    // On a busy machine the first answers take longer than a round.
    await until(
      () => attemptsIn(log).length,
      (attempts) => attempts > round + 1,
    )
    for (let pauses = 1 + random(3); pauses > 0; pauses--) {
      await Bun.sleep(random(60))
      disk?.disturb(random)
    }
    if (disk !== undefined && round === ROUNDS - 1) await refusal(disk, promises.refused, random)
    control.process.kill('SIGKILL')
    await control.process.exited
    await Promise.all(clients)
  }
  disk?.restore()
  await using control = await startControl(options)
  story.follow(control)
  await check(control, promises, story)
  const ended = await until(
    () => allRecords(control),
    (tasks) => tasks.every((task) => isTerminal(task.status)),
  )
  for (const record of ended) promises.saw(record)
  const attempts = attemptsIn(log)
  const faults = new Map<string, string[]>()
  const note = (graphId: string, fault: string) => faults.set(graphId, [...(faults.get(graphId) ?? []), fault])
  for (const { id, status, graph_id } of ended) {
    if (promises.cancelled.has(id) && status !== 'cancelled') note(graph_id, `${id} was cancelled, but ended otherwise`)
  }
  const twice = attempts.filter((attempt, i) => attempts.indexOf(attempt) !== i)
  for (const attempt of twice) note(attempt.split('/')[1]!, `${attempt} ran twice`)
  await story.noFaults(control, faults)
  expect(attempts.length).toBeGreaterThan(ROUNDS)
  if (disk !== undefined) expect(promises.refused.length, 'graphs answered 503').toBeGreaterThan(0)

  const mark = `TASKMILL_ATTEMPT=${attempts[0]!.split('/')[0]}/`
  await until(() => markedProcesses(mark).length, 0)
}

test(
  `nothing that a client was told is forgotten (${ROUNDS} kills, seed ${SEED})`,
  async () => {
    using dir = tempDir()
    await killAndCheck(join(dir.path, 'data'), join(dir.path, 'attempts'))
  },
  limitOf(ROUNDS),
)

/** Large enough for what is kept, small enough to be filled in a moment. */
const DISK_BYTES = 64 * 1024 * 1024

test.skipIf(!canMount)(
  `nor when the disk is full now and then (${ROUNDS} kills, seed ${SEED}; only root can mount a small disk)`,
  async () => {
    using dir = tempDir()
    using disk = smallDisk(join(dir.path, 'disk'), DISK_BYTES)
    await killAndCheck(join(disk.path, 'data'), join(dir.path, 'attempts'), {
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
    await killAndCheck(join(dir.path, 'data'), join(dir.path, 'attempts'), {
      disturb: (random) => failing.fail((['none', 'syncs', 'renames', 'both'] as const)[random(4)]!),
      restore: () => failing.fail('none'),
      env: failing.env,
    })
  },
  limitOf(ROUNDS),
)
