/**
 * After any retries in place, a graph ends as its rules say, no task starts before what it depends on has ended, and a
 * restart, from any part of the journal, finds a state that the graph has been in.
 * Method: random graphs with rules, lists and groups, and the real log. Tasks and children that failed are retried while the
 * graph runs and after its end.
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
import { NO_COMMANDS } from './operation-parts.ts'
import { type RuledTask, ruledGraph } from './ruled-graph.ts'
import { ScriptedExecutor } from './scripted-executor.ts'
import { tempDir } from './temp.ts'
import { until } from './until.ts'

const graphs = ruledGraph(10)

/** What `task` did although a dependency has not ended, or must not have done after how that ended. */
function faultsOf({ id, graph, dependsOn = [], runIf, options, childOf }: Task): string[] {
  if (childOf !== undefined && childOf.parent.status !== 'running') return [`${id} came while its parent did not run`]
  const running = graph.tasks.filter(
    (other) => childOf !== undefined && other.childOf === childOf && other.runStatus === 'running',
  )
  if (childOf !== undefined && new Set(running.map((other) => childOf.indexOf(other))).size > childOf.maxParallel)
    return [`${id} came although as many others as may run do`]
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
  const more = { quotas: new CallerQuotas(store, NO_COMMANDS), readiness: { ensure: () => {} }, log: silentLog() }
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

const statesOf = (tasks: readonly Task[]) => tasks.map(({ id, status }) => [id, status])

/** What a restart must find again, be it in another order of the children. */
const recordsOf = ({ tasks }: Graph) =>
  Object.fromEntries(tasks.map(({ id, status, attempt, rare }) => [id, [status, attempt, rare.retried?.count]]))

/** How the graph must have ended, if its tasks ended as they did when they ran. */
function modelState(tasks: readonly RuledTask[], graph: Graph) {
  const failed = new Set(graph.tasks.filter(({ status }) => status === 'failed').map(({ id }) => id))
  const model = GraphModel.run(tasks, (id) => (failed.has(id) ? 'failed' : 'success'))
  return tasks.map(({ id }) => [id, model.stateOf(id)])
}

/** The task and all that depend on it, by their definitions. */
function downstream(
  tasks: readonly { readonly id: string; readonly depends_on: readonly string[] }[],
  id: string,
): Set<string> {
  const found = new Set([id])
  for (let size = 0; size < found.size; ) {
    size = found.size
    for (const each of tasks) if (each.depends_on.some((name) => found.has(name))) found.add(each.id)
  }
  return found
}

/** All that runs again with `task`, if it is retried alone after the end of `graph`. */
function again(tasks: readonly RuledTask[], graph: Graph, task: Task): Set<string> {
  const root = task.childOf?.parent ?? task
  const found = downstream(tasks, root.id)
  const isNamed = (child: Task) =>
    root === task
      ? child.status === 'cancelled' || (child.status === 'failed' && !child.continuesOnError)
      : child === task
  for (const child of graph.tasks) {
    if (child.childOf === undefined || !found.has(child.childOf.parent.id)) continue
    const { parent } = child.childOf
    if (parent !== root) found.add(child.id)
    else if (isNamed(child)) for (const id of downstream(definitionsOf(graph), child.id)) found.add(id)
  }
  return found
}

const definitionsOf = ({ tasks }: Graph) => tasks.map(({ id, dependsOn = [] }) => ({ id, depends_on: dependsOn }))

/** What a retry in an ended graph is refused for: lists that may have changed, and a failure that would end it at once. */
const REFUSALS = /has run for its list|\(fail_fast\): retry task/

/** The model does not know of a parent that fails because of children that an earlier run of it has cancelled (`fail_fast`). */
const isNameable = (task: Task) => isRetryable(task) && task.childOf?.parent.options.fail_fast !== true

const NO_KEY = { body: new Uint8Array(), by: undefined }

const refusal = (error: unknown): string => {
  if (error instanceof ServiceError && error.status === 409) return error.message
  throw error
}

/** `numRuns` graphs end as their rules say after any retries. Returns how many there were, and how many while the graph ran. */
export async function testRetries(numRuns: number): Promise<{ retried: number; live: number; children: number }> {
  const retries = fc.array(
    fc.record({ pick: fc.nat(), turns: fc.nat(12), isLive: fc.boolean(), isAll: fc.boolean() }),
    {
      minLength: 1,
      maxLength: 4,
    },
  )
  let retried = 0
  let live = 0
  let children = 0
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
        const failed = graph.tasks.filter(isNameable)
        if (failed.length === 0) continue
        const task = failed[pick % failed.length]!
        const before = graph.tasks.map(({ attempt }) => attempt)
        const expected = again(tasks, graph, task)
        const wasLive = graph.live > 0
        const result = await (isAll
          ? retryGraph(w.parts, graph.id, NO_KEY)
          : retryTask(w.parts, { id: task.id, graphId: graph.id }, NO_KEY)
        ).catch(refusal)
        if (!result.startsWith('{')) {
          if (!wasLive && !isAll) expect(result).toMatch(REFUSALS)
          continue
        }
        retried++
        if (wasLive) live++
        if (expected.size > downstream(tasks, task.id).size) children++
        if (isAll || wasLive) continue
        expect(JSON.parse(result).pending).toBe(expected.size)
        await w.over(graph)
        for (const [i, each] of graph.tasks.entries()) {
          if (!expected.has(each.id)) expect([each.id, each.attempt]).toEqual([each.id, before[i] ?? each.attempt])
          else if (each.status === 'success' || each.status === 'failed')
            expect(each.attempt).toBeGreaterThan(before[i]!)
        }
      }
      await w.over(graph)
      expect(w.faults).toEqual([])
      expect(statesOf(graph.submitted)).toEqual(modelState(tasks, graph))
      expect([w.counters.tasksRunning, w.store.endedTaskCount]).toEqual([0, graph.tasks.length])
      await w.stop()

      const next = await life(dir.path, tasks)
      const [found] = [...next.store.graphs]
      expect(recordsOf(found!)).toEqual(recordsOf(graph))
      await next.stop()
    }),
    { numRuns, endOnFailure: true },
  )
  return { retried, live, children }
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
      const failed = graph.tasks.filter(isNameable)
      if (failed.length > 0) {
        const task = failed[pick % failed.length]!
        await retryTask(w.parts, { id: task.id, graphId: graph.id }, NO_KEY).catch(refusal)
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
          expect(statesOf(found.submitted)).toEqual(modelState(tasks, found))
        }
        await next.stop()
      }
      await w.stop()
    }),
    { numRuns, endOnFailure: true },
  )
}
