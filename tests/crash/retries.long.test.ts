/**
 * Kills the service at random moments while failed tasks are retried in place, and looks whether each retry happened once.
 *
 * Each round starts it on the directory of the round before. Clients submit graphs whose first task fails, some of them one with
 * children, and retry it each time the graph has ended, until SIGKILL. After each start, a task has been retried as often as was acknowledged, or once more
 * if an answer was lost. In the end no attempt has run twice, and what a graph does at its end came after all else.
 *
 * The seed is part of the title; `make crash SEED= ROUNDS=` repeats a run.
 */
import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { type Control, startControl } from '../support/control.ts'
import { limitOf, type Random, ROUNDS, randomNumbers, SEED } from '../support/random.ts'
import { exitOf } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

/** Retries of the first task of a graph. */
interface Retries {
  acknowledged: number
  /** The answer to the last one was lost. */
  isOpen: boolean
}

const tasksOf = async (control: Control, graphId: string): Promise<Map<string, TaskRecord>> => {
  const records = (await (await control.fetch(`/graphs/${graphId}/tasks`)).json()) as TaskRecord[]
  return new Map(records.map((record) => [record.id, record]))
}

async function ended(control: Control, graphId: string): Promise<GraphDetails> {
  for (;;) {
    const graph = (await (await control.fetch(`/graphs/${graphId}?wait_ms=2000`)).json()) as GraphDetails
    if (graph.state !== 'running') return graph
  }
}

/** One client, until the service is gone. Goes on with graphs of earlier rounds, too. */
async function client(control: Control, known: Map<string, Retries>, random: Random, log: string): Promise<void> {
  const script = `echo "$TASKMILL_ATTEMPT" >> ${log}; sleep 0.0${random(5)}`
  const step = { id: 'step', type: 'shell', params: { script: `${script}; exit $CODE`, env: { CODE: { $item: '' } } } }
  const kinds = [
    { id: 'first', type: 'shell', params: { script: `${script}; exit 3` } },
    { id: 'first', for_each: ['3', '0'], tasks: [step] },
  ]
  try {
    for (;;) {
      const ids = [...known.keys()]
      let id = ids[random(ids.length + 1)]
      if (id === undefined) {
        const tasks = [
          kinds[random(2)]!,
          { id: 'next', type: 'noop', depends_on: ['first'] },
          { id: 'clean', type: 'shell', depends_on: ['first'], run_if: 'always', params: { script } },
        ]
        const response = await control.post({ tasks, scope: 'graph', on_end: [{ command: { script } }] })
        expect(response.status).toBe(202)
        id = ((await response.json()) as SubmitResponse).graph_id
        known.set(id, { acknowledged: 0, isOpen: false })
      }
      if (random(3) > 0) await ended(control, id)
      const retries = known.get(id)!
      if (retries.isOpen) continue // another client is at it
      retries.isOpen = true
      const { status } = await control.fetch(`/graphs/${id}/tasks/first/retry`, { method: 'POST' })
      expect([202, 409]).toContain(status)
      if (status === 202) retries.acknowledged++
      retries.isOpen = false
    }
  } catch (error) {
    // The service was killed in the middle of a call. Anything else is a fault.
    await exitOf(control)
    if (control.process.signalCode === null) throw error
    if (error instanceof Error && error.name !== 'TypeError' && !/ECONN|closed|reset|JSON/i.test(`${error}`))
      throw error
  }
}

/** Each graph has as many retries as were acknowledged, or one more. */
async function check(control: Control, known: ReadonlyMap<string, Retries>): Promise<void> {
  for (const [id, retries] of known) {
    const found = (await tasksOf(control, id)).get('first')!.retried?.count ?? 0
    const most = retries.acknowledged + (retries.isOpen ? 1 : 0)
    expect({ id, isWithin: retries.acknowledged <= found && found <= most, found }).toMatchObject({ isWithin: true })
    retries.acknowledged = found
    retries.isOpen = false
  }
}

const runsIn = (log: string): string[] => readFileSync(log, 'utf8').split('\n').slice(0, -1)

test(
  `each acknowledged retry happens once (${ROUNDS} kills, seed ${SEED})`,
  async () => {
    using dir = tempDir()
    const random = randomNumbers(SEED + 3)
    const known = new Map<string, Retries>()
    const log = join(dir.path, 'attempts')
    writeFileSync(log, '')
    const options = {
      dataDir: join(dir.path, 'data'),
      env: { SERVICE_SHELL_POLICY: 'open' },
      flags: ['--kill-grace', '100ms', '--persist-interval', '20ms', '--max-concurrency', '4'],
    }
    for (let round = 0; round < ROUNDS; round++) {
      await using control = await startControl(options)
      await check(control, known)
      const before = runsIn(log).length
      const clients = Array.from({ length: 3 }, () => client(control, known, random, log))
      await Bun.sleep(10 + random(150))
      const hasRetries = () => [...known.values()].some(({ acknowledged }) => acknowledged > 0)
      await until(
        () => runsIn(log).length > before && (round < ROUNDS - 1 || hasRetries()),
        (isEnough) => isEnough,
      )
      control.process.kill('SIGKILL')
      await control.process.exited
      await Promise.all(clients)
    }
    await using control = await startControl(options)
    await check(control, known)
    for (const id of known.keys()) {
      const { state } = await ended(control, id)
      const tasks = await tasksOf(control, id)
      const statuses = [...tasks.values()].flatMap(({ status, parent }) => (parent === undefined ? status : []))
      const [lost, good] = ['first[0]/step', 'first[1]/step'].map((name) => tasks.get(name))
      if (lost !== undefined)
        expect({ retried: lost.retried?.count, good: good!.status, again: good!.retried }).toEqual({
          ...{ retried: tasks.get('first')!.retried?.count, good: 'success', again: undefined },
        })
      expect([id, state, statuses]).toEqual([id, 'failed', ['failed', 'skipped', 'success', 'success']])
      const [first, clean, atEnd] = ['first', 'clean', 'on_end/0'].map((name) => tasks.get(name)!)
      expect(clean!.runtime!.started_at! >= first!.finished_at!, `${id}: clean came first`).toBeTrue()
      expect(atEnd!.runtime!.started_at! >= clean!.finished_at!, `${id}: the end came first`).toBeTrue()
    }
    const runs = runsIn(log)
    expect(runs.filter((run, i) => runs.indexOf(run) !== i)).toEqual([])
  },
  limitOf(ROUNDS),
)
