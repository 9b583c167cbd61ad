/**
 * Goal: a graph with rules does what the model allows, whatever happens to it, and ends as the model does.
 * Method: random graphs with random scripts run in the real scheduler, with cancels, deletions and restarts in between. A
 * restart builds the graph anew from a state file, a journal, or both. The model hears of each change of the store.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { checkedEntry } from '../../../control/log/checked-entry.ts'
import { GcSchedule } from '../../../control/log/gc-schedule.ts'
import type { Frame } from '../../../control/log/journal-format.ts'
import { decodeFanOut, encodeFanOut } from '../../../control/log/journaled-fan-out.ts'
import { encodeGraph } from '../../../control/log/journaled-graph.ts'
import { encodeStates, groupsOf } from '../../../control/log/journaled-state.ts'
import { Replay } from '../../../control/log/replay.ts'
import { taskEntry } from '../../../control/log/stored-task.ts'
import { Scheduler } from '../../../control/scheduler/scheduler.ts'
import { isApproval } from '../../../control/task/approval.ts'
import type { Graph, Task } from '../../../control/task/graph.ts'
import { graphTotals } from '../../../control/task/graph-summary.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import type { OnEndState } from '../../../shared/contract/on-end.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { nextTurn, runCooperatively, runSync } from '../../../shared/process/steps.ts'
import { GraphModel } from '../../model/graph-model.ts'
import { acceptGraph } from '../../support/graph.ts'
import { memoryKeeper } from '../../support/memory-keeper.ts'
import {
  type ApprovalEnd,
  endingsOf,
  outcomesOf,
  type RuledTask,
  randomEndings,
  ruledGraph,
} from '../../support/ruled-graph.ts'
import { after, task, World } from '../../support/scheduler-world.ts'
import { ScriptedExecutor } from '../../support/scripted-executor.ts'
import { until } from '../../support/until.ts'

interface Interference {
  readonly action: 'answer' | 'cancel' | 'delete' | 'cancel-graph' | 'restart' | 'snapshot'
  readonly afterTurns: number
  readonly pick: number
}

const interferences = (...actions: Interference['action'][]) =>
  fc.array(fc.record({ action: fc.constantFrom(...actions), afterTurns: fc.nat(4), pick: fc.nat() }), { maxLength: 8 })

const refuse = (detail: string) => new Error(detail)

/** One graph through several lives of the service. */
class Run {
  readonly model: GraphModel
  readonly #executor = new ScriptedExecutor()
  readonly #ids: readonly string[]
  readonly #ends: ReadonlyMap<string, ApprovalEnd>
  #store = new TaskStore()
  #scheduler = this.#newScheduler()
  graph: Graph
  /** The state file and the journal. */
  readonly #entries = new Map<string, string>()
  #frames: Frame[] = []
  #changed = new Set<Task>()
  #unwatch: () => void = () => {}
  /** A restart found that nothing of the graph is left to be seen or done. */
  #isForgotten = false

  constructor(submitted: readonly RuledTask[], states: readonly OnEndState[] = []) {
    const endings = endingsOf(states)
    const options = states.length === 0 ? {} : { on_end: endings.on_end }
    const tasks = [...submitted, ...endings.tasks]
    this.model = new GraphModel(tasks)
    this.#ids = tasks.map(({ id }) => id)
    this.#ends = new Map(tasks.flatMap(({ id, ends }) => (ends === undefined ? [] : [[id, ends]])))
    const body = new TextEncoder().encode(JSON.stringify({ tasks: submitted, ...options }))
    this.graph = acceptGraph(this.#store, JSON.parse(JSON.stringify(tasks)), Date.now(), undefined, options)
    for (const each of this.graph.tasks)
      each.setRare('hasPlaceholders', each.options.for_each !== undefined || undefined)
    this.#frames = [frame('g', encodeGraph(this.graph, body))]
    this.#watch()
    this.#scheduler.add(this.graph)
  }

  #newScheduler(): Scheduler {
    return new Scheduler({
      ...{ store: this.#store, executors: new ExecutorRegistry([this.#executor]), log: silentLog() },
      ...{ maxConcurrency: 3, abandonAfterMs: 60_000, serviceId: 'test', keeper: this.#keeper() },
    })
  }

  #keeper() {
    return memoryKeeper(
      {},
      {
        keepFanOut: async (task, fanOut) => {
          await nextTurn()
          if (task.graph !== this.graph) return
          this.#frames.push(frame('x', runSync(encodeFanOut(task, fanOut))))
          await nextTurn() // a restart may find the list, but no child
        },
      },
    )
  }

  #watch(): void {
    const { model } = this
    this.#unwatch = this.#store.watch((change, _seq, before) => {
      if (!('task' in change)) return
      const { id } = change.task
      this.#changed.add(change.task)
      const { for_each, tasks } = change.task.options
      if (change.kind === 'fanned-out') model.started(id)
      else if (change.kind === 'attempt-started' && (for_each ?? tasks) !== undefined) model.startedToFail(id)
      else if (change.kind === 'asked') model.asked(id)
      else if (change.kind === 'ended' && isApproval(change.task) && wasAnswered(change.task))
        model.answered(id, change.task.rare.error)
      else if (change.kind === 'attempt-started' && before === 'pending' && !isApproval(change.task)) model.started(id)
      else if (change.kind === 'ended') model.ended(id, change.task.status, change.task.rare.error)
      else if (change.kind === 'deleted') model.deleted(id)
    })
  }

  async interfere({ action, afterTurns, pick }: Interference): Promise<void> {
    for (let turn = 0; turn < afterTurns; turn++) await nextTurn()
    if (this.#isForgotten) return
    const { tasks } = this.graph
    // Half of the time a task that was submitted, else any, which may be a child.
    const any = tasks[(pick >> 1) % tasks.length]
    const found = pick % 2 === 0 ? any : tasks.find(({ id }) => id === this.#ids[pick % this.#ids.length])
    if (action === 'restart') return this.#restart()
    if (action === 'snapshot') return this.#snapshot()
    if (action === 'cancel-graph') {
      this.model.graphCancelled()
      const open = this.graph.tasks.filter(
        ({ isTerminal, neverRuns, waitsForEnd }) => !isTerminal && !neverRuns && !waitsForEnd,
      )
      await runCooperatively(this.#scheduler.cancelAll(open, () => {}))
    } else if (found === undefined || found.isDeleted) return
    else if (action === 'answer') this.#answer(found)
    else if (action === 'delete') this.#scheduler.delete(found)
    else void this.#scheduler.cancel(found)
  }

  /** Answers an approval as its script says, if it waits for that. */
  #answer(task: Task): void {
    const end = this.#ends.get(task.id)
    if (end === undefined || end === 'expires') return
    if (this.#scheduler.answer(task, { approved: end === 'approved', who: 'ada', at: 'now' }))
      expect(task.status).toBe(end === 'approved' ? 'success' : 'failed')
  }

  #flush(): void {
    if (this.#changed.size > 0) this.#frames.push(frame('t', [encodeStates(groupsOf([...this.#changed]))]))
    this.#changed.clear()
  }

  /** A state file takes the place of the journal. */
  #snapshot(): void {
    this.#flush()
    // A list of which nothing has come yet is in the segment that follows.
    this.#frames = this.#frames.filter(({ kind, payload }) => {
      const id = kind === 'x' ? decodeFanOut(payload).id : undefined
      const task = this.graph.tasks.find((each) => each.id === id) // a restart forgets a deleted one
      return task !== undefined && task.fanOut === undefined
    })
    const visible = this.graph.tasks.filter(({ isDeleted }) => !isDeleted)
    this.#entries.clear()
    for (const each of visible) {
      const entry = taskEntry(this.#store, each, each === visible[0])
      this.#entries.set(each.id, JSON.stringify(entry))
    }
    // Deleted tasks that still run are carried over.
    for (const each of this.#store.hiddenRunning) this.#changed.add(each)
  }

  #restart(): void {
    if (this.graph.live === 0) return
    this.#flush()
    this.#unwatch()
    const interrupted = this.graph.tasks.filter(({ status }) => status === 'running').map(({ id }) => id)
    const cancelled = this.graph.tasks.filter(({ status }) => status === 'cancelling').map(({ id }) => id)
    for (const { id, childOf } of this.graph.tasks) if (childOf?.parent.isDeleted) this.model.deleted(id)
    for (const id of interrupted) this.model.interrupted(id)
    this.#endWithParents()
    for (const id of cancelled.reverse()) this.model.ended(id, 'cancelled', undefined) // children before their parents
    void this.#scheduler.stop(0) // nobody hears of what it does from now on

    const replay = new Replay(new GcSchedule())
    for (const [key, entry] of this.#entries) replay.addEntry(key, checkedEntry(key, JSON.parse(entry), refuse), refuse)
    replay.endEntries(refuse)
    for (const each of this.#frames) replay.note(each)
    for (const each of this.#frames) replay.apply(each, refuse)
    const [graph] = replay.graphs(refuse)
    const { lastSeq, lastOrdinal } = replay
    this.#store = new TaskStore({ lastSeq, lastOrdinal })
    this.#scheduler = this.#newScheduler()
    this.#isForgotten = graph === undefined
    if (graph === undefined) return
    this.graph = graph
    runSync(this.#store.recover(graph))
    this.#watch()
    for (const each of replay.built.changed) this.#changed.add(each)
    this.#scheduler.resume(graph)
  }

  /** A restart ends what was being cancelled; of a task that has children, those that have not ended. */
  #endWithParents(): void {
    for (const { id, childOf, isTerminal, isDeleted, status } of this.graph.tasks) {
      const isOpen = !isTerminal && !isDeleted && status !== 'cancelling'
      if (isOpen && childOf?.parent.status === 'cancelling' && !childOf.parent.isDeleted)
        this.model.ended(id, 'cancelled', undefined)
    }
  }

  async over(): Promise<void> {
    await until(
      () => {
        for (const each of this.graph.tasks) if (!each.isTerminal) this.#answer(each)
        return this.#isForgotten || this.graph.live === 0
      },
      (isOver) => isOver,
    )
  }

  expectSound(): void {
    expect(this.model.faults).toEqual([])
    expect(this.model.open).toEqual([])
    if (this.#isForgotten) return
    // A restart knows how a deleted task ended only while a dependent waits for it.
    const known = this.graph.tasks.filter(({ id, neverRuns }) => !neverRuns || !ENDED.has(this.model.stateOf(id)))
    const states = known.map(({ id, status, neverRuns }) => [id, neverRuns ? 'gone' : status])
    expect(states).toEqual(known.map(({ id }) => [id, this.model.stateOf(id)]))
    expect(runSync(graphTotals(this.graph)).state as string).toBe(this.model.state)
  }
}

const ENDED: ReadonlySet<string> = new Set(['success', 'failed', 'skipped', 'cancelled'])

/** Whether an ended approval was answered, or was not in time. */
const wasAnswered = ({ status }: Task): boolean => status === 'success' || status === 'failed'

function frame(kind: 'g' | 't' | 'x', parts: readonly (string | Uint8Array)[]): Frame {
  const payload = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))
  return { kind, payload } as unknown as Frame
}

async function ran(
  tasks: readonly RuledTask[],
  states: readonly OnEndState[],
  doings: readonly Interference[] = [],
): Promise<Run> {
  const run = new Run(tasks, states)
  for (const each of doings) await run.interfere(each)
  await run.over()
  run.expectSound()
  return run
}

describe('a graph with rules', () => {
  test('ends as the model does', async () => {
    await fc.assert(
      fc.asyncProperty(ruledGraph(16), randomEndings, async (submitted, states) => {
        const run = await ran(submitted, states)
        const tasks = [...submitted, ...endingsOf(states).tasks]
        const alone = GraphModel.run(tasks, outcomesOf(tasks))
        expect([alone.faults, alone.open, alone.state]).toEqual([[], [], run.model.state])
        const ends = ({ stateOf }: GraphModel) => tasks.map(({ id }) => [id, stateOf(id)])
        expect(ends(bound(run.model))).toEqual(ends(bound(alone)))
      }),
      { numRuns: 200 },
    )
  })

  test('obeys the model when tasks and the graph are cancelled, and tasks are deleted', async () => {
    const doings = interferences('answer', 'cancel', 'delete', 'cancel', 'delete', 'cancel-graph')
    await fc.assert(
      fc.asyncProperty(
        ruledGraph(16),
        randomEndings,
        doings,
        async (tasks, states, actions) => void (await ran(tasks, states, actions)),
      ),
      { numRuns: 200 },
    )
  })

  test('obeys the model over restarts from a state file, a journal, or both', async () => {
    const doings = interferences('restart', 'restart', 'snapshot', 'answer', 'cancel', 'delete', 'cancel-graph')
    await fc.assert(
      fc.asyncProperty(
        ruledGraph(16),
        randomEndings,
        doings,
        async (tasks, states, actions) => void (await ran(tasks, states, actions)),
      ),
      { numRuns: 200 },
    )
  })
})

const bound = (model: GraphModel) => ({ stateOf: (id: string) => model.stateOf(id) }) as GraphModel

describe('a rule', () => {
  test('runs no clean-up of a graph that is cancelled, however large', async () => {
    const world = new World()
    const graph = world.submit([
      task('work', { hangs: true }),
      ...Array.from({ length: 2_000 }, (_, i) => task(`w${i}`, {}, after('work'))),
      ...Array.from({ length: 2_000 }, (_, i) => task(`c${i}`, {}, { ...after(`w${i}`), run_if: 'always' })),
    ])
    await world.executing(1)
    const steps = world.scheduler.cancelAll(graph.tasks, () => {})
    // Other graphs make the scheduler take turns between the steps.
    while (!steps.next().done) world.scheduler.startAgain()
    await world.over()
    expect(world.counters.ended).toMatchObject({ cancelled: graph.tasks.length })
    expect(world.executor.starts).toHaveLength(1)
  })

  test('holds up nothing with 100,000 clean-ups behind one failed task', async () => {
    const size = 100_000
    const world = new World()
    world.submit([
      task('work', { outcomes: ['fail'] }),
      ...Array.from({ length: size }, (_, i) => task(`c${i}`, {}, { ...after('work'), run_if: 'always' })),
    ])
    await world.over()
    expect(world.counters.ended).toMatchObject({ failed: 1, success: size })
  })

  test('tests 20,000 conditions', async () => {
    const size = 20_000
    const world = new World()
    const when = (equals: string) => ({ $from: 'work', path: '/status', equals })
    world.submit([
      task('work'),
      ...Array.from({ length: size }, (_, i) =>
        task(`c${i}`, {}, { ...after('work'), when: when(i % 2 === 0 ? 'success' : 'failed') }),
      ),
    ])
    await world.over()
    expect(world.counters.ended).toMatchObject({ success: 1 + size / 2, skipped: size / 2 })
  })

  test('holds for a chain of 100,000 tasks', async () => {
    const size = 100_000
    const world = new World()
    const chain = Array.from({ length: size }, (_, i) => task(`t${i}`, {}, { ...after(`t${i - 1}`), run_if: 'failed' }))
    world.submit([task('t0', { outcomes: ['fail'] }), ...chain.slice(1)])
    await world.over()
    expect(world.counters.ended).toMatchObject({ failed: 1, success: 1, skipped: size - 2 })
  })
})
