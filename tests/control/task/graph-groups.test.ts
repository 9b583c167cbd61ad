/**
 * Goal: of the graphs of a group no more run than the limit of each allows, in the order of acceptance, and none waits for
 * ever. Method: random submissions, ends, cancels of waiting ones and restarts. A naive model keeps a list of all graphs
 * and works out anew after each step which of them run.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { GraphOptions } from '../../../control/rules/graph-options.ts'
import type { Graph } from '../../../control/task/graph.ts'
import { GraphGroups } from '../../../control/task/graph-groups.ts'
import type { GraphConcurrency } from '../../../shared/contract/graph-groups.ts'
import { nextTurn, runSync } from '../../../shared/process/steps.ts'
import { graphOf } from '../../support/graph.ts'
import { World } from '../../support/scheduler-world.ts'
import { until } from '../../support/until.ts'

/** A graph of the model. `leaves`: it is cancelled for another one. */
interface Known {
  readonly graph: Graph
  readonly concurrency: GraphConcurrency
  runs: boolean
  leaves: boolean
}

const limitOf = ({ limit }: GraphConcurrency) => limit ?? 1

/** All graphs of one group that have not ended, the oldest first. */
class NaiveGroup {
  known: Known[] = []

  get running(): Known[] {
    return this.known.filter(({ runs }) => runs)
  }

  settle(): void {
    for (const each of this.known) {
      if (each.runs) continue
      if (this.running.length >= limitOf(each.concurrency)) return
      each.runs = true
    }
  }

  isFull(concurrency: GraphConcurrency): boolean {
    return this.known.some(({ runs }) => !runs) || this.running.length >= limitOf(concurrency)
  }

  toCancel({ concurrency }: Known, older: readonly Known[]): Known[] {
    const found: Known[] = []
    for (const each of older) {
      if (older.filter(({ leaves }) => !leaves).length < limitOf(concurrency)) break
      if (each.leaves) continue
      each.leaves = true
      found.push(each)
    }
    return found
  }
}

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('submit' as const),
      group: fc.constantFrom('a', 'b'),
      limit: fc.constantFrom(null, 1, 2, 3),
      on_full: fc.constantFrom(null, 'wait' as const, 'wait' as const, 'cancel_oldest' as const, 'refuse' as const),
      isKept: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('end' as const), which: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const), started: fc.nat() }) },
)

test('a group is as a naive model of it', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const model = { a: new NaiveGroup(), b: new NaiveGroup() }
      const all = () => [...model.a.known, ...model.b.known]
      let begun: Graph[] = []
      let cancelled: Graph[] = []
      const newGroups = () => {
        const made = new GraphGroups()
        made.onPlace = (graph) => begun.push(graph)
        made.onCancel = (graph) => cancelled.push(graph)
        return made
      }
      const cancelledFor = (graph: Graph) => {
        cancelled = []
        groups.accepted(graph)
        return cancelled
      }
      let groups = newGroups()
      const settle = (wasKept: (graph: Graph) => boolean) => {
        const before = all().filter(({ runs }) => runs)
        for (const group of [model.a, model.b]) group.settle()
        const news = all().filter((each) => each.runs && !before.includes(each) && wasKept(each.graph))
        expect(new Set(begun)).toEqual(new Set(news.map(({ graph }) => graph)))
        begun = []
        for (const { graph, runs } of all()) expect(graph.waitsFor === undefined).toBe(runs)
        for (const group of [model.a, model.b])
          for (const { graph, runs } of group.known)
            if (!runs) expect([...graph.waitsFor!]).toEqual(group.running.map((each) => each.graph))
      }
      for (const each of steps) {
        if (each.kind === 'submit') {
          const concurrency = { group: each.group, limit: each.limit, on_full: each.on_full }
          const graph = graphOf([{ id: 'a', type: 'test' }], undefined, undefined, { concurrency })
          const group = model[each.group]
          const isFull = group.isFull(concurrency)
          if (each.on_full === 'refuse' && isFull) {
            const fault = `concurrency: group "${each.group}" is full (limit ${limitOf(concurrency)}): graph ${group.running[0]!.graph.id} has not ended`
            expect(groups.whyRefused(graph.options)).toBe(fault)
            expect(() => groups.claim(graph)).toThrow(fault)
            continue
          }
          groups.claim(graph)
          const older = [...group.known]
          const known = { graph, concurrency, runs: false, leaves: false }
          group.known.push(known)
          settle(() => false)
          if (!each.isKept) {
            groups.release(graph) // it could not be written
            group.known = older
            settle(() => true)
            continue
          }
          expect(groups.keep(graph)).toBe(!known.runs)
          const toCancel = !known.runs && each.on_full === 'cancel_oldest' ? group.toCancel(known, older) : []
          expect(cancelledFor(graph)).toEqual(toCancel.map((other) => other.graph))
          for (const other of toCancel) expect(groups.whyCancelled(other.graph)).toContain(graph.id)
        } else if (each.kind === 'end') {
          const known = all()[each.which % Math.max(1, all().length)]
          if (known === undefined) continue
          known.graph.live = 0
          groups.release(known.graph)
          for (const group of [model.a, model.b]) group.known = group.known.filter((other) => other !== known)
          settle(() => true)
        } else {
          // Those that run may have started a task on disk, or may not.
          all().forEach(({ graph, runs }, i) => {
            if (runs && (each.started >> (i % 16)) & 1) graph.tasks[0]!.attempt = 1
            graph.waitsFor = undefined
          })
          groups = newGroups()
          groups.recover(all().map(({ graph }) => graph))
          for (const group of [model.a, model.b]) {
            for (const known of group.known) {
              known.runs &&= known.graph.tasks[0]!.attempt > 0
              known.leaves = false
            }
            // As the order in which the places were taken.
            group.known = [...group.running, ...group.known.filter(({ runs }) => !runs)]
          }
          const ran = new Set(all().filter(({ runs }) => runs))
          settle(() => false)
          for (const group of [model.a, model.b])
            group.known.forEach((known, i) => {
              if (!ran.has(known)) expect(groups.keep(known.graph)).toBe(!known.runs)
              if (known.runs || known.concurrency.on_full !== 'cancel_oldest') return
              const older = group.known.slice(0, i)
              const toCancel = group.toCancel(known, older)
              expect(cancelledFor(known.graph)).toEqual(toCancel.map((other) => other.graph))
            })
        }
      }
    }),
    { numRuns: 500 },
  )
})

test('graphs run one after the other, whatever starts, ends and is cancelled in them', async () => {
  const task = fc.record({
    run_if: fc.constantFrom(null, 'success' as const, 'failed' as const, 'always' as const),
    turns: fc.nat(2),
    outcome: fc.constantFrom('ok' as const, 'fail' as const),
    cancel: fc.nat(5),
  })
  const graphs = fc.array(fc.array(task, { minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: 5 })
  const limits = fc.constantFrom(1, 2)
  await fc.assert(
    fc.asyncProperty(graphs, limits, async (described, limit) => {
      const active = new Set<Graph>()
      const world = new World({}, ({ graph }) => {
        expect(graph.waitsFor).toBeUndefined()
        active.add(graph)
        const unended = [...active].filter(({ live }) => live > 0)
        expect(unended.length).toBeLessThanOrEqual(limit)
      })
      const options = { concurrency: { group: 'g', limit } }
      const submitted = described.map((tasks, g) => {
        const inputs = tasks.map(({ run_if, turns, outcome }, i) => ({
          ...{ id: `${g}/${i}`, type: 'test', run_if, input: { turns, outcomes: [outcome] } },
          depends_on: i === 0 ? [] : [`${g}/${i - 1}`],
        }))
        let graph: Graph | undefined
        world.submit(
          inputs,
          (each) => {
            if (graph === undefined) world.scheduler.groups.claim(each.graph)
            graph = each.graph
          },
          options,
        )
        return graph!
      })
      for (const [g, tasks] of described.entries())
        for (const [i, { cancel }] of tasks.entries()) {
          if (cancel === 0) void world.scheduler.cancel(submitted[g]!.tasks[i]!)
          if (cancel === 1 && submitted[g]!.tasks[i]!.status === 'pending')
            world.scheduler.delete(submitted[g]!.tasks[i]!)
          if (cancel === 2) await nextTurn()
        }
      await world.over()
    }),
    { numRuns: 200 },
  )
})

test('a graph that is on disk only after the one that it is cancelled for does not run', async () => {
  const world = new World()
  const { groups } = world.scheduler
  const options: GraphOptions = { concurrency: { group: 'g', on_full: 'cancel_oldest' } }
  const slow = graphOf([{ id: 'slow', type: 'test' }], undefined, undefined, options)
  runSync(world.store.claim(slow))
  groups.claim(slow)
  const quick = world.submit([{ id: 'quick', type: 'test' }], ({ graph }) => groups.claim(graph), options)
  expect(quick.tasks[0]!.status).toBe('pending')
  world.store.apply({ kind: 'graph-accepted', graph: slow })
  world.scheduler.add(slow)
  await until(() => quick.tasks[0]!.status, 'success')
  expect(slow.tasks[0]!.status).toBe('cancelled')
  expect(world.executor.starts.map(({ id }) => id)).toEqual(['quick'])
})
