/**
 * Goal: what is written is what is read, a restart decides as before, and a file that cannot be read is left alone.
 * Method: real files in a directory of the test. Random graphs in random states are written and read, once or several
 * times, and then run to their end; files of the older form and broken ones are written by hand.
 */

import { describe, expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import type { Executor } from '../../../control/executors/executor.ts'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { encodeStates, groupsOf } from '../../../control/log/journaled-state.ts'
import { recover } from '../../../control/log/recovery.ts'
import { NotLineByLine, readSnapshot, readSnapshotLines } from '../../../control/log/snapshot-reader.ts'
import { statePath, writeSnapshot } from '../../../control/log/snapshot-writer.ts'
import { Scheduler } from '../../../control/scheduler/scheduler.ts'
import type { Ending } from '../../../control/task/change.ts'
import type { Graph, Task } from '../../../control/task/graph.ts'
import { NO_RARE_STATE } from '../../../control/task/rare-state.ts'
import { taskRecord } from '../../../control/task/record.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import type { TaskRecord } from '../../../shared/contract/control.ts'
import { UsageError } from '../../../shared/contract/errors.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { nextTurn, runSync } from '../../../shared/process/steps.ts'
import { acceptGraph, taskIn } from '../../support/graph.ts'
import { memoryKeeper } from '../../support/memory-keeper.ts'
import { type RandomTask, randomGraph } from '../../support/random-graph.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

const ANCESTOR = join(import.meta.dir, '../../data/state-ancestor.json')

const failure = { code: 'exit_nonzero', message: 'command failed: exit status 1', details: { exit_code: 1 } } as const
const cancellation = { code: 'cancelled', message: 'task cancelled' } as const
const success: Ending = { status: 'success', result: { ok: true } }
const failed: Ending = { status: 'failed', failure, error: failure.message, result: { stdout: 'ö\n' } }

/** A new store with what the state file in `dir` holds, as after a restart. */
async function restart(dir: string): Promise<{ store: TaskStore; graphs: readonly Graph[] }> {
  const { graphs, lastSeq, lastOrdinal } = await recover(dir)
  const store = new TaskStore({ lastSeq, lastOrdinal })
  for (const graph of graphs) runSync(store.recover(graph))
  return { store, graphs }
}

async function writtenAndRead(store: TaskStore, times = 1): Promise<{ store: TaskStore; graphs: readonly Graph[] }> {
  using dir = tempDir()
  let current: { store: TaskStore; graphs: readonly Graph[] } = { store, graphs: [...store.graphs] }
  for (let i = 0; i < times; i++) {
    await writeSnapshot(current.store, dir.path)
    current = await restart(dir.path)
  }
  return current
}

/** Runs everything that is left to its end; every task that runs succeeds. Gives the ids in the order of their starts. */
async function runToItsEnd(store: TaskStore, graphs: readonly Graph[]): Promise<string[]> {
  const started: string[] = []
  const execute: Executor['execute'] = ({ id }) => {
    started.push(id)
    return { ok: true }
  }
  const scheduler = new Scheduler({
    store,
    executors: new ExecutorRegistry([
      { type: 'test', execute },
      { type: 'os', execute },
    ]),
    maxConcurrency: 4,
    log: silentLog(),
    abandonAfterMs: 60_000,
    serviceId: 'test',
    keeper: memoryKeeper(),
  })
  for (const graph of graphs) scheduler.resume(graph)
  await until(
    () => graphs.map((graph) => graph.live),
    (live) => live.every((count) => count === 0),
  )
  return started
}

const recordsOf = (store: TaskStore): TaskRecord[] => [...store.visibleTasks()].map(taskRecord)

/** What can have become of a task before the state was written. */
const HISTORIES = {
  pending: [],
  running: ['start'],
  'between two attempts': ['start', 'attempt-failed'],
  'in its second attempt': ['start', 'attempt-failed', 'start'],
  interrupted: ['start', 'interrupt'],
  'interrupted and running again': ['start', 'interrupt', 'start'],
  succeeded: ['start', 'succeed'],
  'succeeded at last': ['start', 'attempt-failed', 'start', 'succeed'],
  failed: ['start', 'fail'],
  skipped: ['skip'],
  'cancelled before it ran': ['cancel'],
  'being cancelled': ['start', 'request-cancel'],
  cancelled: ['start', 'request-cancel', 'cancel'],
} as const
type Step = (typeof HISTORIES)[keyof typeof HISTORIES][number]

function take(store: TaskStore, task: Task, step: Step, at: number, result?: unknown): void {
  const kept = result === undefined ? {} : { result }
  const end = (ending: Ending) => store.apply({ kind: 'ended', task, at, ending })
  const steps: Record<Step, () => void> = {
    start: () => store.apply({ kind: 'attempt-started', task, at }),
    'attempt-failed': () => store.apply({ kind: 'attempt-failed', task, at, failure }),
    interrupt: () => store.apply({ kind: 'attempt-interrupted', reason: 'stopped', task, at }),
    'request-cancel': () => store.apply({ kind: 'cancel-requested', task, at }),
    succeed: () => end({ status: 'success', result: result ?? [] }),
    fail: () => end({ status: 'failed', failure, error: 'it failed', ...kept }),
    skip: () => end({ status: 'skipped', error: 'dependency x failed' }),
    cancel: () => end({ status: 'cancelled', failure: cancellation, error: cancellation.message, ...kept }),
  }
  steps[step]()
}

const json = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as unknown)
const time = fc.integer({ min: Date.UTC(1970, 0, 1), max: Date.UTC(2100, 0, 1) })
const history = fc.constantFrom(...(Object.keys(HISTORIES) as (keyof typeof HISTORIES)[]))

/** What is random about one task beside its place in the graph. */
const life = fc.record({
  history,
  at: time,
  /** Wrapped, so that it is not the null that means absent. */
  result: fc.option(
    json.map((value) => ({ value })),
    { nil: undefined },
  ),
  progress: fc.array(json, { maxLength: 2 }),
  isDeleted: fc.boolean(),
  input: fc.record(
    {
      params: json,
      input: json,
      retry: fc.nat(5),
      timeout: fc.maxSafeInteger(),
      annotations: fc.dictionary(fc.string(), fc.string(), { maxKeys: 2 }),
    },
    { requiredKeys: [] },
  ),
})

const KILLED = 'the attempt was interrupted: the service was killed'

/** The record after a restart of a task whose record was `before`. */
function recovered(before: TaskRecord): TaskRecord {
  if (before.status !== 'running') return before
  const { attempt, started_at } = before.runtime!
  const cutShort = { attempt, started_at: started_at!, error: KILLED, code: 'cancelled' } as const
  const attempts = before.run_status === 'running' ? [...(before.attempts ?? []), cutShort] : before.attempts
  return {
    ...before,
    ...(attempts && { attempts }),
    status: 'pending',
    run_status: 'accepted',
    runtime: { ...before.runtime!, status: 'accepted' },
  }
}

describe('the state file', () => {
  test('gives back every record as it was, but for what was under way', async () => {
    const graphs = fc.array(
      fc.tuple(randomGraph({ type: 'test', maxTasks: 8 }), time, fc.array(life, { minLength: 8, maxLength: 8 })),
      {
        maxLength: 3,
      },
    )
    await fc.assert(
      fc.asyncProperty(graphs, async (submitted) => {
        const store = new TaskStore()
        const attempts = new Map<string, [attempt: number, interrupted: number]>()
        submitted.forEach(([tasks, createdAt, lives], g) => {
          const prefixed = tasks.map((task, i) => ({
            ...lives[i]!.input,
            ...task,
            id: `${g}${task.id}`,
            depends_on: task.depends_on.map((id) => `${g}${id}`),
          }))
          for (const [i, task] of acceptGraph(store, prefixed, createdAt).tasks.entries()) {
            const { history, at, result, progress, isDeleted } = lives[i]!
            const steps = HISTORIES[history]
            for (const [i, step] of steps.entries()) take(store, task, step, at + i * 1_000, result)
            for (const data of progress) store.apply({ kind: 'progress', task, at, message: history, data })
            attempts.set(task.id, [
              task.attempt,
              (task.rare.interrupted_attempts ?? 0) +
                (history.includes('running') || history.startsWith('in its') ? 1 : 0),
            ])
            if (isDeleted) store.apply({ kind: 'deleted', task, at })
          }
        })
        const graphsBefore = [...store.graphs].filter((graph) => graph.visible > 0)
        const before = recordsOf(store)

        const after = await writtenAndRead(store)
        expect(after.graphs.map(({ id, traceId, createdAt, visible }) => [id, traceId, createdAt, visible])).toEqual(
          graphsBefore.map(({ id, traceId, createdAt, visible }) => [id, traceId, createdAt, visible]),
        )
        const records = recordsOf(after.store)
        expect(records.map(({ id }) => id)).toEqual(before.map(({ id }) => id))
        for (const [i, record] of records.entries()) {
          const old = before[i]!
          if (old.status === 'cancelling') {
            expect(record).toMatchObject({ status: 'cancelled', run_status: 'cancelled', error: 'task cancelled' })
            expect(record.runtime).toMatchObject({ status: 'cancelled', error: cancellation })
            expect(record.finished_at).toBe(old.updated_at!)
          } else expect(record).toStrictEqual(recovered(old))
          const task = after.store.get(record.id)!
          expect([task.attempt, task.rare.interrupted_attempts ?? 0]).toEqual(attempts.get(record.id)!)
        }
      }),
      { numRuns: 60 },
    )
  })

  test('is empty for an empty store, and absent is as good as empty', async () => {
    using dir = tempDir()
    expect((await recover(dir.path)).graphs).toEqual([])
    await writeSnapshot(new TaskStore(), dir.path)
    expect(JSON.parse(readFileSync(statePath(dir.path), 'utf8'))).toEqual({})
    expect((await recover(dir.path)).graphs).toEqual([])
  })

  test('can be written while the tasks change, and gives way to that', async () => {
    using dir = tempDir()
    const store = new TaskStore()
    const tasks = Array.from({ length: 20_000 }, (_, i) => ({
      id: `t${i}`,
      type: 'test',
      params: { text: 'x'.repeat(40) },
    }))
    const graph = acceptGraph(store, tasks)
    let isWritten = false
    const writing = writeSnapshot(store, dir.path).finally(() => {
      isWritten = true
    })
    let changes = 0
    while (!isWritten) {
      const task = graph.tasks[changes++ % tasks.length]!
      if (task.status === 'pending') take(store, task, 'start', 1)
      if (changes % 7 === 0 && !task.isDeleted) store.apply({ kind: 'deleted', task, at: 2 })
      acceptGraph(store, [{ id: `later ${changes}`, type: 'test' }])
      await nextTurn()
    }
    await writing
    expect(changes).toBeGreaterThan(1)
    const { store: after } = await restart(dir.path)
    const found = recordsOf(after)
      .map(({ id }) => id)
      .filter((id) => id.startsWith('t'))
    expect(found).toEqual(tasks.map(({ id }) => id).filter((id) => found.includes(id)))
    expect(found.length).toBeGreaterThan(tasks.length - changes)
  })
})

describe('a restart', () => {
  /** What became of a task before the restart, and what was done to its record then. */
  const fate = fc.record({
    outcome: fc.constantFrom('success', 'success', 'success', 'failed', 'pending', 'pending'),
    gone: fc.constantFrom('no', 'no', 'deleted', 'replaced'),
  })

  /** The tasks in an order in which each comes after its dependencies. */
  function ordered(tasks: readonly RandomTask[]): RandomTask[] {
    const done: RandomTask[] = []
    while (done.length < tasks.length) {
      const next = tasks.find(
        (task) => !done.includes(task) && task.depends_on.every((id) => done.some((other) => other.id === id)),
      )
      done.push(next!)
    }
    return done
  }

  test('decides as before about tasks whose dependencies were deleted or replaced, however often it happens', async () => {
    const fates = fc.array(fate, { minLength: 10, maxLength: 10 })
    await fc.assert(
      fc.asyncProperty(
        randomGraph({ type: 'test', maxTasks: 10 }),
        fates,
        fc.integer({ min: 1, max: 3 }),
        async (tasks, chosen, restarts) => {
          const store = new TaskStore()
          const graph = acceptGraph(store, tasks)
          // What must come of each task: it ended before, its record is gone, or it is still to run or to be skipped.
          const expected = new Map<string, string>()
          const fateOf = new Map(tasks.map((task, i) => [task.id, chosen[i]!]))
          const order = ordered(tasks)
          for (const { id, depends_on } of order) {
            const task = taskIn(graph, id)
            const { outcome } = fateOf.get(id)!
            const mayRun = depends_on.every((dependency) => taskIn(graph, dependency).status === 'success')
            if (!mayRun || outcome === 'pending') continue
            take(store, task, 'start', 1)
            store.apply({ kind: 'ended', task, at: 2, ending: outcome === 'success' ? success : failed })
          }
          for (const { id, depends_on } of order) {
            const task = taskIn(graph, id)
            const { gone } = fateOf.get(id)!
            if (task.isTerminal) expected.set(id, task.status)
            else if (gone === 'deleted') expected.set(id, 'deleted')
            else {
              const isLost = depends_on.some((dependency) => expected.get(dependency) !== 'success')
              expected.set(id, isLost ? 'skipped' : 'success')
            }
            if (gone === 'deleted') store.apply({ kind: 'deleted', task, at: 3 })
            if (gone === 'replaced' && task.isTerminal) acceptGraph(store, [{ id, type: 'test' }])
          }

          const after = await writtenAndRead(store, restarts)
          const started = await runToItsEnd(after.store, after.graphs)
          expect(new Set(started).size).toBe(started.length)
          const again = after.graphs.find(({ id }) => id === graph.id)
          for (const { id, depends_on } of tasks) {
            const task = again?.tasks.find((candidate) => candidate.id === id && !candidate.isDeleted)
            if (task === undefined) continue // its record was gone
            expect({ id, status: task.status as string }).toEqual({ id, status: expected.get(id)! })
            if (!started.includes(id) && task.status === 'skipped') {
              const reasons = depends_on.map((dependency) => `dependency ${dependency} ${expected.get(dependency)}`)
              expect(reasons).toContain(task.rare.error!)
            }
          }
        },
      ),
      { numRuns: 150 },
    )
  }, 120_000)
})

test('a state file whose graphs are not next to each other loads as one whose graphs are', async () => {
  using dir = tempDir()
  const store = new TaskStore()
  for (const prefix of ['a', 'b']) {
    acceptGraph(store, [
      { id: `${prefix}1`, type: 'test' },
      { id: `${prefix}2`, type: 'test', depends_on: [`${prefix}1`] },
    ])
  }
  await writeSnapshot(store, dir.path)
  const entries = JSON.parse(readFileSync(statePath(dir.path), 'utf8')) as Record<string, unknown>
  const text = ['a1', 'b1', 'a2', 'b2'].map((id) => `"${id}":${JSON.stringify(entries[id])}`).join(',')
  writeFileSync(statePath(dir.path), `{${text}}`)
  const { graphs } = await restart(dir.path)
  expect(graphs.map(({ tasks }) => tasks.map(({ id }) => id))).toEqual([
    ['a1', 'a2'],
    ['b1', 'b2'],
  ])
  expect(graphs.map((graph) => graph.dependentCount(graph.tasks[0]!))).toEqual([1, 1])
})

describe('the memory of a restart', () => {
  /** Two graphs, one that has ended and one that waits for a task that runs. */
  async function restarted() {
    const store = new TaskStore()
    const input = { type: 'os', tool_name: 'noop', params: { message: 'hi', list: [1] } }
    const [ended, live] = ['e', 'l'].map((prefix, i) =>
      acceptGraph(
        store,
        Array.from({ length: 300 }, (_, n) => ({
          ...input,
          id: `${prefix}${n}`,
          ...(n > 0 && { depends_on: [`${prefix}0`] }),
        })),
        1_000 + i,
      ),
    )
    for (const task of ended!.tasks) {
      take(store, task, 'start', 2_000)
      store.apply({ kind: 'ended', task, at: 2_000, ending: { status: 'success', result: null } })
    }
    take(store, live!.tasks[0]!, 'start', 2_000)
    store.apply({ kind: 'ended', task: live!.tasks[0]!, at: 2_000, ending: { status: 'success', result: null } })
    const { graphs } = await writtenAndRead(store)
    return graphs as [Graph, Graph]
  }

  test('has no cold fields for tasks that had none, and one copy of their input', async () => {
    const tasks = (await restarted()).flatMap((graph) => graph.tasks)
    expect(tasks.length).toBe(600)
    expect(tasks.filter(({ rare }) => rare !== NO_RARE_STATE).length).toBe(0)
    expect(tasks.filter(({ params, input }) => params !== input).length).toBe(0)
    expect(tasks[0]!.createdAt).toBe(1_000)
    expect(tasks[599]!.createdAt).toBe(1_001)
  })

  test('has no edges of graphs that have ended, and those of others', async () => {
    const [ended, live] = await restarted()
    expect(ended.dependentCount(ended.tasks[0]!)).toBe(0)
    expect(ended.missing.length).toBe(0)
    expect(live.dependentCount(live.tasks[0]!)).toBe(299)
    expect(live.missing.length).toBe(300)
  })

  test('lets tasks that end alike share a row of the journal, as before', async () => {
    const [, live] = await restarted()
    const waiting = live.tasks.slice(1)
    const result = Object.freeze({ ok: true })
    for (const task of waiting) {
      Object.assign(task, {
        status: 'success',
        attempt: 1,
        startedAt: 5,
        attemptStartedAt: 5,
        finishedAt: 6,
        updatedAt: 6,
      })
      task.result = result
    }
    expect(JSON.parse(encodeStates(groupsOf(waiting)))).toHaveLength(1)
  })
})

describe('a state file of the older form', () => {
  test('loads as one graph, with everything that it says', async () => {
    using dir = tempDir()
    copyFileSync(ANCESTOR, statePath(dir.path))
    const { store, graphs } = await restart(dir.path)
    expect(graphs).toHaveLength(1)
    const graph_id = graphs[0]!.id
    const created_at = '2026-01-02T03:04:05.123Z'
    const os = { type: 'os', execution_category: 'os', graph_id } as const
    const records: TaskRecord[] = [
      {
        ...{ ...os, id: 'fetch', tool_name: 'http', status: 'success' },
        params: { url: 'http://127.0.0.1:9/data', method: 'GET' },
        input: { url: 'http://127.0.0.1:9/data', method: 'GET' },
        ...{ retry: 2, timeout: 5000, result: { status_code: 200, body: 'ok' } },
        ...{ created_at, updated_at: '2026-01-02T03:04:06.500Z' },
      },
      {
        ...{ ...os, id: 'build', tool_name: 'shell', status: 'pending', depends_on: ['fetch'] },
        params: { command: 'ls', args: ['-l'] },
        input: { command: 'ls', args: ['-l'] },
        ...{ retry: 1, timeout: 0, created_at, updated_at: '2026-01-02T03:04:07.000Z' },
      },
      {
        ...{ ...os, id: 'notify', tool_name: 'noop', status: 'pending', depends_on: ['build', 'fetch'], retry: 0 },
        ...{ created_at: '2026-01-02T03:04:05.999Z', updated_at: '2026-01-02T03:04:05.999Z' },
      },
      {
        ...{ ...os, id: 'clean', tool_name: 'shell', status: 'failed', depends_on: [] },
        ...{ params: { command: 'rm' }, input: { command: 'rm' }, retry: 0, timeout: -1 },
        error: 'command "rm" is not in the allowed whitelist',
        ...{ created_at, updated_at: '2026-01-02T03:04:05.200Z' },
      },
      {
        ...{ ...os, id: 'after-clean', tool_name: 'noop', status: 'skipped', depends_on: ['clean'], retry: 0 },
        ...{ created_at, updated_at: '2026-01-02T03:04:05.200Z' },
      },
      {
        ...{ ...os, id: 'orphan', tool_name: 'noop', status: 'pending', depends_on: ['gone'], retry: 0, timeout: 0 },
        params: { message: 'my dependency was deleted' },
        input: { message: 'my dependency was deleted' },
        ...{ created_at: '2026-01-02T03:04:08.000Z', updated_at: '2026-01-02T03:04:08.000Z' },
      },
    ]
    expect(recordsOf(store)).toEqual(records)
  })
})

describe('a state file read line by line', () => {
  const entry = (id: string) => `${JSON.stringify(id)}:${JSON.stringify({ id, type: 'noop', status: 'success' })}`

  async function bothReadings(dir: string) {
    const whole: unknown[] = []
    await readSnapshot(dir, (...member) => whole.push(member))
    const lines: unknown[] = []
    const read = () => readSnapshotLines(dir, (...member) => lines.push(member))
    return { whole, lines, read }
  }

  test('gives the entries that the whole file gives, in parts that cut lines and characters', async () => {
    using dir = tempDir()
    const store = new TaskStore()
    const ids = Array.from({ length: 4_000 }, (_, i) => `${i} "ö\n\u2028\u{1f600}`)
    acceptGraph(
      store,
      [...ids, '__proto__', '7'].map((id) => ({ id, type: 'test', input: { text: 'ä'.repeat(500) } })),
    )
    await writeSnapshot(store, dir.path)
    const { whole, lines, read } = await bothReadings(dir.path)
    read()
    expect(lines).toEqual(whole)
    expect(lines).toHaveLength(4_002)
    expect(statSync(statePath(dir.path)).size).toBeGreaterThan(4 * 1024 * 1024)
  })

  test.each<[string, string]>([
    ['in one line', `{${entry('a')},${entry('b')}}`],
    ['with two entries in a line', `{\n${entry('a')},${entry('b')}\n}\n`],
    ['with an entry in two lines', `{\n${entry('a').replace(',', ',\n')}\n}\n`],
    ['with spaces', `{\n ${entry('a')}\n}\n`],
    ['with carriage returns', `{\r\n${entry('a')}\r\n}\r\n`],
    ['with an empty line at its end', `{\n${entry('a')}\n}\n\n`],
    ['without a last line end', `{\n${entry('a')}\n}`],
    ['without entries, in one line', '{}'],
  ])('an edited file %s is read as a whole', async (_, text) => {
    using dir = tempDir()
    writeFileSync(statePath(dir.path), text)
    const { whole, read } = await bothReadings(dir.path)
    expect(read).toThrow(NotLineByLine)
    const { graphs } = await recover(dir.path)
    expect(graphs.flatMap(({ tasks }) => tasks.map(({ id }) => id))).toEqual(
      whole.map((member) => (member as [string])[0]),
    )
  })

  test.each<[string, string]>([
    ['a comma too many', `{\n${entry('a')},\n}\n`],
    ['a comma too few', `{\n${entry('a')}\n${entry('b')}\n}\n`],
    ['no end', `{\n${entry('a')}\n`],
    ['more after its end', `{\n${entry('a')}\n}\n}\n`],
  ])('a file with %s is refused as a whole', async (_, text) => {
    using dir = tempDir()
    writeFileSync(statePath(dir.path), text)
    expect(() => readSnapshotLines(dir.path, () => {})).toThrow(NotLineByLine)
    await expect(recover(dir.path)).rejects.toThrow('it is not valid JSON: ')
  })
})

describe('a file that cannot be read', () => {
  const task = (fields: object) => JSON.stringify({ a: { id: 'a', type: 'noop', status: 'pending', ...fields } })

  test.each<[string, string, string]>([
    ['is empty', '', 'it is not valid JSON: '],
    ['breaks off', task({}).slice(0, -2), 'it is not valid JSON: '],
    ['goes on after its end', `${task({})}}`, 'it is not valid JSON: '],
    ['is null', 'null', 'it is not valid JSON: expected an object'],
    ['is a list', '[]', 'it is not valid JSON: expected an object'],
    ['is not UTF-8', '{"a\xff":{}}', 'it is not valid JSON: the text is not valid UTF-8'],
    ['has an entry that is null', '{"a":null}', 'the entry of task a is not a task'],
    ['has an entry that is a number', '{"a":1}', 'the entry of task a is not a task'],
    ['has dependencies of another kind', task({ depends_on: 'b' }), 'the entry of task a is not a task'],
    ['has a task without a type', task({ type: '' }), 'task a has no type'],
    ['has a task without a status', task({ status: undefined }), 'task a has the unknown status null'],
    ['has a task with an unknown status', task({ status: 'done' }), 'task a has the unknown status "done"'],
    ['has a task that depends on itself', task({ depends_on: ['a'] }), 'the dependencies of task a form a cycle'],
    [
      'has a task that has ended and depends on itself',
      task({ depends_on: ['a'], status: 'success' }),
      'the dependencies of task a form a cycle',
    ],
    ['has progress of another kind', task({ progress: 5 }), ''],
    ['asks at no time', task({ asked_at: 'now' }), 'task a has the asked_at "now", which is no time'],
    ['asks too late', task({ asked_at: 1e15 }), 'task a has the asked_at 1000000000000000, which is no time'],
    ['has attempts of another kind', task({ attempts: {} }), 'task a has attempts that are no list of attempts'],
    ['has an attempt without a number', task({ attempts: [{ error: 'no' }] }), 'task a has attempts that are no list'],
    ['has settled dependencies of another kind', task({ depends_on: ['b'], settled_dependencies: 5 }), ''],
    ['has a settled dependency that is null', task({ depends_on: ['b'], settled_dependencies: [null] }), ''],
  ])('because it %s is refused with its path and a remedy, and stays as it is', async (_, text, detail) => {
    using dir = tempDir()
    const path = statePath(dir.path)
    const bytes = Buffer.from(text, 'latin1')
    writeFileSync(path, bytes)
    const error = await recover(dir.path).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(error).toBeInstanceOf(UsageError)
    const { message } = error as UsageError
    expect(message).toStartWith(`cannot read the state file ${path}: ${detail}`)
    expect(message).toEndWith('; it is left as it is: repair it or move it away')
    expect(message).not.toContain('\n')
    expect(readFileSync(path).equals(bytes)).toBe(true)
    expect(readdirSync(dir.path)).toEqual(['state.json'])
  })

  test('because it is a directory is refused as well', async () => {
    using dir = tempDir()
    mkdirSync(statePath(dir.path))
    await expect(recover(dir.path)).rejects.toThrow(UsageError)
    await expect(recover(dir.path)).rejects.toThrow(`cannot read the state file ${statePath(dir.path)}: `)
  })

  test('is no name that stands twice: the last one counts', async () => {
    using dir = tempDir()
    const entry = (status: string) => JSON.stringify({ id: 'a', type: 'noop', status })
    writeFileSync(statePath(dir.path), `{"a":${entry('pending')},"a":${entry('success')}}`)
    expect((await recover(dir.path)).graphs[0]?.tasks.map(({ status }) => status)).toEqual(['success'])
  })
})
