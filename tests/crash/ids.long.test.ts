/**
 * Kills the service at random moments while clients use a few ids again and again, and looks who has them.
 *
 * The seed is part of the title; `make crash SEED= ROUNDS=` repeats a run.
 */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { type Control, startControl } from '../support/control.ts'
import { limitOf, ROUNDS, randomNumbers, SEED } from '../support/random.ts'
import { exitOf } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

/** What clients were told about ids that are used again and again. Absent is what nobody was told yet. */
class Holdings {
  /** The graph whose task has an id of the service; null for none. */
  readonly holders = new Map<string, string | null>()
  /** Whether a task, by `graph_id/id`, has a record. */
  readonly records = new Map<string, boolean>()

  accepted(graphId: string, ids: readonly string[], isScoped: boolean): void {
    for (const id of ids) {
      this.records.set(`${graphId}/${id}`, true)
      if (!isScoped) this.holders.set(id, graphId)
    }
  }

  /** What a start found is on disk: it holds until somebody asks for something else. */
  learn(found: ReadonlyMap<string, string>, pools: readonly string[]): void {
    for (const id of pools) if (!this.holders.has(id)) this.holders.set(id, found.get(id) ?? null)
  }
}

/**
 * Clients that use a few ids again and again, in graphs with ids of their own and in others: those replace each other.
 * Tasks are deleted by either address, and snapshots never stop.
 */
test(
  `who holds an id is never mistaken, and no graph loses what another replaced (${ROUNDS} kills, seed ${SEED})`,
  async () => {
    using dir = tempDir()
    const random = randomNumbers(SEED + 1)
    const told = new Holdings()
    const options = { dataDir: join(dir.path, 'data'), flags: ['--persist-interval', '10ms'] }
    const clients = ['c0', 'c1', 'c2']
    const idsOf = (client: string) =>
      Array.from({ length: 10 }, (_, i) => [`${client}-${i}`, `${client}-${i}.next`]).flat()

    const reuse = async (control: Control, client: string): Promise<void> => {
      /** Graphs of this client in this round. */
      const graphs: string[] = []
      const submit = async (id: string) => {
        const isScoped = random(3) === 0
        const ids = [id, `${id}.next`]
        const before = ids.map((each) => [each, told.holders.get(each)] as const)
        if (!isScoped) for (const each of ids) told.holders.delete(each)
        const tasks = ids.map((each, i) => ({ id: each, type: 'noop', depends_on: ids.slice(0, i) }))
        const response = await control.post({ tasks, ...(isScoped && { scope: 'graph' }) })
        const answer = (await response.json()) as { graph_id: string }
        if (response.status === 202) {
          told.accepted(answer.graph_id, ids, isScoped)
          graphs.push(answer.graph_id)
        } else for (const [each, holder] of before) if (holder !== undefined) told.holders.set(each, holder)
      }
      /** Deletes the task of the service with this id. */
      const remove = async (id: string) => {
        const holder = told.holders.get(id)
        told.holders.delete(id)
        if (holder != null) told.records.delete(`${holder}/${id}`)
        const response = await control.fetch(`/tasks/${id}`, { method: 'DELETE' })
        if (response.status !== 204 && response.status !== 404) return
        told.holders.set(id, null)
        if (holder != null) told.records.set(`${holder}/${id}`, false)
      }
      /** Deletes the task of a graph, whoever has its id by now. */
      const removeBelow = async (graphId: string, id: string) => {
        const isHolder = told.holders.get(id) === graphId
        if (isHolder) told.holders.delete(id)
        told.records.delete(`${graphId}/${id}`)
        const response = await control.fetch(`/graphs/${graphId}/tasks/${id}`, { method: 'DELETE' })
        if (response.status !== 204 && response.status !== 404) return
        told.records.set(`${graphId}/${id}`, false)
        if (isHolder) told.holders.set(id, null)
      }
      try {
        for (;;) {
          const ids = idsOf(client)
          const id = ids[2 * random(10)]!
          const next = random(8)
          if (next < 5) await submit(id)
          else if (next < 6 || graphs.length === 0) await remove(id)
          else await removeBelow(graphs[random(graphs.length)]!, ids[random(ids.length)]!)
        }
      } catch (error) {
        await exitOf(control)
        if (control.process.signalCode === null) throw error
      }
    }

    const check = async (control: Control, round: number) => {
      const found = new Map((await control.list()).map((task) => [task.id, task.graph_id]))
      const wrong = [...told.holders].filter(([id, holder]) => (found.get(id) ?? null) !== holder)
      expect(wrong, `round ${round}: id and the graph that held it`).toEqual([])
      const seen = new Map<string, boolean>()
      for (const graphId of new Set([...told.records.keys()].map((key) => key.split('/')[0]!))) {
        const response = await control.fetch(`/graphs/${graphId}/tasks`)
        const tasks = response.status === 404 ? [] : ((await response.json()) as TaskRecord[])
        for (const { id, status, replaced } of tasks) {
          seen.set(`${graphId}/${id}`, true)
          if (replaced) expect({ id, graphId, hasEnded: isTerminal(status) }).toEqual({ id, graphId, hasEnded: true })
        }
      }
      const mistaken = [...told.records].filter(([key, exists]) => exists !== seen.has(key))
      expect(mistaken, `round ${round}: task below its graph, and whether it was there`).toEqual([])
      told.learn(found, clients.flatMap(idsOf))
    }

    for (let round = 0; round <= ROUNDS; round++) {
      await using control = await startControl(options)
      await check(control, round)
      const working = clients.map((client) => reuse(control, client))
      await Bun.sleep(20 + random(100))
      // On a busy machine the first answers take longer than a round. The kill may leave one of each client unknown.
      await until(
        () => [...told.records.values()].filter((exists) => exists).length,
        (records) => records > round + clients.length,
      )
      control.process.kill('SIGKILL')
      await control.process.exited
      await Promise.all(working)
    }
    expect([...told.records.values()].filter((exists) => exists).length).toBeGreaterThan(ROUNDS)
  },
  limitOf(ROUNDS),
)
