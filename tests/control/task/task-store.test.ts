/**
 * Goal: the store changes only as it may, numbers every change, and shows a graph whole or not at all.
 * Method: changes applied one by one; claims stopped half way, with something else happening in between.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Change, Ending } from '../../../control/task/change.ts'
import type { Graph, Task } from '../../../control/task/graph.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { ServiceError } from '../../../shared/contract/errors.ts'
import { nextTurn, runSync, STEPS_PER_YIELD } from '../../../shared/process/steps.ts'
import { acceptGraph, acceptScoped, graphOf, taskIn } from '../../support/graph.ts'

const AT = Date.UTC(2026, 0, 1)

const ids = (tasks: Iterable<Task>) => [...tasks].map(({ id }) => id)
const named = (...names: string[]) => names.map((id) => ({ id, type: 'test' }))

const failure = { code: 'exit_nonzero', message: 'command failed: exit status 1' } as const
const success: Ending = { status: 'success', result: { ok: true } }
const failed: Ending = { status: 'failed', result: { exit_code: 1 }, failure, error: failure.message }
const skipped: Ending = { status: 'skipped', error: 'dependency a failed' }
const cancelled: Ending = {
  status: 'cancelled',
  failure: { code: 'cancelled', message: 'task cancelled' },
  error: 'task cancelled',
}

const start = (store: TaskStore, task: Task, at = AT) => store.apply({ kind: 'attempt-started', task, at })
const end = (store: TaskStore, task: Task, ending: Ending = success, at = AT) =>
  store.apply({ kind: 'ended', task, at, ending })
const remove = (store: TaskStore, task: Task) => store.apply({ kind: 'deleted', task, at: AT })

/** A graph whose tasks have all succeeded. */
function endedGraph(store: TaskStore, ...names: string[]): Graph {
  const graph = acceptGraph(store, named(...names))
  for (const task of graph.tasks) {
    start(store, task)
    end(store, task)
  }
  return graph
}

function refusal(work: () => unknown): ServiceError {
  try {
    work()
  } catch (error) {
    if (error instanceof ServiceError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

describe('a change', () => {
  test('gets the next number, and is told to every watcher once and in order', () => {
    const store = new TaskStore({ lastSeq: 40 })
    const told: [string, number, string | undefined][] = []
    const unwatch = store.watch((change, seq, before) => void told.push([change.kind, seq, before]))
    const late: number[] = []
    const { tasks } = acceptGraph(store, named('a', 'b'))
    store.watch((_, seq) => void late.push(seq))
    start(store, tasks[0]!)
    store.apply({ kind: 'progress', task: tasks[0]!, at: AT })
    store.apply({ kind: 'attempt-failed', task: tasks[0]!, at: AT, failure })
    start(store, tasks[0]!)
    end(store, tasks[0]!, failed)
    end(store, tasks[1]!, skipped)
    unwatch()
    remove(store, tasks[1]!)
    expect(told).toEqual([
      ['graph-accepted', 41, undefined],
      ['attempt-started', 42, 'pending'],
      ['progress', 43, 'running'],
      ['attempt-failed', 44, 'running'],
      ['attempt-started', 45, 'running'],
      ['ended', 46, 'running'],
      ['ended', 47, 'pending'],
      ['graph-ended', 48, undefined],
    ])
    expect(late).toEqual([42, 43, 44, 45, 46, 47, 48, 49])
    expect(store.seq).toBe(49)
    expect(tasks.map(({ seq }) => seq)).toEqual([46, 49])
    expect(tasks[0]!.graph.acceptedSeq).toBe(41)
  })

  test('of a task shows in the task, with its time', () => {
    const store = new TaskStore()
    const task = acceptGraph(store, [{ id: 'a', type: 'test', retry: 2 }], AT).tasks[0]!
    start(store, task, AT + 1)
    expect(task).toMatchObject({ status: 'running', attempt: 1, startedAt: AT + 1, attemptStartedAt: AT + 1 })
    store.apply({ kind: 'attempt-failed', task, at: AT + 2, failure })
    expect(task).toMatchObject({ status: 'running', rare: { isBackingOff: true, failure }, updatedAt: AT + 2 })
    start(store, task, AT + 3)
    expect(task).toMatchObject({ attempt: 2, startedAt: AT + 1, attemptStartedAt: AT + 3 })
    expect([task.rare.failure, task.rare.isBackingOff]).toEqual([undefined, undefined])
    store.apply({ kind: 'attempt-interrupted', task, at: AT + 4, reason: 'stopped' })
    expect(task).toMatchObject({ status: 'pending', attempt: 2, rare: { interrupted_attempts: 1 }, usedAttempts: 1 })
    start(store, task, AT + 5)
    store.apply({ kind: 'cancel-requested', task, at: AT + 6 })
    expect(task).toMatchObject({ status: 'cancelling', updatedAt: AT + 6 })
    end(store, task, cancelled, AT + 7)
    expect(task).toMatchObject({
      status: 'cancelled',
      rare: { error: 'task cancelled' },
      finishedAt: AT + 7,
      updatedAt: AT + 7,
    })
    expect(task.graph.live).toBe(0)
  })

  test('that ends a task keeps what belongs to that ending', () => {
    const store = new TaskStore()
    const { tasks } = acceptGraph(store, named('a', 'b', 'c'))
    start(store, tasks[0]!)
    end(store, tasks[0]!, success)
    start(store, tasks[1]!)
    end(store, tasks[1]!, failed)
    end(store, tasks[2]!, skipped)
    expect(tasks.map(({ result, rare }) => [result, rare.failure, rare.error])).toEqual([
      [{ ok: true }, undefined, undefined],
      [{ exit_code: 1 }, failure, failure.message],
      [undefined, undefined, 'dependency a failed'],
    ])
  })

  test.each<[string, Ending[], Ending]>([
    ['a task that has ended', [success], failed],
    ['a task that was skipped', [skipped], success],
    ['a task that never started', [], success],
  ])('of %s is refused when the rules have no place for it', (_, before, ending) => {
    const store = new TaskStore()
    const task = acceptGraph(store, named('a')).tasks[0]!
    for (const each of before) {
      if (each.status === 'success') start(store, task)
      end(store, task, each)
    }
    expect(() => end(store, task, ending)).toThrow(`task a cannot go from ${task.status} to ${ending.status}`)
  })

  test('keeps the last hundred reports of progress', () => {
    const store = new TaskStore()
    const task = acceptGraph(store, named('a')).tasks[0]!
    for (let i = 0; i < 150; i++) store.apply({ kind: 'progress', task, at: AT + i, message: `step ${i}` })
    expect(task.rare.progress).toHaveLength(100)
    expect(task.rare.progress![0]).toEqual({ timestamp: '2026-01-01T00:00:00.050Z', message: 'step 50' })
    expect(task.rare.progress!.at(-1)!.message).toBe('step 149')
    store.apply({ kind: 'progress', task, at: AT, data: { percent: 1 } })
    expect(task.rare.progress!.at(-1)).toStrictEqual({ timestamp: '2026-01-01T00:00:00.000Z', data: { percent: 1 } })
  })
})

describe('a claim', () => {
  test('shows nothing of its graph before the graph is accepted', () => {
    const store = new TaskStore()
    const graph = graphOf(named('a', 'b'))
    runSync(store.claim(graph))
    expect(store.get('a')).toBeUndefined()
    expect([...store.graphs]).toEqual([])
    expect(store.seq).toBe(0)
    store.apply({ kind: 'graph-accepted', graph })
    expect(store.get('a')).toBe(graph.tasks[0]!)
    expect(graph).toMatchObject({ visible: 2, live: 2, isAccepted: true })
  })

  test('of an id that is in use is refused, and leaves everything as it was', () => {
    const names = fc.uniqueArray(fc.constantFrom(...'abcdefgh'), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(names, names, names, (active, ended, claimed) => {
        const store = new TaskStore()
        const free = ended.filter((id) => !active.includes(id))
        if (free.length > 0) endedGraph(store, ...free)
        acceptGraph(store, named(...active))
        const before = [...'abcdefgh'].map((id) => store.get(id))
        const { seq } = store

        const graph = graphOf(named(...claimed))
        const taken = claimed.find((id) => active.includes(id))
        if (taken === undefined) {
          runSync(store.claim(graph))
          store.unclaim(graph)
        } else {
          const error = refusal(() => runSync(store.claim(graph)))
          expect([error.status, error.message]).toEqual([
            409,
            expect.stringContaining(`task already active: ${taken} (in graph `),
          ])
        }
        expect([...'abcdefgh'].map((id) => store.get(id))).toEqual(before)
        expect(store.seq).toBe(seq)
        // What was free before is free again.
        const others = [...'abcdefgh'].filter((id) => !active.includes(id))
        if (others.length > 0) acceptGraph(store, named(...others))
        expect(ids(store.visibleTasks()).toSorted()).toEqual(
          [...'abcdefgh'].filter((id) => active.includes(id) || others.includes(id)),
        )
        for (const task of [...store.graphs].flatMap(({ tasks }) => tasks)) {
          expect(store.isVisible(task)).toBe(store.get(task.id) === task)
        }
      }),
    )
  })

  test('is refused an id that another graph has claimed, until that gives it back', () => {
    const store = new TaskStore()
    const first = graphOf(named('a', 'b'))
    const second = graphOf(named('c', 'b'))
    runSync(store.claim(first))
    expect(refusal(() => runSync(store.claim(second))).message).toStartWith('task already active: b (in graph ')
    store.unclaim(first)
    runSync(store.claim(second))
    store.apply({ kind: 'graph-accepted', graph: second })
    expect(ids(store.visibleTasks())).toEqual(['c', 'b'])
    expect(store.get('a')).toBeUndefined()
  })

  test('may take over the id of a task that has ended, which is seen until the new graph is accepted', () => {
    const store = new TaskStore()
    const old = endedGraph(store, 'a', 'b')
    const graph = graphOf(named('b', 'c'))
    runSync(store.claim(graph))
    expect(store.get('b')).toBe(taskIn(old, 'b'))
    expect(ids(store.visibleTasks())).toEqual(['a', 'b'])
    store.apply({ kind: 'graph-accepted', graph })
    expect(store.get('b')).toBe(taskIn(graph, 'b'))
    expect(store.get('a')).toBe(taskIn(old, 'a'))
    expect([...store.visibleTasks()]).toEqual([taskIn(old, 'a'), ...graph.tasks])
    // Its graph still has the replaced task.
    expect(store.taskIn(old, 'b')).toMatchObject({ isReplaced: true, result: { ok: true }, address: `${old.id}/b` })
    expect(store.taskIn(graph, 'b')).toBe(taskIn(graph, 'b'))
    expect([...store.recordedTasks()]).toEqual([...old.tasks, ...graph.tasks])
    expect({ visible: old.visible, count: store.taskCount }).toEqual({ visible: 2, count: 4 })
    acceptGraph(store, named('a'))
    expect(store.graph(old.id)).toBe(old)
  })

  test('leaves the id free once its task is deleted: a replaced task never comes back', () => {
    const store = new TaskStore()
    const old = endedGraph(store, 'a')
    remove(store, acceptGraph(store, named('a')).tasks[0]!)
    expect(store.get('a')).toBeUndefined()
    expect(store.taskIn(old, 'a')).toBe(old.tasks[0]!)
    acceptGraph(store, named('a'))
  })

  test('forgets a replaced task when it is deleted or its graph is retired, and only then', async () => {
    for (const how of ['deleted', 'graph-retired'] as const) {
      const store = new TaskStore()
      const forgotten: Task[] = []
      store.onForgotten = (task) => forgotten.push(task)
      const old = endedGraph(store, 'a')
      acceptGraph(store, named('a'))
      await nextTurn()
      expect(forgotten).toEqual([])
      const task = old.tasks[0]!
      store.apply(how === 'deleted' ? { kind: how, task, at: AT } : { kind: how, graph: old, at: AT })
      expect(forgotten).toEqual([task])
      expect([store.taskIn(old, 'a'), store.graph(old.id), store.taskCount]).toEqual([undefined, undefined, 1])
    }
  })

  test.each([3, 300])('of a scoped graph of %i tasks takes no id, and needs none', (count) => {
    const store = new TaskStore()
    const names = Array.from({ length: count }, (_, i) => `t${i}`)
    const active = acceptGraph(store, named(...names))
    const [first, second] = [acceptScoped(store, named(...names)), acceptScoped(store, named(...names))]
    for (const id of ['t0', names.at(-1)!]) {
      expect(store.get(id)).toBe(taskIn(active, id))
      for (const graph of [active, first, second]) expect(store.taskIn(graph, id)).toBe(taskIn(graph, id))
      expect(taskIn(first, id).address).toBe(`${first.id}/${id}`)
    }
    expect([...store.visibleTasks()]).toEqual([...active.tasks])
    expect([...store.recordedTasks([second])]).toEqual([...second.tasks])
    for (const task of first.tasks) remove(store, task)
    expect([store.taskIn(first, 't0'), store.graph(first.id)]).toEqual([undefined, undefined])
    expect(store.taskCount).toBe(2 * count)
  })

  test('finds replaced tasks of a large graph below it', () => {
    const store = new TaskStore()
    const names = Array.from({ length: 300 }, (_, i) => `t${i}`)
    const old = endedGraph(store, ...names)
    const again = acceptGraph(store, named('t299', 'other'))
    expect(store.taskIn(old, 't299')).toBe(old.tasks[299]!)
    expect(store.taskIn(again, 't299')).toBe(again.tasks[0]!)
    expect(store.taskIn(old, 't0')).toBe(old.tasks[0]!)
    expect(store.taskIn(old, 'other')).toBeUndefined()
  })

  test('may pause, and meanwhile the ended task can be deleted for good', () => {
    for (const isAccepted of [true, false]) {
      const store = new TaskStore()
      const old = endedGraph(store, 't0')
      const graph = graphOf(named(...Array.from({ length: STEPS_PER_YIELD + 1 }, (_, i) => `t${i}`)))
      const claiming = store.claim(graph)
      expect(claiming.next().done).toBe(false)
      remove(store, taskIn(old, 't0'))
      expect(store.get('t0')?.status).toBeUndefined()
      expect(ids(store.visibleTasks())).toEqual([])
      runSync(claiming)
      if (isAccepted) store.apply({ kind: 'graph-accepted', graph })
      else store.unclaim(graph)
      expect(store.get('t0')).toBe(isAccepted ? graph.tasks[0] : undefined)
      expect(old.visible).toBe(0)
    }
  })

  test('may pause, and is refused an id that was taken meanwhile', () => {
    const store = new TaskStore()
    const names = Array.from({ length: 2 * STEPS_PER_YIELD }, (_, i) => `t${i}`)
    const graph = graphOf(named(...names))
    const claiming = store.claim(graph)
    claiming.next()
    const other = acceptGraph(store, named(names.at(-1)!))
    expect(refusal(() => acceptGraph(store, named('t0'))).message).toStartWith('task already active: t0 (in graph ')
    expect(refusal(() => runSync(claiming)).message).toStartWith(`task already active: ${names.at(-1)} (in graph `)
    expect([...store.visibleTasks()]).toEqual([...other.tasks])
    acceptGraph(store, named('t0'))
  })
})

describe('a deleted task', () => {
  test('is not seen any more, and its id is free, when it was pending or had ended', () => {
    const store = new TaskStore()
    const { tasks } = acceptGraph(store, named('a', 'b', 'c'))
    end(store, tasks[1]!, skipped)
    remove(store, tasks[0]!)
    remove(store, tasks[1]!)
    expect(ids(store.visibleTasks())).toEqual(['c'])
    expect(tasks[0]!.graph).toMatchObject({ live: 1, visible: 1 })
    const again = acceptGraph(store, named('a', 'b'))
    expect(store.get('a')).toBe(again.tasks[0]!)
  })

  test('keeps its id until it has ended when it was running', () => {
    const store = new TaskStore()
    const task = acceptGraph(store, named('a')).tasks[0]!
    start(store, task)
    remove(store, task)
    expect(store.get('a')).toBeUndefined()
    expect(task.graph).toMatchObject({ live: 1, visible: 0 })
    expect(refusal(() => acceptGraph(store, named('a'))).message).toStartWith('task already active: a (in graph ')
    end(store, task, failed)
    expect(task.graph.live).toBe(0)
    expect(task.result).toBeUndefined()
    expect([...store.graphs]).toEqual([])
    acceptGraph(store, named('a'))
  })

  test('takes its graph along when it is the last that could be seen', () => {
    const store = new TaskStore()
    const graph = endedGraph(store, 'a', 'b')
    remove(store, taskIn(graph, 'a'))
    expect([...store.graphs]).toEqual([graph])
    remove(store, taskIn(graph, 'b'))
    expect([...store.graphs]).toEqual([])
  })
})

describe('the visible tasks', () => {
  test('come in order of acceptance, then of position', () => {
    const store = new TaskStore()
    acceptGraph(store, named('c', 'a'), AT + 9)
    acceptGraph(store, named('b'), AT)
    expect(ids(store.visibleTasks())).toEqual(['c', 'a', 'b'])
  })

  test('are those of the moment in which the list was begun, less those that went since', () => {
    const store = new TaskStore()
    const first = acceptGraph(store, named('a', 'b', 'c'))
    const list = store.visibleTasks()
    expect(list.next().value).toBe(first.tasks[0]!)
    acceptGraph(store, named('d'))
    remove(store, first.tasks[1]!)
    expect(ids(list)).toEqual(['c'])
    expect(ids(store.visibleTasks())).toEqual(['a', 'c', 'd'])
  })

  test('begin with those of an earlier run', () => {
    const store = new TaskStore()
    const recovered = graphOf(named('a', 'b'))
    recovered.tasks[1]!.removal = 'deleted'
    runSync(store.recover(recovered))
    acceptGraph(store, named('b'))
    expect(ids(store.visibleTasks())).toEqual(['a', 'b'])
    expect(recovered.visible).toBe(1)
    expect(store.seq).toBe(1)
  })

  test('that come from another replica are seen together, whatever happens meanwhile', () => {
    const store = new TaskStore()
    const adopted = graphOf(named(...Array.from({ length: 5 * STEPS_PER_YIELD }, (_, i) => `t${i}`)))
    const steps = store.recover(adopted)
    const seen = () => [
      ...[store.graph(adopted.id), store.get('t0'), store.taskCount, store.graphCount],
      ids(store.recordedTasks()).filter((id) => id !== 'other').length,
    ]
    let count = 0
    for (let step = steps.next(); !step.done; step = steps.next()) {
      if (count++ === 2) acceptGraph(store, named('other')) // takes none of the ids
      const others = count > 2 ? 1 : 0
      expect(seen()).toEqual([undefined, undefined, others, others, 0])
      expect(store.whyTaken('t0')).toStartWith('task already active: t0 (in graph ') // nobody else gets it
    }
    expect(count).toBe(5)
    const { length } = adopted.tasks
    expect(seen()).toEqual([adopted, adopted.tasks[0], length + 1, 2, length])
  })
})

describe('who waits for the end of a task', () => {
  /** The names of the waits that are over after a turn of the event loop. */
  const over = async (waits: Record<string, Promise<void>>) => {
    const done: string[] = []
    for (const [name, wait] of Object.entries(waits)) void wait.then(() => done.push(name))
    await nextTurn()
    return done.toSorted()
  }

  test('is told when it ends, when it is deleted, and when waiting makes no sense any more', async () => {
    const store = new TaskStore()
    const { tasks } = acceptGraph(store, named('a', 'b', 'c', 'd'))
    const gone = new AbortController()
    const never = new AbortController().signal
    const waits = {
      ended: store.whenEnded(tasks[0]!, never),
      endedToo: store.whenEnded(tasks[0]!, never),
      deleted: store.whenEnded(tasks[1]!, never),
      aborted: store.whenEnded(tasks[2]!, gone.signal),
      open: store.whenEnded(tasks[2]!, never),
    }
    expect(await over(waits)).toEqual([])
    start(store, tasks[0]!)
    expect(await over(waits)).toEqual([])
    end(store, tasks[0]!)
    expect(await over(waits)).toEqual(['ended', 'endedToo'])
    remove(store, tasks[1]!)
    gone.abort()
    expect(await over(waits)).toEqual(['aborted', 'deleted', 'ended', 'endedToo'])
    end(store, tasks[2]!, skipped)
    expect(await over(waits)).toContain('open')
    expect(
      await over({
        hasEnded: store.whenEnded(tasks[0]!, never),
        isDeleted: store.whenEnded(tasks[1]!, never),
        isAborted: store.whenEnded(tasks[3]!, AbortSignal.abort()),
      }),
    ).toEqual(['hasEnded', 'isAborted', 'isDeleted'])
  })
})

test('changes in any order are numbered without a gap, and what lives and what is seen is counted right', () => {
  const kinds = fc.constantFrom<Change['kind']>(
    'attempt-started',
    'attempt-interrupted',
    'progress',
    'ended',
    'deleted',
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(kinds, fc.nat(2)), { maxLength: 30 }), (changes) => {
      const store = new TaskStore()
      const told: number[] = []
      store.watch((_, seq) => void told.push(seq))
      const { tasks } = acceptGraph(store, named('a', 'b', 'c'))
      for (const [kind, position] of changes) {
        const task = tasks[position]!
        if (kind === 'attempt-started' && task.status === 'pending' && !task.isDeleted) start(store, task)
        else if (kind === 'attempt-interrupted' && task.status === 'running' && !task.isDeleted)
          store.apply({ kind, task, reason: 'stopped', at: AT })
        else if (kind === 'progress') store.apply({ kind, task, at: AT })
        else if (kind === 'ended' && task.status === 'running') end(store, task)
        else if (kind === 'deleted' && store.get(task.id) === task) remove(store, task)
        expect(store.seq).toBe(told.at(-1)!)
      }
      expect(told).toEqual(Array.from({ length: told.length }, (_, i) => i + 1))
      const live = tasks.filter((task) => !task.isTerminal && !(task.isDeleted && task.status === 'pending'))
      expect(tasks[0]!.graph.live).toBe(live.length)
      expect(tasks[0]!.graph.visible).toBe(tasks.filter((task) => !task.isDeleted).length)
    }),
  )
})
