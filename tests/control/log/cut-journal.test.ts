/**
 * Goal: whatever a kill leaves of the journal is a state that the graph has been in, and the graph ends from there as it must.
 * Method: random graphs with rules run with the real log. Its journal is cut anywhere, in the middle of a frame too. The next
 * start runs the graph to its end, or cancels it.
 */
import { expect, test } from 'bun:test'
import { readdirSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { Scheduler } from '../../../control/scheduler/scheduler.ts'
import type { Graph, Task } from '../../../control/task/graph.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { runCooperatively, runSync } from '../../../shared/process/steps.ts'
import { GraphModel } from '../../model/graph-model.ts'
import { liveCopy } from '../../support/durable-store.ts'
import { openEmbedded } from '../../support/embedded-keeper.ts'
import { graphOf } from '../../support/graph.ts'
import { endingsOf, outcomesOf, type RuledTask, randomEndings, ruledGraph } from '../../support/ruled-graph.ts'
import { ScriptedExecutor } from '../../support/scripted-executor.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

/** Only graphs that end in one way, whatever comes first. */
const graphs = ruledGraph(10).map((tasks) => tasks.map(({ fail_fast: _, ...each }) => each as RuledTask))

/** A start of the service on `dir`. `faults` has each start of an attempt that came too early. */
async function life(dir: string, tasks: readonly RuledTask[]) {
  const { store, keeper } = await openEmbedded(dir)
  const faults: string[] = []
  const executor: ScriptedExecutor = new ScriptedExecutor(({ id }) => {
    for (const graph of store.graphs) for (const task of graph.tasks) if (task.id === id) faults.push(...earlyOf(task))
  })
  const scheduler = new Scheduler({
    ...{ store, keeper, executors: new ExecutorRegistry([executor]), log: silentLog() },
    ...{ maxConcurrency: 3, abandonAfterMs: 60_000, serviceId: 'test' },
  })
  const ends = new Map(tasks.map(({ id, ends }) => [id, ends]))
  /** Runs to the end of `graph`, and answers what it asks. */
  const over = (graph: Graph) =>
    until(() => {
      for (const task of graph.tasks) {
        const end = ends.get(task.id)
        if (end === 'approved' || end === 'rejected')
          scheduler.answer(task, { approved: end === 'approved', who: 'ada', at: 'now' })
      }
      return graph.live
    }, 0)
  return { store, keeper, scheduler, faults, over }
}

/** What `task` did although a dependency, or one of its parent, has not ended. */
function earlyOf({ id, graph, childOf, dependsOn = [], atEnd }: Task): string[] {
  const others = atEnd === undefined ? [] : graph.tasks.filter((other) => other.atEnd === undefined)
  const open = [...dependsOn.map((name) => graph.tasks.find((other) => other.id === name)!), ...others].filter(
    ({ isTerminal }) => !isTerminal,
  )
  const own = open.map((other) => `${id} came before the end of ${other.id}`)
  return childOf === undefined ? own : [...own, ...earlyOf(childOf.parent)]
}

/** Whether it has done anything, or is about to. */
const hasBegun = ({ startedAt, attempt, fanOut, rare }: Task): boolean =>
  startedAt !== undefined || attempt > 0 || fanOut !== undefined || rare.asked_at !== undefined

/** Cuts the journal of a copy of `dir` after that part of its bytes. */
function cutCopy(dir: string, part: number) {
  const copy = liveCopy([dir])
  const segments = readdirSync(copy.path).filter((name) => name.startsWith('journal-'))
  expect(segments.length).toBe(1)
  const path = join(copy.path, segments[0]!)
  truncateSync(path, Math.floor(statSync(path).size * part))
  return copy
}

test('a graph goes on from any part of its journal', async () => {
  const cuts = fc.array(fc.record({ part: fc.double({ min: 0, max: 1, noNaN: true }), isCancelled: fc.boolean() }), {
    minLength: 5,
    maxLength: 5,
  })
  await fc.assert(
    fc.asyncProperty(graphs, randomEndings, cuts, async (submitted, states, cuts) => {
      using dir = tempDir()
      const endings = endingsOf(states)
      const options = { scope: 'graph', on_end: endings.on_end } as const
      const tasks = [...submitted, ...endings.tasks]
      const first = await life(dir.path, tasks)
      const body = { ...options, tasks: submitted }
      const graph = graphOf(JSON.parse(JSON.stringify(tasks)), Date.now(), undefined, options)
      for (const each of graph.tasks) each.setRare('hasPlaceholders', each.options.for_each !== undefined || undefined)
      runSync(first.store.claim(graph))
      await first.keeper.keepGraph(graph, new TextEncoder().encode(JSON.stringify(body)))
      first.store.apply({ kind: 'graph-accepted', graph })
      first.scheduler.add(graph)
      await first.over(graph)
      expect(first.faults).toEqual([])
      await first.keeper.kept('promise')

      const alone = GraphModel.run(tasks, outcomesOf(tasks))
      for (const { part, isCancelled } of cuts) {
        using copy = cutCopy(dir.path, part)
        const next = await life(copy.path, tasks)
        const [found] = [...next.store.graphs]
        if (found !== undefined) {
          const early = found.tasks.filter(hasBegun).flatMap(earlyOf)
          expect(early).toEqual([])
          next.scheduler.resume(found)
          if (isCancelled) {
            const open = found.tasks.filter(({ isTerminal, waitsForEnd }) => !isTerminal && !waitsForEnd)
            await runCooperatively(next.scheduler.cancelAll(open, () => {}))
          }
          await next.over(found)
          expect(next.faults).toEqual([])
          if (!isCancelled) {
            const ends = found.tasks
              .filter(({ childOf }) => childOf === undefined)
              .map(({ id, status }) => [id, status])
            expect(ends).toEqual(tasks.map(({ id }) => [id, alone.stateOf(id)]))
          }
        }
        await next.scheduler.stop(0)
        await next.keeper.stop()
      }
      await first.scheduler.stop(0)
      await first.keeper.stop()
    }),
    { numRuns: 25, endOnFailure: true },
  )
})
