/**
 * Goal: every task runs when it may, as often as it must, never too many at once, and each comes to its end.
 * Method: the real scheduler, store and registry with an executor that follows a script. Random graphs run with random
 * scripts and random deletes and cancels in between; what came of each task is compared with what its script, its
 * dependencies and what was done to it allow.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ExecutableTask, Executor, ExecutorContext } from '../../../control/executors/executor.ts'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import type { Handle } from '../../../control/graph/cold-fields.ts'
import type { Graph, Task } from '../../../control/graph/graph.ts'
import { type LossReason, skipReason } from '../../../control/graph/transitions.ts'
import { Scheduler, type SchedulerOptions } from '../../../control/scheduler/scheduler.ts'
import { Counters } from '../../../control/store/counters.ts'
import { TaskStore } from '../../../control/store/tasks.ts'
import type { TaskInput } from '../../../shared/contract/control.ts'
import type { TaskStatus } from '../../../shared/contract/task-status.ts'
import { silentLog } from '../../../shared/log.ts'
import { nextTurn } from '../../../shared/steps.ts'
import { acceptGraph, taskIn } from '../../support/graph.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { randomGraph } from '../../support/random-graph.ts'
import { type Script, ScriptedExecutor } from '../../support/scripted-executor.ts'
import { until } from '../../support/until.ts'

/** A scheduler with all that it works with. */
class World {
  readonly store = new TaskStore()
  readonly counters = new Counters(this.store)
  readonly executor: ScriptedExecutor
  readonly graphs: Graph[] = []
  readonly scheduler: Scheduler
  readonly #tasks = new Map<string, Task>()

  constructor(options: Partial<SchedulerOptions> = {}, onStart: (task: Task) => void = () => {}) {
    this.executor = new ScriptedExecutor(({ id }) => onStart(this.task(id)))
    this.scheduler = this.newScheduler(options)
  }

  newScheduler(options: Partial<SchedulerOptions> = {}): Scheduler {
    return new Scheduler({
      store: this.store,
      executors: new ExecutorRegistry([this.executor]),
      maxConcurrency: 10,
      log: silentLog(),
      abandonAfterMs: 60_000,
      serviceId: 'test',
      flushOrThrow: () => {},
      flush: () => {},
      ...options,
    })
  }

  submit(tasks: TaskInput[]): Graph {
    const graph = acceptGraph(this.store, tasks)
    this.graphs.push(graph)
    for (const each of graph.tasks) this.#tasks.set(each.id, each)
    this.scheduler.add(graph)
    return graph
  }

  /** The task that was submitted last under `id`, be it deleted or not. */
  task(id: string): Task {
    const found = this.#tasks.get(id)
    if (found === undefined) throw new Error(`no task ${id} was submitted`)
    return found
  }

  get isOver(): boolean {
    return this.graphs.every((graph) => graph.live === 0)
  }

  async over(): Promise<void> {
    await until(
      () => this.graphs.map((graph) => graph.live),
      (live) => live.every((count) => count === 0),
    )
  }

  /** Waits until exactly `count` attempts execute. */
  async executing(count: number): Promise<void> {
    await until(
      () => this.executor.executing,
      (executing) => executing === count,
    )
  }
}

const task = (id: string, script: Script = {}, more: TaskInput = {}): TaskInput => ({
  id,
  type: 'test',
  input: script,
  ...more,
})

const after = (...depends_on: string[]): TaskInput => ({ depends_on })

type ScriptedTask = TaskInput & { id: string; depends_on: string[]; input: Script; retry: number }

const randomScript = fc.record({
  turns: fc.nat(3),
  outcomes: fc.oneof(
    { weight: 3, arbitrary: fc.constant([] as ('ok' | 'fail' | 'break')[]) },
    { weight: 1, arbitrary: fc.array(fc.constantFrom('ok', 'fail', 'break'), { maxLength: 3 }) },
  ),
})

/** Graphs whose tasks have scripts, with ids that are unique over all of them. */
function scriptedGraphs(options: { maxGraphs: number; maxTasks: number; maxRetry: number }) {
  const { maxGraphs, maxTasks, maxRetry } = options
  const scripted = fc
    .tuple(
      randomGraph({ type: 'test', maxTasks }),
      fc.array(fc.tuple(randomScript, fc.nat(maxRetry)), { minLength: maxTasks, maxLength: maxTasks }),
    )
    .map(([tasks, scripts]) =>
      tasks.map((each, i): ScriptedTask => ({ ...each, input: scripts[i]![0], retry: scripts[i]![1] })),
    )
  return fc.array(scripted, { minLength: 1, maxLength: maxGraphs }).map((graphs) =>
    graphs.map((tasks, g) =>
      tasks.map((each) => ({
        ...each,
        id: `${g}/${each.id}`,
        depends_on: each.depends_on.map((id) => `${g}/${id}`),
      })),
    ),
  )
}

/** Something that a caller does to a task in the middle of things. */
type Interference = {
  readonly action: 'delete' | 'cancel'
  readonly afterStarts: number
  readonly pick: number
  /** Done while an attempt starts, instead of between two turns. */
  readonly isInside: boolean
}

const interferences = (...actions: Interference['action'][]) =>
  fc.array(
    fc.record({
      action: fc.constantFrom(...actions),
      afterStarts: fc.nat(20),
      pick: fc.nat(),
      isInside: fc.boolean(),
    }),
    { maxLength: 8 },
  )

/** A run of `graphs` to their end, and what was noticed on the way. */
class Run {
  readonly world: World
  readonly faults: string[] = []
  /** The status that a task had when it was deleted or cancelled. */
  readonly deleted = new Map<string, string>()
  readonly cancelled = new Map<string, string>()
  readonly #interferences: Interference[]
  readonly #ids: string[]

  constructor(
    readonly graphs: readonly ScriptedTask[][],
    readonly maxConcurrency: number,
    interferences: readonly Interference[] = [],
  ) {
    this.#interferences = interferences.toSorted((a, b) => a.afterStarts - b.afterStarts)
    this.#ids = graphs.flat().map(({ id }) => id)
    this.world = new World({ maxConcurrency }, (started) => this.#onStart(started))
    this.world.store.watch((_, seq) => {
      if (seq !== ++this.#lastSeq) this.faults.push(`change ${seq} came after change ${this.#lastSeq - 1}`)
    })
  }

  #lastSeq = 0

  #onStart(started: Task): void {
    const { executor } = this.world
    if (executor.executing > this.maxConcurrency) this.faults.push(`${executor.executing} attempts execute at once`)
    for (const id of started.dependsOn ?? []) {
      const dependency = taskIn(started.graph, id)
      if (dependency.status !== 'success') this.faults.push(`${started.id} ran while ${id} was ${dependency.status}`)
    }
    for (const interference of this.#interferences) {
      if (interference.isInside && interference.afterStarts === executor.starts.length) this.#interfere(interference)
    }
  }

  #interfere({ action, pick }: Interference): void {
    const { store, scheduler } = this.world
    const found = store.get(this.#ids[pick % this.#ids.length]!)
    if (found === undefined) return // deleted before, or not submitted yet
    const { id, status } = found
    if (action === 'delete') {
      this.deleted.set(id, status)
      scheduler.delete(found)
      if (store.get(id) !== undefined) this.faults.push(`${id} can be seen after it was deleted`)
    } else if (!found.isTerminal) {
      if (!this.cancelled.has(id)) this.cancelled.set(id, status)
      void scheduler.cancel(found)
    }
  }

  async toItsEnd(): Promise<this> {
    for (const tasks of this.graphs) {
      this.world.submit(tasks)
      await nextTurn()
    }
    for (const interference of this.#interferences) {
      if (interference.isInside) continue
      const isDue = () => this.world.executor.starts.length >= interference.afterStarts || this.world.isOver
      while (!isDue()) await nextTurn()
      this.#interfere(interference)
    }
    await this.world.over()
    return this
  }

  /** Fails unless every task came to the end that it had to come to. */
  expectSound(): void {
    const { executor, graphs, counters, store } = this.world
    expect(this.faults).toEqual([])
    expect(executor.executing).toBe(0)
    expect(executor.peak).toBeLessThanOrEqual(this.maxConcurrency)
    const tasks = graphs.flatMap((graph) => graph.tasks)
    const scripts = new Map(this.graphs.flat().map((scripted) => [scripted.id, scripted]))
    for (const each of tasks) this.#expectRightEnd(each, scripts.get(each.id)!)

    const countOf = (status: string) => tasks.filter((each) => each.status === status).length
    expect(counters.tasksTotal).toBe(tasks.length)
    expect(counters.tasksRunning).toBe(0)
    expect({ ...counters.ended }).toEqual({
      success: countOf('success'),
      failed: countOf('failed'),
      skipped: countOf('skipped'),
      cancelled: countOf('cancelled'),
    })
    const seen = [...store.visibleTasks()].map(({ id }) => id)
    expect(seen).toEqual(tasks.map(({ id }) => id).filter((id) => !this.deleted.has(id)))
  }

  #expectRightEnd(ended: Task, { input, retry }: ScriptedTask): void {
    const { id } = ended
    const attempts = this.world.executor.startsOf(id).map((start) => start.attempt)
    expect({ id, attempts }).toEqual({ id, attempts: Array.from({ length: ended.attempt }, (_, i) => i + 1) })

    if (this.#neverRan(ended)) {
      expect({ id, status: ended.status, attempts }).toEqual({ id, status: 'pending', attempts: [] })
      return
    }
    if (this.cancelled.has(id) && ended.status === 'cancelled') {
      if (this.cancelled.get(id) === 'pending') expect({ id, attempts }).toEqual({ id, attempts: [] })
      expect({ id, error: ended.errorText }).toEqual({ id, error: 'task cancelled' })
      return
    }
    const losses = (ended.dependsOn ?? [])
      .map((dependency) => taskIn(ended.graph, dependency))
      .filter((dependency) => dependency.status !== 'success')
    if (losses.length > 0) {
      expect({ id, status: ended.status, attempts }).toEqual({ id, status: 'skipped', attempts: [] })
      const reasons = losses.map((lost) =>
        skipReason(lost.id, this.#neverRan(lost) ? 'deleted' : (lost.status as LossReason)),
      )
      expect(reasons).toContain(ended.errorText!)
      return
    }
    // A cancel that came too late changes nothing.
    const failures = [...(input.outcomes ?? []), 'ok'].indexOf('ok')
    const isSuccess = failures <= retry
    const expected = { id, status: isSuccess ? 'success' : 'failed', attempt: isSuccess ? failures + 1 : retry + 1 }
    expect({ id, status: ended.status, attempt: ended.attempt }).toEqual(
      expected as typeof expected & { status: Task['status'] },
    )
    if (isSuccess) {
      expect(ended.errorText).toBeUndefined()
      if (!this.deleted.has(id)) expect(ended.result).toEqual({ id, attempt: expected.attempt })
    } else {
      const cause =
        input.outcomes?.[retry] === 'break'
          ? `internal error: attempt ${retry + 1} broke`
          : `attempt ${retry + 1} failed`
      expect(ended.errorText).toBe(retry > 0 ? `task failed after all retries: ${cause}` : cause)
    }
  }

  /** Deleted while it was pending. */
  #neverRan({ id, status }: Task): boolean {
    return this.deleted.get(id) === 'pending' && status === 'pending'
  }
}

describe('random graphs', () => {
  const concurrency = fc.integer({ min: 1, max: 6 })

  test('run every task as its script and its dependencies have it', async () => {
    await fc.assert(
      fc.asyncProperty(
        scriptedGraphs({ maxGraphs: 3, maxTasks: 16, maxRetry: 0 }),
        concurrency,
        async (graphs, limit) => {
          const run = await new Run(graphs, limit).toItsEnd()
          run.expectSound()
        },
      ),
      { numRuns: 150 },
    )
  })

  test('run failing tasks again, as often as they may be', async () => {
    await fc.assert(
      fc.asyncProperty(
        scriptedGraphs({ maxGraphs: 6, maxTasks: 12, maxRetry: 2 }),
        concurrency,
        async (graphs, limit) => {
          const run = await new Run(graphs, limit).toItsEnd()
          run.expectSound()
        },
      ),
      { numRuns: 8 },
    )
  })

  test('stay sound when tasks are deleted in the middle', async () => {
    const graphs = scriptedGraphs({ maxGraphs: 2, maxTasks: 16, maxRetry: 0 })
    await fc.assert(
      fc.asyncProperty(graphs, concurrency, interferences('delete'), async (submitted, limit, doings) => {
        const run = await new Run(submitted, limit, doings).toItsEnd()
        run.expectSound()
      }),
      { numRuns: 200 },
    )
  })

  test('stay sound when tasks are cancelled and deleted in the middle', async () => {
    const graphs = scriptedGraphs({ maxGraphs: 2, maxTasks: 16, maxRetry: 0 })
    await fc.assert(
      fc.asyncProperty(graphs, concurrency, interferences('cancel', 'delete'), async (submitted, limit, doings) => {
        const run = await new Run(submitted, limit, doings).toItsEnd()
        run.expectSound()
      }),
      { numRuns: 200 },
    )
  })

  test('stay sound when tasks between two attempts are deleted', async () => {
    const graphs = scriptedGraphs({ maxGraphs: 4, maxTasks: 12, maxRetry: 1 })
    await fc.assert(
      fc.asyncProperty(graphs, concurrency, interferences('delete', 'cancel'), async (submitted, limit, doings) => {
        const run = await new Run(submitted, limit, doings).toItsEnd()
        run.expectSound()
      }),
      { numRuns: 8 },
    )
  })

  test('go on where a stop interrupted them', async () => {
    const held = fc.array(fc.boolean(), { minLength: 16, maxLength: 16 })
    const scripted = scriptedGraphs({ maxGraphs: 2, maxTasks: 16, maxRetry: 0 })
    await fc.assert(
      fc.asyncProperty(scripted, held, concurrency, fc.nat(30), async (graphs, holds, limit, turns) => {
        const world = new World({ maxConcurrency: limit })
        for (const tasks of graphs) {
          world.submit(tasks.map((each, i) => ({ ...each, input: { ...each.input, hangs: holds[i]! } })))
        }
        for (let turn = 0; turn < turns; turn++) await nextTurn()
        await world.scheduler.stop(0)

        const tasks = world.graphs.flatMap((graph) => graph.tasks)
        expect(world.executor.executing).toBe(0)
        const interrupted = tasks.filter((each) => each.status === 'pending' && each.attempt > 0)
        for (const each of tasks) {
          expect(each.isTerminal || each.status === 'pending').toBe(true)
          expect(each.interruptedAttempts).toBe(interrupted.includes(each) ? 1 : 0)
        }
        expect(world.counters.tasksRunning).toBe(0)

        world.executor.holds = false
        const next = world.newScheduler({ maxConcurrency: limit })
        for (const graph of world.graphs) next.resume(graph)
        await world.over()
        const scripts = new Map(graphs.flat().map((each) => [each.id, each]))
        for (const each of tasks) {
          const isLost = (each.dependsOn ?? []).some((id) => taskIn(each.graph, id).status !== 'success')
          const [first = 'ok'] = scripts.get(each.id)!.input.outcomes ?? []
          expect(each.status).toBe(isLost ? 'skipped' : first === 'ok' ? 'success' : 'failed')
          expect(each.attempt).toBe(isLost ? 0 : interrupted.includes(each) ? 2 : 1)
        }
      }),
      { numRuns: 60 },
    )
  })
})

describe('a task', () => {
  test('waits for all of its dependencies, each named once or more often', async () => {
    const world = new World({}, (started) => {
      if (started.id === 'c')
        expect(world.graphs[0]!.tasks.map(({ status }) => status)).toEqual(['success', 'success', 'running'])
    })
    world.submit([task('a', { turns: 3 }), task('b', { turns: 9 }), task('c', {}, after('a', 'b', 'a'))])
    await world.over()
    expect(world.executor.starts.map(({ id }) => id)).toEqual(['a', 'b', 'c'])
    expect(world.task('c').status).toBe('success')
  })

  test('starts in the order in which it became ready, beyond the capacity of the queue too', async () => {
    const world = new World({ maxConcurrency: 1 })
    const ids = Array.from({ length: 3_000 }, (_, i) => `t${i}`)
    world.submit(ids.map((id) => task(id)))
    await world.over()
    expect(world.executor.starts.map(({ id }) => id)).toEqual(ids)
  })

  test('whose type has no executor fails and takes its dependents along', async () => {
    const world = new World()
    world.submit([{ id: 'a', type: 'mcp', retry: 1 }, task('b', {}, after('a')), task('c')])
    await world.over()
    expect(world.task('a')).toMatchObject({
      status: 'failed',
      attempt: 2,
      errorText: 'task failed after all retries: no executor is registered for type mcp',
      failure: { code: 'internal' },
    })
    expect(world.task('b').errorText).toBe('dependency a failed')
    expect(world.task('c').status).toBe('success')
  })

  test('that failed keeps what its executor had to say', async () => {
    const { log, lines } = memoryLog()
    const world = new World({ log })
    const graph = world.submit([task('a', { outcomes: ['fail', 'fail'] }, { retry: 1 })])
    await world.over()
    expect(world.task('a')).toMatchObject({
      status: 'failed',
      errorText: 'task failed after all retries: attempt 2 failed',
      failure: { code: 'exit_nonzero', message: 'attempt 2 failed' },
      result: { attempt: 2 },
    })
    const common = { trace_id: graph.traceId, graph_id: graph.id }
    expect(lines()).toMatchObject([
      {
        msg: 'attempt failed, will be retried',
        ...common,
        task_id: 'a',
        attempt: 1,
        error: 'attempt 1 failed',
        attempts_left: 1,
      },
      { msg: 'task failed after all retries', ...common, task_id: 'a', attempt: 2, code: 'exit_nonzero' },
      { msg: 'graph ended', ...common, tasks: 1 },
    ])
  })

  test('skips only those downstream of it, each with the reason nearest to it', async () => {
    const world = new World()
    world.submit([
      task('a', { outcomes: ['fail'] }),
      task('b', {}, after('a')),
      task('c', {}, after('b')),
      task('d', {}, after('c', 'e')),
      task('e'),
      task('f', {}, after('e')),
    ])
    await world.over()
    expect(world.graphs[0]!.tasks.map(({ id, status, errorText }) => [id, status, errorText])).toEqual([
      ['a', 'failed', 'attempt 1 failed'],
      ['b', 'skipped', 'dependency a failed'],
      ['c', 'skipped', 'dependency b skipped'],
      ['d', 'skipped', 'dependency c skipped'],
      ['e', 'success', undefined],
      ['f', 'success', undefined],
    ])
  })

  test('holds no slot between two attempts', async () => {
    const world = new World({ maxConcurrency: 1 })
    const ids = Array.from({ length: 20 }, (_, i) => `t${i}`)
    world.submit([task('failing', { outcomes: ['fail'] }, { retry: 1 }), ...ids.map((id) => task(id, { turns: 1 }))])
    await until(
      () => ids.map((id) => world.task(id).status),
      (statuses) => statuses.every((status) => status === 'success'),
    )
    expect(world.task('failing')).toMatchObject({
      status: 'running',
      isBackingOff: true,
      runStatus: 'accepted',
      attempt: 1,
    })
    expect(world.counters.tasksRunning).toBe(1)
    await world.over()
    expect(world.task('failing')).toMatchObject({ status: 'success', attempt: 2 })
  })

  test('waits at least its backoff before it is tried again', async () => {
    const times: number[] = []
    const world = new World({}, () => times.push(performance.now()))
    world.submit([task('a', { outcomes: ['fail', 'break', 'fail'] }, { retry: 2 })])
    await world.over()
    expect(times).toHaveLength(3)
    expect(times[1]! - times[0]!).toBeGreaterThanOrEqual(100)
    expect(times[2]! - times[1]!).toBeGreaterThanOrEqual(200)
  })
})

describe('the limit on attempts', () => {
  test('is used in full and never exceeded; those beyond it are counted as queued', async () => {
    const world = new World({ maxConcurrency: 3 })
    world.submit(Array.from({ length: 2_000 }, (_, i) => task(`t${i}`, { hangs: true })))
    await until(
      () => world.scheduler.queueLength,
      (queued) => queued === 1_024,
    )
    expect(world.executor.executing).toBe(3)
    expect(world.counters.tasksRunning).toBe(3)
    await world.scheduler.stop(0)
    expect(world.executor.starts).toHaveLength(3)
  })

  test('counts attempts of all graphs together', async () => {
    const world = new World({ maxConcurrency: 2 })
    for (const id of ['a', 'b', 'c']) world.submit([task(id, { hangs: true })])
    await world.executing(2)
    expect(world.graphs.map((graph) => graph.tasks[0]!.status)).toEqual(['running', 'running', 'pending'])
    expect(world.scheduler.queueLength).toBe(1)
    await world.scheduler.stop(0)
  })
})

describe('large graphs', () => {
  const SIZE = 100_000

  test('run 100,000 tasks in a row, giving way to others all the while', async () => {
    const world = new World()
    let turns = 0
    const counting = setInterval(() => turns++, 1)
    world.submit(Array.from({ length: SIZE }, (_, i) => task(`t${i}`, {}, i === 0 ? {} : after(`t${i - 1}`))))
    await world.over()
    clearInterval(counting)
    expect(world.counters.ended.success).toBe(SIZE)
    expect(turns).toBeGreaterThan(5)
  })

  test('run 100,000 tasks that wait for one and that one waits for', async () => {
    const world = new World()
    const middle = Array.from({ length: SIZE }, (_, i) => task(`t${i}`, {}, after('first')))
    world.submit([task('first'), ...middle, task('last', {}, after(...middle.map(({ id }) => id!)))])
    await world.over()
    expect(world.counters.ended.success).toBe(SIZE + 2)
    expect(world.executor.starts.at(-1)!.id).toBe('last')
  })

  test('skip 100,000 tasks in a row', async () => {
    const world = new World()
    const row = Array.from({ length: SIZE }, (_, i) => task(`t${i}`, {}, i === 0 ? {} : after(`t${i - 1}`)))
    world.submit([task('t0', { outcomes: ['fail'] }), ...row.slice(1)])
    await world.over()
    expect(world.counters.ended).toMatchObject({ failed: 1, skipped: SIZE - 1 })
    expect(world.graphs[0]!.tasks.at(-1)!.errorText).toBe(`dependency t${SIZE - 2} skipped`)
  })
})

describe('a delete', () => {
  test('of a pending task keeps it from running and skips its dependents', async () => {
    const world = new World({ maxConcurrency: 1 })
    world.submit([
      task('busy', { hangs: true }),
      task('a'),
      task('b', {}, after('a')),
      task('c', {}, after('b')),
      task('d'),
    ])
    await world.executing(1)
    const a = world.task('a')
    world.scheduler.delete(a)
    expect(world.store.get('a')).toBeUndefined()
    expect(world.graphs[0]!.tasks.slice(2, 4).map(({ errorText }) => errorText)).toEqual([
      'dependency a deleted',
      'dependency b skipped',
    ])
    void world.scheduler.cancel(world.task('busy'))
    await world.over()
    expect(world.executor.starts.map(({ id }) => id)).toEqual(['busy', 'd'])
    expect(a.status).toBe('pending')
  })

  test('of a running task lets it go on and release its dependents, and frees its id at its end', async () => {
    const world = new World()
    world.submit([task('a', { turns: 5 }), task('b', {}, after('a'))])
    await world.executing(1)
    world.scheduler.delete(world.task('a'))
    expect(world.store.get('a')).toBeUndefined()
    expect(() => acceptGraph(world.store, [task('a')])).toThrow('task already active: a')
    await world.over()
    expect(world.task('a').status).toBe('success')
    expect(world.task('b').status).toBe('success')
    world.submit([task('a')])
    await world.over()
    expect(world.store.get('a')?.status).toBe('success')
  })

  test('of a running task that fails skips its dependents as ever', async () => {
    const world = new World()
    world.submit([task('a', { turns: 5, outcomes: ['fail'] }), task('b', {}, after('a'))])
    await world.executing(1)
    world.scheduler.delete(world.task('a'))
    await world.over()
    expect(world.task('b').errorText).toBe('dependency a failed')
  })

  test('of a task that ended changes nothing for those that wait for it', async () => {
    const world = new World()
    world.submit([task('a'), task('slow', { turns: 20 }), task('b', {}, after('a', 'slow'))])
    expect(world.task('a').status).toBe('success')
    world.scheduler.delete(world.task('a'))
    await world.over()
    expect(world.task('b').status).toBe('success')
  })

  test('of the last live task ends its graph', async () => {
    const { log, lines } = memoryLog()
    const world = new World({ maxConcurrency: 1, log })
    world.submit([task('busy', { hangs: true })])
    await world.executing(1)
    world.submit([task('a'), task('b', {}, after('a'))])
    world.scheduler.delete(world.task('a'))
    expect(world.graphs[1]!.live).toBe(0)
    expect(lines().filter((line) => line.msg === 'graph ended')).toHaveLength(1)
    world.scheduler.delete(world.task('b'))
    expect([...world.store.graphs]).toEqual([world.graphs[0]!])
    await world.scheduler.stop(0)
  })
})

describe('a cancel', () => {
  test('of a pending task ends it and gives all that it takes along, in the order in which they are reached', async () => {
    const world = new World({ maxConcurrency: 1 })
    world.submit([
      task('busy', { hangs: true }),
      task('a'),
      task('c', {}, after('b')),
      task('b', {}, after('a')),
      task('d', {}, after('busy')),
    ])
    await world.executing(1)
    const skipped = await world.scheduler.cancel(world.task('a'))
    expect(skipped.map(({ id }) => id)).toEqual(['b', 'c'])
    expect(world.graphs[0]!.tasks.map(({ id, status, errorText }) => [id, status, errorText])).toEqual([
      ['busy', 'running', undefined],
      ['a', 'cancelled', 'task cancelled'],
      ['c', 'skipped', 'dependency b skipped'],
      ['b', 'skipped', 'dependency a cancelled'],
      ['d', 'pending', undefined],
    ])
    expect(world.executor.starts.map(({ id }) => id)).toEqual(['busy'])
    await world.scheduler.stop(0)
  })

  test('of a running task ends it once its executor has returned, with no further attempt', async () => {
    const world = new World()
    world.submit([task('a', { hangs: true }, { retry: 3 }), task('b', {}, after('a'))])
    await world.executing(1)
    expect(await world.scheduler.cancel(world.task('a'))).toEqual([])
    expect(world.task('a')).toMatchObject({ status: 'cancelling', runStatus: 'running' })
    expect(world.task('b').status).toBe('pending')
    await world.over()
    expect(world.task('a')).toMatchObject({
      status: 'cancelled',
      attempt: 1,
      failure: { code: 'cancelled', message: 'task cancelled' },
      result: 'stopped',
    })
    expect(world.task('b').errorText).toBe('dependency a cancelled')
    expect(world.counters.ended).toMatchObject({ success: 0, failed: 0, cancelled: 1, skipped: 1 })
  })

  test('of a task between two attempts ends it at once', async () => {
    const world = new World()
    world.submit([task('a', { outcomes: ['fail'] }, { retry: 1 }), task('b', {}, after('a'))])
    expect(world.task('a').isBackingOff).toBe(true)
    const skipped = await world.scheduler.cancel(world.task('a'))
    expect(skipped.map(({ id }) => id)).toEqual(['b'])
    expect(world.task('a').status).toBe('cancelled')
    // One that waits as long from now on is due later than the cancelled one would have been.
    world.submit([task('later', { outcomes: ['fail'] }, { retry: 1 })])
    await world.over()
    expect(world.executor.startsOf('a')).toHaveLength(1)
  })

  test('of a task that has ended changes nothing', async () => {
    const world = new World()
    world.submit([task('a')])
    const { seq } = world.store
    expect(await world.scheduler.cancel(world.task('a'))).toEqual([])
    expect(world.store.seq).toBe(seq)
  })

  test('gives all 100,000 tasks that it takes along, whatever else goes on', async () => {
    const world = new World({ maxConcurrency: 1 })
    world.submit([task('busy', { hangs: true })])
    await world.executing(1)
    const rest = Array.from({ length: 100_000 }, (_, i) => task(`t${i}`, {}, after(i % 2 === 0 ? 'a' : `t${i - 1}`)))
    world.submit([task('a'), ...rest])
    let isOver = false
    const cancelling = world.scheduler.cancel(world.task('a')).finally(() => {
      isOver = true
    })
    for (let i = 0; !isOver; i++) {
      world.submit([task(`other ${i}`)])
      await nextTurn()
    }
    expect(await cancelling).toHaveLength(rest.length)
    await world.scheduler.stop(0)
  })
})

describe('progress', () => {
  test('is kept in the order of the reports, of an attempt that executes only', async () => {
    const world = new World()
    world.submit([task('a', { hangs: true })])
    await world.executing(1)
    const { context } = world.executor.starts[0]!
    context.progress('first')
    context.progress(undefined, { percent: 50 })
    void world.scheduler.cancel(world.task('a'))
    await world.over()
    context.progress('too late')
    expect(world.task('a').progress).toMatchObject([{ message: 'first' }, { data: { percent: 50 } }])
    expect(world.task('a').progress).toHaveLength(2)
  })

  test('of an attempt that is over does not count as that of the next one', async () => {
    const world = new World({}, ({ attempt }) => {
      if (attempt === 2) world.executor.starts[0]!.context.progress('late word of the first attempt')
    })
    world.submit([task('a', { outcomes: ['fail'] }, { retry: 1 })])
    await world.over()
    expect(world.task('a').attempt).toBe(2)
    expect(world.task('a').progress).toBeUndefined()
  })
})

describe('a stop', () => {
  test('lets attempts finish that do so in time, and starts nothing any more', async () => {
    const world = new World({ maxConcurrency: 2 })
    world.submit([task('a', { turns: 5 }), task('b', { turns: 9 }), task('c'), task('d', {}, after('a'))])
    await world.executing(2)
    await world.scheduler.stop(60_000)
    expect(world.graphs[0]!.tasks.map(({ status }) => status)).toEqual(['success', 'success', 'pending', 'pending'])
    expect(world.executor.starts).toHaveLength(2)
    world.submit([task('e')])
    await nextTurn()
    expect(world.executor.starts).toHaveLength(2)
  })

  test('ends what does not finish in time; its tasks are pending again and lose no retry', async () => {
    const world = new World()
    world.submit([task('a', { hangs: true, outcomes: ['fail'] }, { retry: 1 }), task('b', {}, after('a'))])
    await world.executing(1)
    await world.scheduler.stop(0)
    expect(world.task('a')).toMatchObject({
      status: 'pending',
      attempt: 1,
      interruptedAttempts: 1,
      runStatus: 'accepted',
    })
    expect(world.task('b')).toMatchObject({ status: 'pending', attempt: 0 })

    world.executor.holds = false
    world.newScheduler().resume(world.graphs[0]!)
    await world.over()
    expect(world.task('a')).toMatchObject({ status: 'success', attempt: 3, usedAttempts: 2 })
    expect(world.task('b').status).toBe('success')
  })

  test('need not wait any longer once it is told so', async () => {
    const world = new World()
    world.submit([task('a', { hangs: true })])
    await world.executing(1)
    const stopping = world.scheduler.stop(3_600_000)
    world.scheduler.interrupt()
    await stopping
    expect(world.task('a').status).toBe('pending')
  })

  test('does not wait for tasks between two attempts, which count as running until the next start', async () => {
    const world = new World()
    world.submit([task('a', { outcomes: ['fail'] }, { retry: 1 })])
    await world.scheduler.stop(60_000)
    expect(world.task('a')).toMatchObject({ status: 'running', isBackingOff: true, attempt: 1, interruptedAttempts: 0 })
  })

  test('keeps what fails meanwhile for the next start', async () => {
    const world = new World()
    world.submit([task('a', { turns: 3, outcomes: ['fail'] }, { retry: 1 })])
    await world.executing(1)
    await world.scheduler.stop(60_000)
    expect(world.task('a')).toMatchObject({ status: 'running', isBackingOff: true, attempt: 1 })
  })

  test('gives up executors that do not return', async () => {
    const deaf = { type: 'deaf', execute: () => new Promise(() => {}) }
    const store = new TaskStore()
    const scheduler = new Scheduler({
      store,
      executors: new ExecutorRegistry([{ ...deaf, type: 'test' }]),
      maxConcurrency: 1,
      log: silentLog(),
      abandonAfterMs: 1,
      serviceId: 'test',
      flushOrThrow: () => {},
      flush: () => {},
    })
    const graph = acceptGraph(store, [task('a')])
    scheduler.add(graph)
    await scheduler.stop(0)
    expect(taskIn(graph, 'a')).toMatchObject({ status: 'pending', interruptedAttempts: 1 })
  })
})

describe('an attempt that another service carries out', () => {
  const HANDLE = { id: 'there', isTaken: true }

  /** Hands its attempts over, and remembers which of them are to be ended although nobody waits for them. */
  class Elsewhere implements Executor {
    readonly type = 'test'
    readonly boundsItsStop = true
    readonly killed: string[] = []
    readonly #isDeaf: boolean

    constructor({ isDeaf = false } = {}) {
      this.#isDeaf = isDeaf
    }

    execute(_: ExecutableTask, context: ExecutorContext): Promise<unknown> {
      const { signal } = context
      context.handOver(HANDLE)
      return new Promise((resolve) => {
        if (!this.#isDeaf) signal.addEventListener('abort', () => setImmediate(resolve))
      })
    }

    killRemote(_: ExecutableTask, { id }: Handle): void {
      this.killed.push(id)
    }
  }

  const running = (executor: Elsewhere, more: TaskInput = {}) => {
    const store = new TaskStore()
    const options = { store, maxConcurrency: 1, log: silentLog(), abandonAfterMs: 1, serviceId: 'test' }
    const executors = new ExecutorRegistry([executor])
    const scheduler = new Scheduler({ ...options, executors, flushOrThrow: () => {}, flush: () => {} })
    const graph = acceptGraph(store, [task('a', {}, more)])
    scheduler.add(graph)
    return { scheduler, a: taskIn(graph, 'a') }
  }

  test('goes on there when the service stops', async () => {
    const executor = new Elsewhere()
    const { scheduler, a } = running(executor)
    await scheduler.stop(0)
    expect(a).toMatchObject({ status: 'pending', handle: HANDLE, interruptedAttempts: 0 })
    expect(executor.killed).toEqual([])
  })

  test('is ended there when it is cancelled just when the service stops', async () => {
    const executor = new Elsewhere()
    const { scheduler, a } = running(executor)
    const stopping = scheduler.stop(60_000)
    scheduler.interrupt()
    await scheduler.cancel(a)
    expect(a.status).toBe('cancelling')
    await stopping
    expect(a.status).toBe('cancelled')
    expect(executor.killed).toEqual(['there'])
  })

  test.each(['cancelled', 'failed'])('that is not seen to end is ended there once it is %s', async (status) => {
    const executor = new Elsewhere({ isDeaf: true })
    const { scheduler, a } = running(executor, { timeout: status === 'failed' ? 1 : 0 })
    if (status === 'cancelled') await scheduler.cancel(a)
    else await Bun.sleep(5) // it has timed out: nobody can see that from outside
    await scheduler.stop(0)
    expect(a.status).toBe(status as TaskStatus)
    expect(executor.killed).toEqual(['there'])
  })

  test('is ended there when its record is deleted after its cancel: no restart would know of it', async () => {
    const executor = new Elsewhere()
    const { scheduler, a } = running(executor)
    await scheduler.cancel(a)
    expect(executor.killed).toEqual([])
    scheduler.delete(a)
    expect(executor.killed).toEqual(['there'])
    await scheduler.stop(0)
  })

  test('goes on there when its record is deleted', async () => {
    const executor = new Elsewhere()
    const { scheduler, a } = running(executor)
    scheduler.delete(a)
    await scheduler.stop(0)
    expect(executor.killed).toEqual([])
  })
})
