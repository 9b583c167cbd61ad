/**
 * What every keeper promises, as tests of an implementation.
 *
 * A place is where a keeper keeps things. Tests open it as a start of the service does, kill what they opened, and look at
 * what the next start finds.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Keeper } from '../../control/log/keeper.ts'
import { ResultFile } from '../../control/rules/result-file.ts'
import { validateGraph } from '../../control/rules/validate.ts'
import { FanOut } from '../../control/task/fan-out.ts'
import { createGraph, type Graph, type Task } from '../../control/task/graph.ts'
import { newChildren } from '../../control/task/new-children.ts'
import type { TaskStore } from '../../control/task/task-store.ts'
import type { ServiceEvent } from '../../shared/contract/events.ts'
import type { TaskInput } from '../../shared/contract/submission.ts'
import { runSync } from '../../shared/process/steps.ts'
import { taskIn } from './graph.ts'
import { until } from './until.ts'

export interface OpenKeeper {
  readonly store: TaskStore
  readonly keeper: Keeper
}

export interface KeeperPlace extends AsyncDisposable {
  /** Starts with what is kept there. */
  open(): Promise<OpenKeeper>
  /** Ends what is open as a kill of its process does: it keeps nothing more. */
  kill(): Promise<void>
  /** Whether the place refuses to keep anything from now on. */
  refuse(isRefusing: boolean): void
}

const TYPES: ReadonlySet<string> = new Set(['test', 'approval'])

const text = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))

interface Submission {
  readonly tasks: readonly TaskInput[]
  readonly scope?: 'graph'
  readonly params?: Readonly<Record<string, unknown>>
  readonly callback?: { readonly url: string }
}

/** A graph with claimed ids, and the body that it came in. */
function claimed({ store }: OpenKeeper, submission: Submission): { graph: Graph; body: Uint8Array } {
  const { tasks, ...options } = submission
  const identity = {
    ...{ id: crypto.randomUUID(), ordinal: store.nextOrdinal(), traceId: 'trace' },
    ...{ createdAt: Date.now(), options },
  }
  const graph = runSync(createGraph(runSync(validateGraph([...tasks], TYPES)), identity))
  runSync(store.claim(graph))
  return { graph, body: text(submission) }
}

/** Submits a graph as the operation does. Rejects if it is not kept. */
async function submit(open: OpenKeeper, submission: Submission): Promise<Graph> {
  const { store, keeper } = open
  const { graph, body } = claimed(open, submission)
  try {
    keeper.assertAccepting()
    await keeper.keepGraph(graph, body)
  } catch (error) {
    store.unclaim(graph)
    throw error
  }
  store.apply({ kind: 'graph-accepted', graph })
  return graph
}

const start = ({ store }: OpenKeeper, task: Task) => store.apply({ kind: 'attempt-started', task, at: Date.now() })

const end = ({ store }: OpenKeeper, task: Task, result: unknown = null) =>
  store.apply({ kind: 'ended', task, at: Date.now(), ending: { status: 'success', result } })

/** What a start makes of a state: an interrupted attempt runs again. */
const stateOf = ({ status, attempt, result, isDeleted }: Task) =>
  isDeleted ? 'deleted' : { status: status === 'running' ? 'pending' : status, attempt, result: result ?? null }

const found = (store: TaskStore) => [...store.visibleTasks()].map(({ id }) => id)

/** `walks` is the number of random lives. */
export function describeKeeper(name: string, newPlace: () => Promise<KeeperPlace>, walks: number): void {
  describe(name, () => {
    test('finds a kept graph after a kill, as it was submitted', async () => {
      await using place = await newPlace()
      const first = await place.open()
      const params = { __proto__x: 'é\u0000😀"\\{}', list: [1, null] }
      const tasks = [
        { id: 'a', type: 'test', params, annotations: { team: 'x' } },
        {
          id: 'b',
          type: 'test',
          depends_on: ['a'],
          retry: 2,
          timeout: 5_000,
          queue_timeout: 6_000,
          run_if: 'always' as const,
        },
      ]
      const graph = await submit(first, { tasks, params: { day: 'monday' } })
      await place.kill()
      const { store } = await place.open()
      const again = store.graph(graph.id)!
      expect(found(store)).toEqual(['a', 'b'])
      expect([again.traceId, again.createdAt, again.options]).toEqual(['trace', graph.createdAt, graph.options])
      const [a, b] = again.tasks
      expect([a!.params, a!.options.annotations]).toEqual([params, { team: 'x' }])
      expect([b!.dependsOn, b!.options.retry, b!.options.timeout, b!.options.queue_timeout, b!.runIf]).toEqual([
        ['a'],
        2,
        5_000,
        6_000,
        'always',
      ])
      expect(again.tasks.map(({ status }) => status)).toEqual(['pending', 'pending'])
    })

    test('gives no number twice: those of graphs and changes rise over a kill', async () => {
      await using place = await newPlace()
      const first = await place.open()
      const { ordinal } = await submit(first, { tasks: [{ id: 'a', type: 'test' }] })
      start(first, first.store.get('a')!)
      await first.keeper.kept('act')
      const { seq } = first.store
      await place.kill()
      const second = await place.open()
      expect(second.store.nextOrdinal()).toBeGreaterThan(ordinal)
      expect(second.store.seq).toBeGreaterThanOrEqual(seq)
    })

    test('keeps a graph with its key: a repeated request gets the first answer after a kill', async () => {
      await using place = await newPlace()
      const open = await place.open()
      const submission = { tasks: [{ id: 'a', type: 'test' }] }
      const request = { scope: 'tasks', key: 'k', body: text(submission) }
      const answer = await open.keeper.keys.once(request, async (sent) => {
        const { graph, body } = claimed(open, submission)
        const answer = JSON.stringify({ accepted: 1, task_ids: ['a'], graph_id: graph.id })
        await open.keeper.keepGraph(graph, body, { idempotency: { ...sent!, answer, at: Date.now() } })
        open.store.apply({ kind: 'graph-accepted', graph })
        return answer
      })
      await place.kill()
      const { store, keeper } = await place.open()
      const never = () => Promise.reject(new Error('it was made again'))
      expect(await keeper.keys.once(request, never)).toBe(answer)
      expect(store.graph(JSON.parse(answer).graph_id)).toBeDefined()
      const other = { ...request, body: text('other') }
      await expect(keeper.keys.once(other, never)).rejects.toMatchObject({ status: 422 })
    })

    test('finds no graph that was not kept, or was revoked', async () => {
      await using place = await newPlace()
      const open = await place.open()
      claimed(open, { tasks: [{ id: 'never-kept', type: 'test' }] })
      const { graph, body } = claimed(open, { tasks: [{ id: 'revoked', type: 'test' }] })
      await open.keeper.keepGraph(graph, body)
      open.keeper.revoke(graph)
      open.store.unclaim(graph)
      await submit(open, { tasks: [{ id: 'kept', type: 'test' }] })
      await open.keeper.kept('promise')
      await place.kill()
      expect(found((await place.open()).store)).toEqual(['kept'])
    })

    test.each(['act', 'kill', 'show', 'promise'] as const)(
      'keeps all changes so far before it lets one %s',
      async (purpose) => {
        await using place = await newPlace()
        const open = await place.open()
        const { tasks } = await submit(open, {
          tasks: ['done', 'begun', 'deleted', 'left'].map((id) => ({ id, type: 'test' })),
        })
        const [done, begun, deleted] = tasks
        start(open, done!)
        end(open, done!, { stdout: 'é\u0000' })
        start(open, begun!)
        open.store.apply({ kind: 'deleted', task: deleted!, at: Date.now() })
        await open.keeper.kept(purpose)
        const before = tasks.filter(({ isDeleted }) => !isDeleted).map(stateOf)
        await place.kill()
        const { store } = await place.open()
        expect([...store.visibleTasks()].map(stateOf)).toEqual(before)
      },
    )

    test('finds callbacks that wait, and ids of those that are over', async () => {
      await using place = await newPlace()
      const open = await place.open()
      const url = 'http://127.0.0.1:9/'
      const { id: graphId } = await submit(open, { tasks: [{ id: 'a', type: 'test' }], callback: { url } })
      const callback = (id: string) => {
        return { id, graphId, delivery: { id, graphId, event: 'task_failed', url, body: '{"é":1}', since: 1 } }
      }
      for (const id of ['waits', 'over']) open.keeper.callbacks.keep(callback(id))
      open.keeper.callbacks.keep({ id: 'over', graphId, delivery: undefined })
      await open.keeper.kept('promise')
      for (let starts = 0; starts < 2; starts++) {
        await place.kill()
        const { keeper } = await place.open()
        expect([...keeper.callbacks.found.waiting]).toEqual([['waits', callback('waits').delivery]])
        expect([...keeper.callbacks.found.over]).toEqual([['over', graphId]])
      }
    })

    test('finds the orphans that have not been removed', async () => {
      await using place = await newPlace()
      const open = await place.open()
      const orphan = (handle_id: string) => ({ handle_id, is_taken: true, since: 1, owner: 'é', runtime: 'a' })
      const over = orphan('over')
      for (const each of [over, orphan('left'), orphan('twice')]) open.keeper.orphans.add(each)
      const twice = { ...orphan('twice'), since: 2 }
      open.keeper.orphans.add(twice)
      open.keeper.orphans.remove([over, orphan('twice')]) // another one of that name
      for (let starts = 0; starts < 2; starts++) {
        await open.keeper.kept('promise')
        await place.kill()
        const { keeper } = await place.open()
        const found = [...keeper.orphans.found].sort((a, b) => (a.handle_id < b.handle_id ? -1 : 1))
        expect(found).toEqual([orphan('left'), twice])
      }
    })

    test('finds nothing of a deleted graph', async () => {
      await using place = await newPlace()
      const open = await place.open()
      const graph = await submit(open, { tasks: [{ id: 'a', type: 'test' }] })
      await submit(open, { tasks: [{ id: 'other', type: 'test' }] })
      start(open, graph.tasks[0]!)
      end(open, graph.tasks[0]!)
      open.keeper.deleteGraph(graph)
      open.store.apply({ kind: 'graph-retired', graph, at: Date.now() })
      await open.keeper.kept('promise')
      await place.kill()
      const { store } = await place.open()
      expect([found(store), store.graph(graph.id)]).toEqual([['other'], undefined])
    })

    test('finds which graph has an id that two used', async () => {
      await using place = await newPlace()
      const open = await place.open()
      const first = await submit(open, { tasks: [{ id: 'a', type: 'test' }] })
      start(open, first.tasks[0]!)
      end(open, first.tasks[0]!, 'first')
      open.keeper.assertWritable()
      const second = await submit(open, { tasks: [{ id: 'a', type: 'test' }] })
      const scoped = await submit(open, { tasks: [{ id: 'a', type: 'test' }], scope: 'graph' })
      await open.keeper.kept('promise')
      await place.kill()
      const { store } = await place.open()
      expect(store.get('a')!.graph.id).toBe(second.id)
      const inFirst = store.taskIn(store.graph(first.id)!, 'a')!
      expect([inFirst.result, inFirst.isReplaced]).toEqual(['first', true])
      expect(store.taskIn(store.graph(scoped.id)!, 'a')!.status).toBe('pending')
    })

    test('finds the children of a task, each with its element and its state', async () => {
      await using place = await newPlace()
      const open = await place.open()
      const items = [{ n: 1 }, 'two', null]
      const map = { id: 'map', type: 'test', for_each: items, params: { $item: '' } }
      const graph = await submit(open, { tasks: [map], scope: 'graph' })
      const [task] = graph.tasks
      await open.keeper.keepFanOut(task!, { count: items.length, items })
      const fanOut = new FanOut(task!, items, items.length)
      const children = runSync(newChildren(fanOut))
      open.store.apply({ kind: 'fanned-out', task: task!, at: Date.now(), fanOut, children })
      start(open, children[1]!)
      end(open, children[1]!, 2)
      await open.keeper.kept('promise')
      await place.kill()
      const { store } = await place.open()
      const again = store.graph(graph.id)!
      expect(again.tasks.map(({ id, status }) => [id, status])).toEqual([
        ['map', 'pending'],
        ['map[0]', 'pending'],
        ['map[1]', 'success'],
        ['map[2]', 'pending'],
      ])
      const again1 = taskIn(again, 'map[1]')
      expect([again1.result, again1.childOf!.itemOf(again1)]).toEqual([2, { value: 'two' }])
    })

    test('finds the children of a group, with what they depend on, also if one of them was deleted', async () => {
      await using place = await newPlace()
      const open = await place.open()
      const members = [
        { id: 'test', type: 'test', depends_on: ['build'] },
        { id: 'build', type: 'test' },
      ]
      const each = { id: 'each', type: 'group', for_each: [1, 2], tasks: members }
      const graph = await submit(open, { tasks: [each], scope: 'graph' })
      const [task] = graph.tasks
      await open.keeper.keepFanOut(task!, { count: 2 })
      const fanOut = new FanOut(task!, [1, 2], 2)
      const children = runSync(newChildren(fanOut))
      open.store.apply({ kind: 'fanned-out', task: task!, at: Date.now(), fanOut, children })
      start(open, children[0]!)
      end(open, children[0]!, 'built')
      open.store.apply({ kind: 'deleted', task: children[2]!, at: Date.now() })
      await open.keeper.kept('promise')
      await place.kill()
      const again = (await place.open()).store.graph(graph.id)!
      expect(again.tasks.map(({ id, status, isDeleted }) => [id, status, isDeleted])).toEqual([
        ['each', 'pending', false],
        ['each[0]/build', 'success', false],
        ['each[0]/test', 'pending', false],
        ['each[1]/build', 'pending', true],
        ['each[1]/test', 'pending', false],
      ])
      const last = taskIn(again, 'each[1]/test')
      expect([last.dependsOn, again.dependency(last, 0).id]).toEqual([['each[1]/build'], 'each[1]/build'])
    })

    test('keeps with the list of a task the ends that led to it', async () => {
      await using place = await newPlace()
      const open = await place.open()
      const map = { id: 'map', type: 'test', depends_on: ['list'], for_each: { $from: 'list', path: '/result' } }
      const { tasks } = await submit(open, { tasks: [{ id: 'list', type: 'test' }, map] })
      await open.keeper.kept('promise')
      start(open, tasks[0]!)
      end(open, tasks[0]!, [1])
      await open.keeper.keepFanOut(tasks[1]!, { count: 1, items: [1] })
      await place.kill()
      const { store } = await place.open()
      expect([store.get('list')!.status, store.get('map')!.fanOut?.count]).toEqual(['success', 1])
    })

    test('keeps a large result before the state that refers to it', async () => {
      await using place = await newPlace()
      const open = await place.open()
      await submit(open, { tasks: [{ id: 'a', type: 'test' }] })
      const task = open.store.get('a')!
      const result = { lines: 'é'.repeat(100_000) }
      start(open, task)
      const kept = await open.keeper.results.keep(task, result)
      expect(kept).toBeInstanceOf(ResultFile)
      expect(open.keeper.results.keep(task, 'small')).toBe('small')
      end(open, task, kept)
      await open.keeper.kept('show')
      await place.kill()
      const { store, keeper } = await place.open()
      const file = store.get('a')!.result as ResultFile
      expect(await keeper.results.read(file)).toEqual({ json: JSON.stringify(result) })
      expect(await keeper.results.read(new ResultFile('1-2-3-00000000.json'))).toHaveProperty('lost')
    })

    test('tells once what a start made of a cancelled attempt, however many starts follow', async () => {
      await using place = await newPlace()
      const first = await place.open()
      const { tasks } = await submit(first, { tasks: [{ id: 'a', type: 'test' }] })
      start(first, tasks[0]!)
      first.store.apply({ kind: 'cancel-requested', task: tasks[0]!, at: Date.now() })
      await first.keeper.kept('promise')
      for (let starts = 0; starts < 2; starts++) {
        await place.kill()
        await (await place.open()).keeper.kept('promise')
      }
      await place.kill()
      const { keeper } = await place.open()
      await keeper.events.settle()
      const told: ServiceEvent[] = []
      for await (const some of keeper.history.read({ after: 0, upTo: keeper.history.last })) told.push(...some)
      const statuses = told.map((event) => ('status' in event ? event.status : event.event))
      expect(statuses).toEqual(['graph_accepted', 'cancelling', 'cancelled', 'graph_ended'])
    })

    test('tells listeners of each change once it is kept, in order, and again from its history', async () => {
      await using place = await newPlace()
      const open = await place.open()
      const heard: ServiceEvent[] = []
      const stop = open.keeper.events.subscribe({}, (events) => void heard.push(...events))
      const graph = await submit(open, { tasks: [{ id: 'a', type: 'test' }] })
      start(open, graph.tasks[0]!)
      await open.keeper.events.settle()
      end(open, graph.tasks[0]!)
      await open.keeper.events.settle()
      stop()
      const names = ['graph_accepted', 'task_changed', 'task_changed', 'graph_ended']
      expect(heard.map(({ event }) => event)).toEqual(names as ServiceEvent['event'][])
      const numbers = heard.map(({ seq }) => seq)
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
      const past: ServiceEvent[] = []
      const { history } = open.keeper
      for await (const some of history.read({ after: history.oldest, upTo: history.last })) past.push(...some)
      expect(past).toEqual(heard)
    })

    describe('while the place refuses', () => {
      test('answers 503, and goes on once it is mended; nothing refused is found', async () => {
        await using place = await newPlace()
        const open = await place.open()
        await submit(open, { tasks: [{ id: 'before', type: 'test' }] })
        place.refuse(true)
        const request = { scope: 'tasks', key: 'k', body: text('keyed') }
        const submitKeyed = () =>
          open.keeper.keys.once(request, async (sent) => {
            open.keeper.assertAccepting()
            const { graph, body } = claimed(open, { tasks: [{ id: 'keyed', type: 'test' }], scope: 'graph' })
            await open.keeper.keepGraph(graph, body, { idempotency: { ...sent!, answer: graph.id, at: Date.now() } })
            open.store.apply({ kind: 'graph-accepted', graph })
            return graph.id
          })
        const refused = [submit(open, { tasks: [{ id: 'refused', type: 'test' }] }), submitKeyed()]
        for (const outcome of await Promise.allSettled(refused))
          expect(outcome).toMatchObject({ status: 'rejected', reason: { status: 503 } })
        const before = open.store.get('before')!
        start(open, before)
        end(open, before)
        await expect(open.keeper.kept('promise')!).rejects.toMatchObject({ status: 503 })
        expect(() => open.keeper.assertAccepting()).toThrow()
        expect(() => open.keeper.assertWritable()).toThrow()
        expect(() => open.keeper.probe()).toThrow()
        place.refuse(false)
        await until(() =>
          submit(open, { tasks: [{ id: `after-${open.store.seq}`, type: 'test' }] }).catch(() => undefined),
        )
        expect(() => open.keeper.probe()).not.toThrow()
        const keyed = await submitKeyed()
        await open.keeper.kept('promise')
        await place.kill()
        const { store } = await place.open()
        expect([store.get('before')!.status, store.get('refused')]).toEqual(['success', undefined])
        expect(store.graph(keyed)).toBeDefined()
      })
    })

    test('keeps the last changes at its stop; then nothing is promised', async () => {
      await using place = await newPlace()
      const open = await place.open()
      await submit(open, { tasks: [{ id: 'a', type: 'test' }] })
      const task = open.store.get('a')!
      start(open, task)
      end(open, task, 'last')
      await open.keeper.stop()
      expect(() => open.keeper.assertWritable()).toThrow()
      await expect(submit(open, { tasks: [{ id: 'late', type: 'test' }] })).rejects.toMatchObject({ status: 503 })
      await place.kill()
      const { store } = await place.open()
      expect([found(store), store.get('a')!.result]).toEqual([['a'], 'last'])
    })

    test('whenever it is killed, the next start finds what was kept, and no state that never was', async () => {
      const step = fc.oneof(
        fc.record({ kind: fc.constant('submit' as const), tasks: fc.integer({ min: 1, max: 4 }) }),
        fc.record({ kind: fc.constantFrom('start' as const, 'end' as const, 'delete' as const), pick: fc.nat() }),
        fc.record({
          kind: fc.constant('kept' as const),
          purpose: fc.constantFrom('act' as const, 'show' as const, 'promise' as const),
        }),
        fc.record({ kind: fc.constant('kill' as const) }),
      )
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
          await using place = await newPlace()
          await new Walk(place, await place.open()).run([...steps, { kind: 'kill' }])
        }),
        { numRuns: walks },
      )
    })
  })
}

type Step =
  | { readonly kind: 'submit'; readonly tasks: number }
  | { readonly kind: 'start' | 'end' | 'delete'; readonly pick: number }
  | { readonly kind: 'kept'; readonly purpose: 'act' | 'show' | 'promise' }
  | { readonly kind: 'kill' }

/** A random life of a keeper, beside a list of the states that each task has had. */
class Walk {
  readonly #place: KeeperPlace
  #open: OpenKeeper
  /** The states of each task since one that was kept for certain. */
  readonly #states = new Map<string, string[]>()
  #ids = 0

  constructor(place: KeeperPlace, open: OpenKeeper) {
    this.#place = place
    this.#open = open
  }

  async run(steps: readonly Step[]): Promise<void> {
    for (const step of steps) await this.#take(step)
  }

  async #take(step: Step): Promise<void> {
    const open = this.#open
    const { store, keeper } = open
    switch (step.kind) {
      case 'submit': {
        const tasks = Array.from({ length: step.tasks }, () => ({ id: `t${this.#ids++}`, type: 'test' }))
        const graph = await submit(open, { tasks })
        for (const task of graph.tasks) this.#states.set(task.id, [this.#text(task)])
        return
      }
      case 'kept':
        await keeper.kept(step.purpose)
        for (const states of this.#states.values()) states.splice(0, states.length - 1)
        return
      case 'kill':
        await this.#place.kill()
        this.#open = await this.#place.open()
        this.#check()
        return
      default: {
        const tasks = [...store.visibleTasks()]
        const task = tasks[step.pick % Math.max(1, tasks.length)]
        if (task === undefined) return
        if (step.kind === 'start' && task.status === 'pending') start(open, task)
        else if (step.kind === 'end' && task.status === 'running') end(open, task, { of: task.id })
        else if (step.kind === 'delete' && task.status !== 'running')
          store.apply({ kind: 'deleted', task, at: Date.now() })
        else return
        this.#states.get(task.id)!.push(this.#text(task))
      }
    }
  }

  #text(task: Task | undefined): string {
    return task === undefined ? JSON.stringify('deleted') : JSON.stringify(stateOf(task))
  }

  #check(): void {
    for (const [id, states] of this.#states) {
      const state = this.#text(this.#open.store.get(id))
      expect(states).toContain(state)
      this.#states.set(id, [state])
    }
    for (const id of found(this.#open.store)) expect(this.#states.has(id)).toBe(true)
  }
}
