/**
 * Goal: nothing of what is paused starts, what runs goes on, and afterwards a graph ends as without the pause.
 * Method: a property test with random graphs and pauses, and each way in which a task starts.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import type { Graph, Task } from '../../../control/task/graph.ts'
import { SERVICE } from '../../../control/task/pauses.ts'
import { waitingOf } from '../../../control/task/waiting.ts'
import type { TaskInput } from '../../../shared/contract/submission.ts'
import { nextTurn } from '../../../shared/process/steps.ts'
import { memoryKeeper } from '../../support/memory-keeper.ts'
import { randomGraph } from '../../support/random-graph.ts'
import { after, task, World } from '../../support/scheduler-world.ts'
import { until } from '../../support/until.ts'

const PAUSE = { since: 0 }

/** A world in which graphs, types and the service can be paused. */
function pausable(maxConcurrency = 2) {
  const own = memoryKeeper()
  const { promise, resolve: open } = Promise.withResolvers<void>()
  const executors = new ExecutorRegistry([{ type: 'mcp', execute: () => promise }])
  const world = new World({ keeper: own, executors, maxConcurrency })
  executors.register(world.executor)
  const { pauses } = own
  return {
    world,
    /** Ends what `gate` starts. */
    open,
    pauseGraph: (graph: Graph) => world.store.apply({ kind: 'graph-paused', graph, pause: PAUSE, at: 1 }),
    resumeGraph: (graph: Graph) => world.store.apply({ kind: 'graph-resumed', graph, at: 1 }),
    pause: (key = SERVICE) => pauses.set(key, PAUSE),
    resume: (key = SERVICE) => pauses.set(key, undefined),
    waits: (id: string) => waitingOf(world.task(id), world.scheduler.slotUse, Date.now())?.reason,
  }
}

const gate = (id: string, more: TaskInput = {}): TaskInput => ({ id, type: 'mcp', ...more })

const started = (world: World, id: string) => until(() => world.task(id).status, 'running')

const turns = async (count: number) => {
  for (let i = 0; i < count; i++) await nextTurn()
}

const randomTasks = fc
  .tuple(
    randomGraph({ type: 'test', maxTasks: 10 }),
    fc.array(
      fc.record({
        turns: fc.nat(2),
        fails: fc.nat(3),
        retry: fc.nat(2),
        run_if: fc.constantFrom('success', 'always', 'failure'),
        for_each: fc.option(fc.array(fc.constant(0), { maxLength: 3 }), { freq: 4 }),
        queue_timeout: fc.constantFrom(0, 60_000),
      }),
      { minLength: 10, maxLength: 10 },
    ),
  )
  .map(([tasks, more]) =>
    tasks.map((each, i): TaskInput => {
      const { turns, fails, retry, run_if, for_each, queue_timeout } = more[i]!
      const input = { turns, outcomes: Array.from({ length: fails }, () => 'fail' as const) }
      const rules = { ...(run_if !== 'success' && { run_if: run_if as 'always' }), ...(for_each && { for_each }) }
      return { ...each, ...rules, input, retry, queue_timeout, backoff: { initial_ms: 1, max_ms: 1 } }
    }),
  )

const randomPauses = fc.array(
  fc.record({
    of: fc.constantFrom('service', 'type', 'first', 'second'),
    within: fc.option(fc.constantFrom('service', 'type', 'first', 'second')),
    afterStarts: fc.nat(8),
    turns: fc.integer({ min: 1, max: 12 }),
  }),
  { maxLength: 4 },
)

const endsOf = ({ graphs }: World) =>
  graphs.map(({ tasks }) => tasks.map(({ id, status, attempt }) => `${id} ${status} ${attempt}`).sort())

test('nothing starts between a pause and its end, and every graph ends as without it', async () => {
  const both = fc.tuple(randomTasks, randomTasks)
  await fc.assert(
    fc.asyncProperty(both, randomPauses, fc.integer({ min: 1, max: 4 }), async (submitted, pauses, limit) => {
      const graphsOf = (of: World) =>
        submitted.map((tasks, g) => {
          const named = (id: string) => `${g}/${id}`
          const own = tasks.map((each) => ({ ...each, id: named(each.id!), depends_on: each.depends_on!.map(named) }))
          return of.submit(own)
        })
      const plain = new World({ keeper: memoryKeeper(), maxConcurrency: limit })
      graphsOf(plain)
      const { world, pause, resume, pauseGraph, resumeGraph } = pausable(limit)
      const graphs = graphsOf(world)
      const isOf = (of: string, { graph }: Task) =>
        of === 'service' || of === 'type' || graph === graphs[of === 'first' ? 0 : 1]
      const begun = new Map<Task, number>()
      const paused: string[] = []
      const faults: string[] = []
      world.store.watch((change) => {
        if (change.kind !== 'attempt-started' && change.kind !== 'fanned-out') return
        begun.set(change.task, (begun.get(change.task) ?? 0) + 1)
        if (paused.some((of) => isOf(of, change.task))) faults.push(`${change.task.id} started while paused`)
      })
      const begin = (of: string) => {
        if (of === 'service') void pause()
        else if (of === 'type') void pause('test')
        else if (graphs[of === 'first' ? 0 : 1]!.live > 0) pauseGraph(graphs[of === 'first' ? 0 : 1]!)
        else return
        paused.push(of)
      }
      const end = (of: string) => {
        if (!paused.includes(of)) return
        paused.splice(paused.indexOf(of), 1)
        if (paused.includes(of)) return
        if (of === 'service') void resume()
        else if (of === 'type') void resume('test')
        else if (graphs[of === 'first' ? 0 : 1]!.pause !== undefined) resumeGraph(graphs[of === 'first' ? 0 : 1]!)
      }
      for (const { of, within, afterStarts, turns: length } of pauses) {
        while (begun.size < afterStarts && !world.isOver) await nextTurn()
        begin(of)
        await turns(length)
        if (within !== null) begin(within)
        await turns(length)
        end(of)
        await turns(length)
        if (within !== null) end(within)
      }
      await Promise.all([world.over(), plain.over()])
      expect(faults).toEqual([])
      expect(endsOf(world)).toEqual(endsOf(plain))
      expect(world.scheduler.queueLength).toBe(0)
    }),
    { numRuns: 60 },
  )
})

describe('while it is paused', () => {
  test('an attempt that runs goes on, and what follows waits, also a cleanup', async () => {
    const { world, open, pauseGraph, resumeGraph, waits } = pausable()
    const graph = world.submit([
      gate('runs'),
      task('next', {}, after('runs')),
      task('cleans', {}, { ...after('runs'), run_if: 'always' }),
    ])
    await started(world, 'runs')
    pauseGraph(graph)
    world.submit([task('other')])
    await until(() => world.task('other').status, 'success')
    open()
    await until(() => world.task('runs').status, 'success')
    await turns(5)
    for (const id of ['next', 'cleans']) expect([world.task(id).status, waits(id)]).toEqual(['pending', 'pause'])
    resumeGraph(graph)
    await world.over()
    expect(graph.pause).toBeUndefined()
  })

  test('a retry waits once its backoff is over', async () => {
    const { world, pause, resume, waits } = pausable()
    const backoff = { initial_ms: 1, max_ms: 1 }
    world.submit([task('again', { outcomes: ['fail'] }, { retry: 1, backoff })])
    await until(() => world.task('again').rare.isBackingOff, true)
    await pause('test')
    await until(() => waits('again'), 'pause')
    await turns(5)
    expect(world.task('again').attempt).toBe(1)
    await resume('test')
    await world.over()
    expect([world.task('again').status, world.task('again').attempt]).toEqual(['success', 2])
  })

  test('a pause does not count for queue_timeout, whether the task came before it or after', async () => {
    const { world, open, pauseGraph, resumeGraph, waits } = pausable(1)
    world.submit([gate('holds')])
    await started(world, 'holds')
    const waiting = (id: string) => task(id, {}, { queue_timeout: 700 })
    const approval = { id: 'asked', type: 'approval', params: {} }
    const graph = world.submit([waiting('before'), approval, { ...waiting('after'), ...after('asked') }])
    await until(() => world.task('asked').rare.asked_at !== undefined, true)
    expect(world.scheduler.queueLength).toBe(1)
    pauseGraph(graph)
    world.scheduler.answer(world.task('asked'), { approved: true, who: 'ada', at: '' })
    expect(world.scheduler.queueLength).toBe(0)
    await Bun.sleep(750) // longer than the limit: time is what is tested
    for (const id of ['before', 'after']) expect([world.task(id).status, waits(id)]).toEqual(['pending', 'pause'])
    open()
    await until(() => world.task('holds').status, 'success')
    resumeGraph(graph)
    await world.over()
    expect(graph.tasks.map(({ status }) => status)).toEqual(['success', 'success', 'success'])
  })

  test('an approval that was asked for takes an answer, and none is asked for', async () => {
    const { world, pauseGraph, resumeGraph, waits } = pausable()
    const approval = (id: string, more: TaskInput = {}) => ({ id, type: 'approval', params: {}, ...more })
    const graph = world.submit([approval('asked'), approval('later', after('asked'))])
    await until(() => world.task('asked').rare.asked_at !== undefined, true)
    pauseGraph(graph)
    expect(waits('asked')).toBe('approval')
    expect(world.scheduler.answer(world.task('asked'), { approved: true, who: 'ada', at: '' })).toBe(true)
    await turns(5)
    expect(waits('later')).toBe('pause')
    expect(world.scheduler.answer(world.task('later'), { approved: true, who: 'ada', at: '' })).toBe(false)
    resumeGraph(graph)
    await until(() => world.task('later').rare.asked_at !== undefined, true)
  })

  test('a task with for_each makes no children, and its children do not start', async () => {
    const { world, open, pause, resume, pauseGraph, resumeGraph } = pausable(1)
    await pause()
    world.submit([task('map', {}, { for_each: [1, 2] })])
    await turns(10)
    expect(world.task('map').fanOut).toBeUndefined()
    await resume()
    await world.over()
    const graph = world.submit([task('late', {}, { for_each: [1, 2] })])
    pauseGraph(graph) // its list is being determined
    await turns(10)
    expect(world.task('late').fanOut).toBeUndefined()
    resumeGraph(graph)
    await world.over()
    const running = world.submit([gate('more', { for_each: [1, 2] })])
    await until(() => world.task('more').fanOut !== undefined, true)
    await started(world, 'more[0]')
    pauseGraph(running)
    open()
    await until(() => world.task('more[0]').status, 'success')
    await turns(5)
    expect(world.task('more[1]').status).toBe('pending')
    resumeGraph(running)
    await world.over()
  })

  test('tasks and graphs are cancelled, and a deleted task is forgotten', async () => {
    const { world, pause, resume, pauseGraph } = pausable()
    await pause()
    const graph = world.submit([task('a'), task('b'), task('c', {}, after('a'))])
    pauseGraph(graph)
    await resume()
    await turns(3)
    world.scheduler.delete(world.task('b'))
    await world.scheduler.cancel(world.task('a'))
    await world.over()
    expect(graph.tasks.map(({ status }) => status)).toEqual(['cancelled', 'pending', 'skipped'])
    expect([graph.pause, world.store.pausedCount]).toEqual([undefined, 0])
  })

  test('by its type with a tool, only tasks of that tool wait', async () => {
    const { world, pause, resume, waits } = pausable()
    await pause('test.x')
    world.submit([task('plain'), { id: 'tool', type: 'test', tool_name: 'x' }])
    await until(() => world.task('plain').status, 'success')
    expect(waits('tool')).toBe('pause')
    await resume('test.x')
    await world.over()
  })

  test('of two pauses, the end of one lets nothing go', async () => {
    const { world, pause, resume, pauseGraph, resumeGraph, waits } = pausable()
    await pause()
    const graph = world.submit([task('a')])
    pauseGraph(graph)
    await pause('test')
    for (const end of [() => resume(), () => resume('test')]) {
      await end()
      await turns(3)
      expect(waits('a')).toBe('pause')
    }
    resumeGraph(graph)
    await world.over()
  })
})
