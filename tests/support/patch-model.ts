/**
 * Goal: after any patches while it runs, a graph ends as the rules say for the tasks that it has then. No task starts before what
 * it depends on has ended, and a restart from any part of the journal finds a graph between two patches, which ends so, too.
 * Method: random graphs with rules, lists and groups, the real log, and the model of graphs.
 */
import { expect } from 'bun:test'
import { readdirSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { approval } from '../../control/executors/approval.ts'
import { ExecutorRegistry } from '../../control/executors/registry.ts'
import { CallerQuotas } from '../../control/operations/caller-quotas.ts'
import type { OperationParts } from '../../control/operations/parts.ts'
import { patchGraph } from '../../control/operations/patch-graph.ts'
import { Scheduler } from '../../control/scheduler/scheduler.ts'
import { Counters } from '../../control/task/counters.ts'
import type { Graph, Task } from '../../control/task/graph.ts'
import { Retention } from '../../control/task/retention.ts'
import { ServiceError } from '../../shared/contract/errors.ts'
import type { OnEndState } from '../../shared/contract/on-end.ts'
import { silentLog } from '../../shared/logs/log.ts'
import { nextTurn, runSync } from '../../shared/process/steps.ts'
import { GraphModel } from '../model/graph-model.ts'
import { liveCopy } from './durable-store.ts'
import { openEmbedded } from './embedded-keeper.ts'
import { graphOf } from './graph.ts'
import { NO_COMMANDS } from './operation-parts.ts'
import { endingsOf, outcomesOf, type RuledTask, randomEndings, ruledGraph } from './ruled-graph.ts'
import { ScriptedExecutor } from './scripted-executor.ts'
import { tempDir } from './temp.ts'
import { until } from './until.ts'

/** Only graphs that end in one way, whatever comes first. One task lasts longer than most patches take. */
const graphs = fc
  .tuple(ruledGraph(8), fc.nat(60))
  .map(([tasks, turns]) => [
    ...tasks.map(({ fail_fast: _, ...each }) => each as RuledTask),
    { id: 'long', type: 'test', depends_on: [], input: { turns, outcomes: [] } } as RuledTask,
  ])

interface RandomPatch {
  readonly turns: number
  readonly add: readonly RuledTask[]
  /** Which tasks of the graph the new ones depend on, and which of them go or get another definition. */
  readonly picks: readonly number[]
  readonly remove: number | undefined
  readonly replace: number | undefined
}

const pick = fc.option(fc.nat(), { nil: undefined, freq: 2 })
const patches: fc.Arbitrary<RandomPatch[]> = fc.array(
  fc.record({
    turns: fc.nat(8),
    add: ruledGraph(3).map((tasks) => tasks.map(({ fail_fast: _, ...each }) => each as RuledTask)),
    picks: fc.array(fc.nat(), { minLength: 3, maxLength: 3 }),
    remove: pick,
    replace: pick,
  }),
  { minLength: 1, maxLength: 5 },
)

/** The patch number `n` for `tasks`, and what they are after it. */
function patchOf(tasks: readonly RuledTask[], { add, picks, remove, replace }: RandomPatch, n: number) {
  const nameOf = (id: string) => `n${n}.${add.findIndex((other) => other.id === id)}`
  const added = add.map((each, i): RuledTask => {
    const depends_on = [...each.depends_on.map(nameOf), ...(i % 2 === 0 ? [at(tasks, picks[i]!).id] : [])]
    const { when, for_each, elements: _, ...rest } = each
    const condition = when && { when: { ...when, $from: nameOf(when.$from) } }
    const list = Array.isArray(for_each) && { for_each }
    return { ...rest, ...condition, ...list, id: `n${n}.${i}`, depends_on } as RuledTask
  })
  const gone = remove === undefined ? undefined : at(tasks, remove).id
  const old = replace === undefined ? undefined : at(tasks, replace)
  const next: RuledTask | undefined =
    old && old.id !== gone
      ? ({ id: old.id, type: 'test', depends_on: old.depends_on, input: { turns: 1, outcomes: [] } } as RuledTask)
      : undefined
  const body = {
    ...{ add: added, remove: gone === undefined ? [] : [gone] },
    replace: next === undefined ? [] : [next],
  }
  const after = tasks.filter(({ id }) => id !== gone).map((each) => (each.id === next?.id ? next : each))
  return { body, after: [...after, ...added] }
}

const at = <T>(list: readonly T[], number: number): T => list[number % list.length]!

/** What `task` did although a dependency, or one of its parent, has not ended. */
function earlyOf({ id, graph, childOf, dependsOn = [], atEnd }: Task): string[] {
  const others = atEnd === undefined ? [] : graph.tasks.filter((other) => other.atEnd === undefined)
  const open = [...dependsOn.map((name) => graph.tasks.find((other) => other.id === name)!), ...others].filter(
    ({ isTerminal }) => !isTerminal,
  )
  const own = open.map((other) => `${id} came before the end of ${other.id}`)
  return childOf === undefined ? own : [...own, ...earlyOf(childOf.parent)]
}

/** A start of the service on `dir`. */
async function life(dir: string, ends: Map<string, RuledTask['ends']>) {
  const { store, keeper } = await openEmbedded(dir)
  const counters = new Counters(store)
  const retention = new Retention({ store, retentionMs: 0, maxStoredTasks: 1_000, log: silentLog() })
  const faults: string[] = []
  const executor: ScriptedExecutor = new ScriptedExecutor(({ id }) => {
    for (const graph of store.graphs) for (const task of graph.tasks) if (task.id === id) faults.push(...earlyOf(task))
  })
  const executors = new ExecutorRegistry([executor, approval])
  const scheduler = new Scheduler({
    ...{ store, keeper, executors, log: silentLog() },
    ...{ maxConcurrency: 3, abandonAfterMs: 60_000, serviceId: 'test' },
    onFault: (fault) => faults.push(fault),
  })
  const more = { quotas: new CallerQuotas(store, NO_COMMANDS), readiness: { ensure: () => {} }, log: silentLog() }
  const limits = { maxFanOut: 1_000, maxGraphResultBytes: 1_000_000, unknownFields: 'ignore' }
  const parts = { store, scheduler, keeper, executors, retention, ...more, ...limits } as unknown as OperationParts
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
  return { store, keeper, scheduler, counters, faults, parts, answerAll, over, stop }
}

type Life = Awaited<ReturnType<typeof life>>

const submittedOf = (graph: Graph) =>
  graph.tasks.filter(({ childOf, isDeleted }) => childOf === undefined && !isDeleted)
const stateOf = (graph: Graph) => submittedOf(graph).map(({ id, status }) => [id, status])

function modelState(tasks: readonly RuledTask[]) {
  const model = GraphModel.run(tasks, outcomesOf(tasks))
  return tasks.map(({ id }) => [id, model.stateOf(id)])
}

/** Runs a graph with patches. Returns the tasks that it had after each of them, the first ones first. */
async function run(
  w: Life,
  tasks: readonly RuledTask[],
  states: readonly OnEndState[],
  patches: readonly RandomPatch[],
) {
  const { on_end } = endingsOf(states)
  const options = { scope: 'graph', on_end } as const
  const atEnd = endingsOf(states).tasks
  const graph = graphOf(JSON.parse(JSON.stringify([...tasks, ...atEnd])), Date.now(), undefined, options)
  for (const each of graph.tasks) each.setRare('hasPlaceholders', each.options.for_each !== undefined || undefined)
  runSync(w.store.claim(graph))
  await w.keeper.keepGraph(graph, new TextEncoder().encode(JSON.stringify({ ...options, tasks })))
  w.store.apply({ kind: 'graph-accepted', graph })
  w.scheduler.add(graph)
  const versions = [tasks]
  const refusals: string[] = []
  for (const [n, each] of patches.entries()) {
    for (let turn = 0; turn < each.turns; turn++) {
      w.answerAll(graph)
      await nextTurn()
    }
    const { body, after } = patchOf(versions.at(-1)!, each, n)
    const patch = async (isDryRun: boolean) => {
      const call = { key: null, by: undefined, isDryRun }
      return JSON.parse(await patchGraph(w.parts, graph.id, Buffer.from(JSON.stringify(body)), call))
    }
    const { patched } = graph
    const dry = await patch(true).catch((error: unknown) => error)
    expect(graph.patched).toBe(patched)
    try {
      expect(dry).toMatchObject(await patch(false)) // what is still possible was possible before
      versions.push(after)
    } catch (error) {
      if (!(error instanceof ServiceError) || (error.status !== 409 && error.status !== 400)) throw error
      refusals.push(error.message)
    }
  }
  await w.over(graph)
  return { graph, versions: versions.map((version) => [...version, ...atEnd]), refusals }
}

const endsOf = (tasks: readonly RuledTask[], patches: readonly RandomPatch[]) => {
  const added = patches.flatMap(({ add }, n) => add.map(({ ends }, i) => [`n${n}.${i}`, ends] as const))
  return new Map([...tasks.map(({ id, ends }) => [id, ends] as const), ...added])
}

/** Patched graphs end as their tasks say, and a restart finds them so. Returns how many patches were made, and refused. */
export async function testPatches(numRuns: number): Promise<{ patched: number; refused: number }> {
  let patched = 0
  let refused = 0
  await fc.assert(
    fc.asyncProperty(graphs, randomEndings, patches, async (tasks, states, patches) => {
      using dir = tempDir()
      const ends = endsOf(tasks, patches)
      const w = await life(dir.path, ends)
      const { graph, versions, refusals } = await run(w, tasks, states, patches)
      patched += versions.length - 1
      refused += refusals.length
      expect(w.faults).toEqual([])
      expect(stateOf(graph)).toEqual(modelState(versions.at(-1)!))
      expect([w.counters.tasksRunning, w.store.endedTaskCount, graph.visible]).toEqual([
        ...[0, graph.tasks.length, graph.tasks.length],
      ])
      expect(graph.tasks.map(({ position }) => position)).toEqual([...graph.tasks.keys()])
      await w.stop()
      const next = await life(dir.path, ends)
      const [found] = [...next.store.graphs]
      expect(stateOf(found!)).toEqual(stateOf(graph))
      expect(found!.patched).toEqual(graph.patched)
      await next.stop()
    }),
    { numRuns, endOnFailure: true },
  )
  return { patched, refused }
}

/** A kill leaves all of a patch or nothing of it, and the graph goes on from there. */
export async function testKills(numRuns: number): Promise<void> {
  const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 5, maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(graphs, randomEndings, patches, cuts, async (tasks, states, patches, cuts) => {
      using dir = tempDir()
      const ends = endsOf(tasks, patches)
      const first = await life(dir.path, ends)
      const { versions } = await run(first, tasks, states, patches)
      await first.keeper.kept('promise')
      for (const part of cuts) {
        using copy = liveCopy([dir.path])
        const [name] = readdirSync(copy.path).filter((file) => file.startsWith('journal-'))
        const path = join(copy.path, name!)
        truncateSync(path, Math.floor(statSync(path).size * part))
        const next = await life(copy.path, ends)
        const [found] = [...next.store.graphs]
        if (found !== undefined) {
          next.scheduler.resume(found)
          await next.over(found)
          expect(next.faults).toEqual([])
          expect(stateOf(found)).toEqual(modelState(versions[found.patched?.revision ?? 0]!))
        }
        await next.stop()
      }
      await first.stop()
    }),
    { numRuns, endOnFailure: true },
  )
}
