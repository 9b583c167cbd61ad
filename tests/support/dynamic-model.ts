/**
 * Goal: a graph with dynamic tasks comes to have exactly the tasks that their results name, each once. After a kill at any byte of the
 * log, a dynamic task has ended if and only if what it adds is there, and the graph goes on to the same end.
 * Method: random trees of plans, the real log, and copies of it that are cut off.
 */
import { expect } from 'bun:test'
import { readdirSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import type { ExecutableTask, Executor } from '../../control/executors/executor.ts'
import { ExecutorRegistry } from '../../control/executors/registry.ts'
import { taskAdditions } from '../../control/operations/add-tasks.ts'
import { CallerQuotas } from '../../control/operations/caller-quotas.ts'
import type { OperationParts } from '../../control/operations/parts.ts'
import { Scheduler } from '../../control/scheduler/scheduler.ts'
import type { Graph } from '../../control/task/graph.ts'
import { Retention } from '../../control/task/retention.ts'
import { silentLog } from '../../shared/logs/log.ts'
import { nextTurn, runSync } from '../../shared/process/steps.ts'
import { liveCopy } from './durable-store.ts'
import { openEmbedded } from './embedded-keeper.ts'
import { graphOf } from './graph.ts'
import { NO_COMMANDS } from './operation-parts.ts'
import { tempDir } from './temp.ts'
import { until } from './until.ts'

/** A task, and what it adds. `waits`: for the task that adds it, and for the one before it. */
interface Plan {
  readonly turns: number
  readonly waits: boolean
  readonly adds: readonly Plan[]
}

const { plans } = fc.letrec<{ plans: Plan[]; plan: Plan }>((tie) => ({
  plans: fc.array(tie('plan'), { minLength: 1, maxLength: 3, depthIdentifier: 'plans' }),
  plan: fc.record({
    turns: fc.nat(3),
    waits: fc.boolean(),
    adds: fc.oneof({ depthIdentifier: 'plans', depthSize: 'large', maxDepth: 3 }, fc.constant([]), tie('plans')),
  }),
}))

/** The tasks for `plans`, which `parent` adds. */
function tasksOf(plans: readonly Plan[], parent?: string): { id: string; [field: string]: unknown }[] {
  const idOf = (i: number) => (parent === undefined ? `${i}` : `${parent}.${i}`)
  return plans.map(({ turns, waits, adds }, i) => ({
    ...{ id: idOf(i), type: 'test', dynamic: true },
    depends_on: waits ? [...(parent === undefined ? [] : [parent]), ...(i === 0 ? [] : [idOf(i - 1)])] : [],
    input: { turns, add_tasks: tasksOf(adds, idOf(i)) },
  }))
}

/** Ids of `plans` and of all that they add, each with the ids that it adds itself. */
function* allOf(plans: readonly Plan[], parent?: string): Generator<[id: string, adds: string[]]> {
  for (const [i, { adds }] of plans.entries()) {
    const id = parent === undefined ? `${i}` : `${parent}.${i}`
    yield [id, adds.map((_, k) => `${id}.${k}`)]
    yield* allOf(adds, id)
  }
}

/** Returns its input, after some turns. */
const planner: Executor = {
  type: 'test',
  async execute({ input }: ExecutableTask) {
    for (let turn = 0; turn < (input as Plan).turns; turn++) await nextTurn()
    return input
  },
}

/** A start of the service on `dir`. */
async function life(dir: string) {
  const { store, keeper } = await openEmbedded(dir)
  const retention = new Retention({ store, retentionMs: 0, maxStoredTasks: 1_000, log: silentLog() })
  const executors = new ExecutorRegistry([planner])
  const faults: string[] = []
  const scheduler = new Scheduler({
    ...{ store, keeper, executors, log: silentLog(), maxConcurrency: 3, abandonAfterMs: 60_000, serviceId: 'test' },
    onFault: (fault) => faults.push(fault),
  })
  const limits = { maxFanOut: 1_000, maxGraphResultBytes: 1_000_000, unknownFields: 'ignore' }
  const more = {
    quotas: new CallerQuotas(store, NO_COMMANDS),
    callerNamed: () => undefined,
    log: silentLog(),
    ...limits,
  }
  scheduler.useAdditions(
    taskAdditions({ store, scheduler, keeper, executors, retention, ...more } as unknown as OperationParts),
  )
  const over = async (graph: Graph) => {
    await until(() => [graph.live, ...faults], [0])
  }
  const stop = async () => {
    await scheduler.stop(0)
    retention.stop()
    await keeper.stop()
  }
  return { store, keeper, scheduler, over, stop }
}

const stateOf = ({ tasks, patched }: Graph) => ({
  tasks: tasks.map(({ id, status, rare }) => [id, status, rare.added_by]).sort(),
  revision: patched?.revision,
})

function modelState(plans: readonly Plan[]) {
  const all = [...allOf(plans)]
  const adders = new Map(all.flatMap(([id, adds]) => adds.map((added) => [added, id])))
  const count = all.filter(([, adds]) => adds.length > 0).length
  return {
    tasks: all.map(([id]) => [id, 'success', adders.get(id)]).sort(),
    revision: count === 0 ? undefined : count,
  }
}

/** Each graph ends with all that its plans say, after each of the kills too. Returns how many tasks were added in all. */
export async function testPlans(numRuns: number, kills: number): Promise<number> {
  let added = 0
  const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: kills, maxLength: kills })
  await fc.assert(
    fc.asyncProperty(plans, cuts, async (plans, cuts) => {
      using dir = tempDir()
      const w = await life(dir.path)
      const graph = graphOf(tasksOf(plans) as never, Date.now(), undefined, { scope: 'graph' })
      runSync(w.store.claim(graph))
      await w.keeper.keepGraph(graph, Buffer.from(JSON.stringify({ scope: 'graph', tasks: tasksOf(plans) })))
      w.store.apply({ kind: 'graph-accepted', graph })
      w.scheduler.add(graph)
      await w.over(graph)
      expect(stateOf(graph)).toEqual(modelState(plans))
      added += graph.tasks.length - plans.length
      await w.keeper.kept('promise')
      for (const part of cuts) await testKill(dir.path, part, plans)
      await w.stop()
      const next = await life(dir.path)
      expect([...next.store.graphs].map(stateOf)).toEqual([modelState(plans)])
      await next.stop()
    }),
    { numRuns, endOnFailure: true },
  )
  return added
}

/** A start finds the first `part` of the journal in `dir`. */
async function testKill(dir: string, part: number, plans: readonly Plan[]): Promise<void> {
  using copy = liveCopy([dir])
  const [name] = readdirSync(copy.path).filter((file) => file.startsWith('journal-'))
  const path = join(copy.path, name!)
  truncateSync(path, Math.floor(statSync(path).size * part))
  const next = await life(copy.path)
  const [found] = [...next.store.graphs]
  if (found !== undefined) {
    const ids = new Map(found.tasks.map(({ id, status }) => [id, status]))
    for (const [id, adds] of allOf(plans))
      expect([id, ...adds.map((each) => ids.has(each))]).toEqual([id, ...adds.map(() => ids.get(id) === 'success')])
    next.scheduler.resume(found)
    await next.over(found)
    expect(stateOf(found)).toEqual(modelState(plans))
  }
  await next.stop()
}
