/**
 * Goal: every task runs when it may, as often as it must, never too many at once, and each comes to its end.
 * Method: random graphs with random scripts, and random deletes, cancels and a stop in between. The end of each task is
 * compared with the ends that its script, its dependencies and the interference allow.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type LossReason, skipReason } from '../../../control/rules/transitions.ts'
import type { Task } from '../../../control/task/graph.ts'
import type { TaskInput } from '../../../shared/contract/submission.ts'
import { nextTurn } from '../../../shared/process/steps.ts'
import { taskIn } from '../../support/graph.ts'
import { randomGraph } from '../../support/random-graph.ts'
import { World } from '../../support/scheduler-world.ts'
import type { Script } from '../../support/scripted-executor.ts'

type ScriptedTask = TaskInput & { id: string; depends_on: string[]; input: Script; retry: number }

/** What a task waits for, and how long it does. */
const randomWaits = fc.record({
  queue_timeout: fc.constantFrom(0, 1, 1, 2, 5),
  priority: fc.constantFrom(null, -1, 0, 1),
  not_before: fc.constantFrom(null, 0, 1, 3, '2020-01-01T00:00:00Z'),
  retry: fc.nat(2),
  backoff: fc.record({ initial_ms: fc.nat(2) }),
  cache: fc.constantFrom(null, { key: 'a' }, { key: 'b' }),
  fanOut: fc.option(
    fc.record({
      for_each: fc.array(fc.constant(0), { maxLength: 12 }),
      max_parallel: fc.integer({ min: 1, max: 12 }),
      fail_fast: fc.constant(true),
    }),
  ),
})

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
    fc.record({ action: fc.constantFrom(...actions), afterStarts: fc.nat(20), pick: fc.nat(), isInside: fc.boolean() }),
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
    const parent = started.childOf?.parent
    if (parent !== undefined && executor.startsOf(started.id).length === 1) {
      const failed = parent.options.fail_fast && siblingsOf(started).find(({ status }) => status === 'failed')
      if (failed) this.faults.push(`${started.id} started after ${failed.id} had failed`)
      if (parent.isDeleted) this.faults.push(`${started.id} started after ${parent.id} was deleted`)
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
      expect({ id, error: ended.rare.error }).toEqual({ id, error: 'task cancelled' })
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
      expect(reasons).toContain(ended.rare.error!)
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
      expect(ended.rare.error).toBeUndefined()
      if (!this.deleted.has(id)) expect(ended.result).toEqual({ id, attempt: expected.attempt })
    } else {
      const cause =
        input.outcomes?.[retry] === 'break'
          ? `internal error: attempt ${retry + 1} broke`
          : `attempt ${retry + 1} failed`
      expect(ended.rare.error).toBe(retry > 0 ? `task failed after all retries: ${cause}` : cause)
    }
  }

  /** Deleted while it was pending. */
  #neverRan({ id, status }: Task): boolean {
    return this.deleted.get(id) === 'pending' && status === 'pending'
  }
}

const siblingsOf = ({ childOf, graph }: Task): Task[] => graph.tasks.filter((each) => each.childOf === childOf)

/** How many attempts of `task` were missed, or not needed. */
function unstartedOf({ attempt, startedAt, rare: { attempts, reused_from: reusedFrom } }: Task): number {
  const missed =
    attempts?.filter(({ started_at }) => started_at === undefined).length ??
    (attempt > 0 && startedAt === undefined ? 1 : 0)
  return missed + (reusedFrom === undefined ? 0 : 1)
}

describe('random graphs', () => {
  const concurrency = fc.integer({ min: 1, max: 6 })

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
    const graphs = scriptedGraphs({ maxGraphs: 4, maxTasks: 12, maxRetry: 2 })
    await fc.assert(
      fc.asyncProperty(graphs, concurrency, interferences('delete', 'cancel'), async (submitted, limit, doings) => {
        const run = await new Run(submitted, limit, doings).toItsEnd()
        run.expectSound()
      }),
      { numRuns: 8 },
    )
  })

  test('lose no attempt, no place and no child where tasks wait for too long', async () => {
    const scripted = scriptedGraphs({ maxGraphs: 3, maxTasks: 12, maxRetry: 0 })
    const waits = fc.array(randomWaits, { minLength: 12, maxLength: 12 })
    const doings = interferences('cancel', 'delete')
    await fc.assert(
      fc.asyncProperty(scripted, waits, concurrency, doings, async (graphs, waits, limit, doings) => {
        const waiting = graphs.map((tasks) =>
          tasks.map((each, i) => {
            const { fanOut, cache, ...rules } = waits[i]!
            return { ...each, ...rules, ...(fanOut ?? { cache }) }
          }),
        )
        const run = await new Run(waiting, limit, doings).toItsEnd()
        const { executor, scheduler, counters } = run.world
        expect(run.faults).toEqual([])
        expect([executor.executing, counters.tasksRunning, scheduler.queueLength]).toEqual([0, 0, 0])
        for (const each of run.world.graphs.flatMap(({ tasks }) => tasks)) {
          if (each.options.for_each !== undefined && each.childOf === undefined) continue
          if (each.isDeleted) continue // its record has no attempts
          const { id, status, attempt, options } = each
          const { retry } = options
          expect({ id, starts: executor.startsOf(id).length }).toEqual({ id, starts: attempt - unstartedOf(each) })
          if (status === 'failed') expect({ id, attempt }).toEqual({ id, attempt: retry + 1 })
        }
      }),
      // The clocks are real, so a smaller graph would tell nothing.
      { numRuns: 150, endOnFailure: true },
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
          expect(each.rare.interrupted_attempts).toBe(interrupted.includes(each) ? 1 : undefined)
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
