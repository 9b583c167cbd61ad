/**
 * Kills the service at random moments while graphs are run again, and looks whether reused outcomes are kept.
 *
 * Each round starts it on the directory of the round before. A few clients submit graphs in which some tasks fail, run them
 * again and again, and delete some of the sources; then the process is ended with SIGKILL. A rerun that was acknowledged
 * must be there after the next start, with the outcomes that its answer names, also those in files; a deleted source is
 * gone. The tasks are shell scripts that write down their graph: no reused task may execute in a graph that reuses it.
 *
 * The seed is part of the title; `make crash SEED= ROUNDS=` repeats a run.
 */
import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import type { RerunResponse } from '../../shared/contract/rerun.ts'
import { type Control, startControl } from '../support/control.ts'
import { limitOf, type Random, ROUNDS, randomNumbers, SEED } from '../support/random.ts'
import { exitOf } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

/** What clients were told. */
class Promises {
  /** Results of reused tasks, by graph and task. */
  readonly reused = new Map<string, Map<string, unknown>>()
  acknowledged = 0
  readonly deleted = new Set<string>()
}

/** Characters of an output whose result lies in a file. */
const LARGE = 100_000

/** Each task writes down its attempt, which names its graph, and some fail now and then. */
function randomTasks(random: Random, log: string): object[] {
  const size = 2 + random(6)
  return Array.from({ length: size }, (_, i) => {
    const output = random(4) === 0 ? `head -c ${LARGE} /dev/zero | tr '\\0' x;` : `echo out-${i};`
    const failing = random(3) === 0 ? `test $(( $(date +%N | sed 's/^0*//') / 1000 % 2 )) -eq 0` : 'true'
    return {
      id: `t${i}`,
      type: 'shell',
      depends_on: Array.from({ length: i === 0 ? 0 : random(3) }, () => `t${random(i)}`),
      params: { script: `echo "$TASKMILL_ATTEMPT" >> ${log}; ${output} ${failing}` },
    }
  })
}

const json = async <T>(response: Response): Promise<T> => (await response.json()) as T

const recordsOf = async (control: Control, graphId: string): Promise<TaskRecord[]> =>
  json(await control.fetch(`/graphs/${graphId}/tasks`))

/** Runs graphs again until the service is gone. */
async function client(control: Control, promises: Promises, random: Random, log: string): Promise<void> {
  try {
    for (;;) {
      const submitted = await control.post({ scope: 'graph', tasks: randomTasks(random, log) })
      let source = (await json<RerunResponse>(submitted)).graph_id
      for (let again = 1 + random(4); again > 0; again--) {
        await until(
          async () => json<GraphDetails>(await control.fetch(`/graphs/${source}?wait_ms=1000`)),
          ({ state }) => state !== 'running',
        )
        const results = new Map((await recordsOf(control, source)).map(({ id, result }) => [id, result]))
        const body = JSON.stringify(random(2) === 0 ? {} : { from: ['t1'] })
        const response = await control.fetch(`/graphs/${source}/rerun`, { method: 'POST', body })
        if (response.status === 409) break // all succeeded
        expect(response.status).toBe(202)
        const { graph_id, reused } = await json<RerunResponse>(response)
        promises.acknowledged++
        promises.reused.set(graph_id, new Map(reused.map((id) => [id, results.get(id)])))
        if (random(2) === 0) {
          promises.reused.delete(source) // from here on we do not know until we are told
          const removed = await control.fetch(`/graphs/${source}`, { method: 'DELETE' })
          if (removed.status === 204) promises.deleted.add(source)
        }
        source = graph_id
      }
    }
  } catch (error) {
    // The service was killed in the middle of a call. Anything else is a fault.
    await exitOf(control)
    if (control.process.signalCode === null) throw error
    if (error instanceof Error && error.name !== 'TypeError' && !/ECONN|closed|reset|JSON/i.test(`${error}`))
      throw error
  }
}

async function check(control: Control, { reused, deleted }: Promises): Promise<void> {
  for (const [graphId, results] of reused) {
    const records = new Map((await recordsOf(control, graphId)).map((record) => [record.id, record]))
    for (const [id, result] of results) {
      expect(records.get(id)).toMatchObject({ status: 'success', reused_from: { task_id: id }, result } as object)
    }
  }
  for (const id of deleted) expect((await control.fetch(`/graphs/${id}`)).status).toBe(404)
}

test(
  `reused outcomes are kept (${ROUNDS} kills, seed ${SEED})`,
  async () => {
    using dir = tempDir()
    const log = join(dir.path, 'attempts')
    writeFileSync(log, '')
    const random = randomNumbers(SEED)
    const promises = new Promises()
    const options = {
      dataDir: join(dir.path, 'data'),
      env: { SERVICE_SHELL_POLICY: 'open' },
      flags: ['--kill-grace', '100ms', '--persist-interval', '20ms', '--max-concurrency', '8'],
    }
    for (let round = 0; round <= ROUNDS; round++) {
      await using control = await startControl(options)
      await check(control, promises)
      if (round === ROUNDS) break
      const clients = Array.from({ length: 3 }, () => client(control, promises, random, log))
      const enough = promises.acknowledged + 1 + random(6)
      await until(
        () => promises.acknowledged,
        (count) => count >= enough,
      )
      await Bun.sleep(random(20))
      control.process.kill('SIGKILL')
      await control.process.exited
      await Promise.all(clients)
    }
    expect(promises.reused.size, 'reruns that were checked').toBeGreaterThan(ROUNDS / 3)
    const executed = new Set(
      readFileSync(log, 'utf8')
        .trim()
        .split('\n')
        .map((attempt) => attempt.replace(/\/\d+$/, '')),
    )
    for (const [graphId, results] of promises.reused) {
      for (const id of results.keys()) {
        const wrong = [...executed].filter((attempt) => attempt.includes(graphId) && attempt.endsWith(`/${id}`))
        expect(wrong, 'reused tasks that were executed').toEqual([])
      }
    }
  },
  limitOf(ROUNDS),
)
