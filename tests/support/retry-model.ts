/**
 * After any retries in place, a graph ends as its rules say, no task starts before what it depends on has ended, and a
 * restart, from any part of the journal, finds a state that the graph has been in.
 * Method: random graphs with rules and the real log. Tasks that failed are retried while the graph runs and after its end.
 */
import { expect } from 'bun:test'
import { readdirSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { ExecutorRegistry } from '../../control/executors/registry.ts'
import { CallerQuotas } from '../../control/operations/caller-quotas.ts'
import type { OperationParts } from '../../control/operations/parts.ts'
import { retryGraph, retryTask } from '../../control/operations/retry.ts'
import { Scheduler } from '../../control/scheduler/scheduler.ts'
import { Counters } from '../../control/task/counters.ts'
import type { Graph, Task } from '../../control/task/graph.ts'
import { Retention } from '../../control/task/retention.ts'
import { isRetryable } from '../../control/task/retry.ts'
import { ServiceError } from '../../shared/contract/errors.ts'
import { silentLog } from '../../shared/logs/log.ts'
import { nextTurn, runSync } from '../../shared/process/steps.ts'
import { GraphModel } from '../model/graph-model.ts'
import { liveCopy } from './durable-store.ts'
import { openEmbedded } from './embedded-keeper.ts'
import { graphOf } from './graph.ts'
import { type RuledTask, ruledGraph } from './ruled-graph.ts'
import { ScriptedExecutor } from './scripted-executor.ts'
import { tempDir } from './temp.ts'
import { until } from './until.ts'

/** Without lists and groups, which no retry may name: their tasks fail the first time. */
const graphs = ruledGraph(10).map((tasks) =>
  tasks.map(({ for_each, tasks: members, max_parallel: _, fail_fast: __, elements: ___, ...each }): RuledTask => {
    const isPlain = for_each === undefined && members === undefined
    return isPlain ? each : { ...each, type: 'test', input: { outcomes: ['fail'] } }
  }),
)

/** What `task` did although a dependency has not ended, or must not have done after how that ended. */
function faultsOf({ id, graph, dependsOn = [], runIf, options }: Task): string[] {
  const all = dependsOn.map((name) => graph.tasks.find((other) => other.id === name)!)
  const isLost = (other: Task) => other.status !== 'success' && !(other.status === 'failed' && other.continuesOnError)
  return all.flatMap((other) => {
    if (!other.isTerminal) return [`${id} came before the end of ${other.id}`]
    if (runIf === 'success' && options.when === undefined && !graph.hasRules && isLost(other))
      return [`${id} came although ${other.id} was ${other.status}`]
    return []
  })
}

/** A start of the service on `dir`. */
async function life(dir: string, tasks: readonly RuledTask[]) {
  const { store, keeper } = await openEmbedded(dir)
  const counters = new Counters(store)
  const retention = new Retention({ store, retentionMs: 0, maxStoredTasks: 1_000, log: silentLog() })
  const faults: string[] = []
  const executor: ScriptedExecutor = new ScriptedExecutor(({ id }) => {
    for (const graph of store.graphs) for (const task of graph.tasks) if (task.id === id) faults.push(...faultsOf(task))
  })
  const scheduler = new Scheduler({
    ...{ store, keeper, executors: new ExecutorRegistry([executor]), log: silentLog() },
    ...{ maxConcurrency: 3, abandonAfterMs: 60_000, serviceId: 'test' },
  })
  const more = { quotas: new CallerQuotas(store), readiness: { ensure: () => {} }, log: silentLog() }
  const parts = { store, scheduler, keeper, ...more } as unknown as OperationParts
  const ends = new Map(tasks.map(({ id, ends }) => [id, ends]))
  const answerAll = (graph: Graph) => {
    for (const task of graph.tasks) {
      const end = ends.get(task.id)
      if (end === 'approved' || end === 'rejected')
        scheduler.answer(task, { approved: end === 'approved', who: 'ada', at: 'now' })
    }
  }
  const over = (graph: Graph) =>
    until(() => {
      answerAll(graph)
      return graph.live
    }, 0)
  const stop = async () => {
    await scheduler.stop(0)
    retention.stop()
    await keeper.stop()
  }
  return { store, keeper, scheduler, counters, executor, faults, parts, answerAll, over, stop }
}

type Life = Awaited<ReturnType<typeof life>>

async function submitted({ store, keeper, scheduler }: Life, tasks: readonly RuledTask[]): Promise<Graph> {
  const body = { scope: 'graph', tasks }
  const graph = graphOf(JSON.parse(JSON.stringify(tasks)), Date.now(), undefined, { scope: 'graph' })
  runSync(store.claim(graph))
  await keeper.keepGraph(graph, new TextEncoder().encode(JSON.stringify(body)))
  store.apply({ kind: 'graph-accepted', graph })
  scheduler.add(graph)
  return graph
}

const stateOf = ({ tasks }: Graph) => tasks.map(({ id, status }) => [id, status])

/** How the graph must have ended, if its tasks ended as they did when they ran. */
function modelState(tasks: readonly RuledTask[], graph: Graph) {
  const failed = new Set(graph.tasks.filter(({ status }) => status === 'failed').map(({ id }) => id))
  const model = GraphModel.run(tasks, (id) => (failed.has(id) ? 'failed' : 'success'))
  return tasks.map(({ id }) => [id, model.stateOf(id)])
}

/** The task and all that depend on it, by their definitions. */
function downstream(tasks: readonly RuledTask[], id: string): Set<string> {
  const found = new Set([id])
  for (let size = 0; size < found.size; ) {
    size = found.size
    for (const each of tasks) if (each.depends_on.some((name) => found.has(name))) found.add(each.id)
  }
  return found
}

const refused = (error: unknown) => {
  if (error instanceof ServiceError && error.status === 409) return undefined
  throw error
}

/** `numRuns` graphs end as their rules say after any retries. Returns how many there were, and how many while the graph ran. */
export async function testRetries(numRuns: number): Promise<{ retried: number; live: number }> {
  const retries = fc.array(
    fc.record({ pick: fc.nat(), turns: fc.nat(12), isLive: fc.boolean(), isAll: fc.boolean() }),
    {
      minLength: 1,
      maxLength: 4,
    },
  )
  let retried = 0
  let live = 0
  await fc.assert(
    fc.asyncProperty(graphs, retries, async (tasks, retries) => {
      using dir = tempDir()
      const w = await life(dir.path, tasks)
      const graph = await submitted(w, tasks)
      for (const { pick, turns, isLive, isAll } of retries) {
        if (!isLive) await w.over(graph)
        for (let turn = 0; isLive && turn < turns; turn++) {
          w.answerAll(graph)
          await nextTurn()
        }
        const failed = graph.tasks.filter(isRetryable)
        if (failed.length === 0) continue
        const task = failed[pick % failed.length]!
        const before = graph.tasks.map(({ attempt }) => attempt)
        const wasLive = graph.live > 0
        const result = await (isAll
          ? retryGraph(w.parts, graph.id, undefined)
          : retryTask(w.parts, { id: task.id, graphId: graph.id }, undefined)
        ).catch(refused)
        if (result === undefined) {
          if (!wasLive && !isAll) throw new Error(`${task.id} was not retried in an ended graph`)
          continue
        }
        retried++
        if (wasLive) live++
        if (isAll || wasLive) continue
        expect(result.pending).toBe(downstream(tasks, task.id).size)
        await w.over(graph)
        const again = downstream(tasks, task.id)
        for (const [i, each] of graph.tasks.entries()) {
          if (!again.has(each.id)) expect(each.attempt).toBe(before[i]!)
          else if (each.status === 'success' || each.status === 'failed')
            expect(each.attempt).toBeGreaterThan(before[i]!)
        }
      }
      await w.over(graph)
      expect(w.faults).toEqual([])
      expect(stateOf(graph)).toEqual(modelState(tasks, graph))
      expect([w.counters.tasksRunning, w.store.endedTaskCount]).toEqual([0, tasks.length])
      await w.stop()

      const next = await life(dir.path, tasks)
      const [found] = [...next.store.graphs]
      expect(stateOf(found!)).toEqual(stateOf(graph))
      expect(found!.tasks.map(({ attempt, rare }) => [attempt, rare.retried?.count])).toEqual(
        graph.tasks.map(({ attempt, rare }) => [attempt, rare.retried?.count]),
      )
      await next.stop()
    }),
    { numRuns, endOnFailure: true },
  )
  return { retried, live }
}

/** A kill leaves all of a retry or nothing of it, and the graph goes on from there: `numRuns` graphs, four kills each. */
export async function testKills(numRuns: number): Promise<void> {
  const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 4, maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(graphs, cuts, fc.nat(), async (tasks, cuts, pick) => {
      using dir = tempDir()
      const w = await life(dir.path, tasks)
      const graph = await submitted(w, tasks)
      await w.over(graph)
      await w.keeper.kept('promise')
      const failed = graph.tasks.filter(isRetryable)
      if (failed.length > 0) {
        const task = failed[pick % failed.length]!
        await retryTask(w.parts, { id: task.id, graphId: graph.id }, undefined)
        await w.over(graph)
        await w.keeper.kept('promise')
      }
      for (const part of cuts) {
        using copy = liveCopy([dir.path])
        const [name] = readdirSync(copy.path).filter((name) => name.startsWith('journal-'))
        const path = join(copy.path, name!)
        truncateSync(path, Math.floor(statSync(path).size * part))
        const next = await life(copy.path, tasks)
        const [found] = [...next.store.graphs]
        if (found !== undefined) {
          next.scheduler.resume(found)
          await next.over(found)
          expect(next.faults).toEqual([])
          expect(stateOf(found)).toEqual(modelState(tasks, found))
        }
        await next.stop()
      }
      await w.stop()
    }),
    { numRuns, endOnFailure: true },
  )
}
