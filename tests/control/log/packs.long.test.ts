/**
 * Goal: a start finds in the packs what the store had, whatever changed between the snapshots, and the packs stay few and small.
 * Method: random graphs with random states are written to packs. A start reads them with a journal that
 * mentions no graph, and with one that mentions all. Random changes are packed step by step.
 */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { checkedEntry } from '../../../control/log/checked-entry.ts'
import { raiseFormat } from '../../../control/log/data-format.ts'
import { GcSchedule } from '../../../control/log/gc-schedule.ts'
import { FrameBuffer } from '../../../control/log/journal-format.ts'
import { Notes } from '../../../control/log/notes.ts'
import { Packs, packsIn } from '../../../control/log/packs.ts'
import { filesWithInput, recover } from '../../../control/log/recovery.ts'
import { Replay } from '../../../control/log/replay.ts'
import { segmentName } from '../../../control/log/segment.ts'
import { writeSnapshot } from '../../../control/log/snapshot-writer.ts'
import { taskEntry } from '../../../control/log/stored-task.ts'
import { ResultFile } from '../../../control/rules/result-file.ts'
import type { Graph, Task } from '../../../control/task/graph.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import type { TaskInput } from '../../../shared/contract/submission.ts'
import { acceptGraph } from '../../support/graph.ts'
import { randomGraph } from '../../support/random-graph.ts'
import { tempDir } from '../../support/temp.ts'

/** Everything about a recovered graph. */
const described = ({ tasks, pack: _, packBytes: __, ...graph }: Graph) => ({
  ...graph,
  options: graph.options,
  tasks: tasks
    .map((task) => ({ ...task, ...definitionOf(task), ...stateOf(task) }))
    .map(({ graph: _, ...task }) => task),
})

const definitionOf = ({ type, toolName, options }: Task) => ({ type, toolName, options })

const stateOf = (task: Task) => ({
  ...{ createdAt: task.createdAt, interruptedAttempts: task.rare.interrupted_attempts, failure: task.rare.failure },
  ...{
    errorText: task.rare.error,
    skipStanding: task.rare.skip_standing,
    progress: task.rare.progress,
    attempts: task.rare.attempts,
  },
  ...{
    handle: task.rare.handle,
    reusedFrom: task.rare.reused_from,
    resolvedInput: task.rare.resolved_input,
    runStatus: task.runStatus,
  },
  ...{ inputFile: task.rare.input_file, isConditionMet: task.rare.condition_met, fanOut: task.fanOut?.count },
})

async function found(dir: string) {
  const { graphs, processes, toKillRemotely, toForget } = await recover(dir)
  const tasks = [...toKillRemotely, ...toForget].map(({ id }) => id)
  return { graphs: graphs.map(described), processes, tasks }
}

/** Writes a pack up to segment `to`. */
async function pack(packs: Packs, to: number, store: TaskStore, changed: Iterable<Graph>): Promise<void> {
  const start = { last_seq: store.seq, last_ordinal: store.ordinal }
  await packs.write(to, {
    store,
    changed: new Set(changed),
    gone: [],
    notes: new Notes(),
    start,
    beforeNotes: async () => {},
  })
  await packs.removeOthers()
}

/** A directory with all of `store` in one pack. */
async function packed(store: TaskStore) {
  const dir = tempDir()
  await pack(new Packs(dir.path, []), 1, store, store.graphs)
  raiseFormat(dir.path)
  return dir
}

/** What a start makes of the entries of `store`, which the other readings must be no different from. */
function inEntries(store: TaskStore) {
  const refuse = (detail: string) => new Error(detail)
  const replay = new Replay(new GcSchedule())
  let last: Graph | undefined
  for (const task of store.recordedTasks()) {
    const entry = JSON.parse(JSON.stringify(taskEntry(store, task, task.graph !== last)))
    replay.addEntry(task.id, checkedEntry(task.id, entry, refuse), refuse)
    last = task.graph
  }
  replay.endEntries(refuse)
  const graphs = replay.graphs(refuse).map(described)
  const { processes, toKillRemotely, toForget } = replay.built
  return { graphs, processes, tasks: [...toKillRemotely, ...toForget].map(({ id }) => id) }
}

/** Has the journal mention all graphs, so that a start needs their entries. */
function mentionAll(dir: string, segment: number, store: TaskStore): void {
  const frames = new FrameBuffer()
  for (const { ordinal } of store.graphs) frames.add('t', [JSON.stringify([[ordinal, null, 1, 1, 'accepted']])], 0)
  writeFileSync(join(dir, segmentName(segment)), frames.bytes)
}

const json = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as unknown)
const time = fc.integer({ min: Date.UTC(1970, 0, 1), max: Date.UTC(2100, 0, 1) })
const failure = { code: 'exit_nonzero', message: 'exit 1', details: { exit_code: 1 } } as const

/** Optional fields of a task, few values of each, so that tasks are alike. */
const definition = fc.record(
  {
    params: fc.oneof(fc.constant({ a: 1 }), json),
    input: fc.oneof(fc.constant({ a: 1 }), json),
    tool_name: fc.constantFrom('noop', 'shell'),
    retry: fc.nat(2),
    retry_on: fc.constant(['timeout' as const]),
    timeout: fc.constantFrom(1, 1000),
    annotations: fc.constant({ team: 'ö' }),
    secrets: fc.constant({ TOKEN: 'token' }),
    run_if: fc.constantFrom('always' as const, 'failed' as const),
    continue_on_error: fc.boolean(),
    cache: fc.constant({ key: 'k' }),
  },
  { requiredKeys: [] },
)

/** Fields of the state of a task that has ended. */
const state = fc.record(
  {
    status: fc.constantFrom('success', 'failed', 'cancelled', 'skipped'),
    attempt: fc.nat(3),
    updatedAt: time,
    startedAt: time,
    attemptStartedAt: time,
    finishedAt: time,
    result: fc.oneof(
      fc.constant({ ok: true }),
      json,
      fc.constant(null),
      fc.constant(new ResultFile('1-0-1-00000000.json')),
    ),
    seq: fc.nat(1_000_000),
    removal: fc.constantFrom('replaced', undefined, undefined),
    rare: fc.record(
      {
        interrupted_attempts: fc.integer({ min: 1, max: 2 }),
        createdAt: time,
        failure: fc.constant(failure),
        error: fc.string(),
        skip_standing: fc.constantFrom('neutral', 'bad'),
        resolved_input: json,
        progress: fc.array(fc.record({ at: fc.constant('2026-01-01T00:00:00.000Z'), message: fc.string() })),
        attempts: fc.array(fc.record({ attempt: fc.nat(9), error: fc.string() }), { maxLength: 2 }),
        handle: fc.constantFrom({ id: 'h', isTaken: true, owner: 'o', runtime: 'gpu' }, { id: 'h', isTaken: false }),
        reused_from: fc.constant({ graph_id: 'g', task_id: 't' }),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: ['status', 'updatedAt'] },
)

const options = fc.constantFrom({}, { name: 'build' }, { scope: 'graph' as const, labels: { a: 'b' } })

const graphs = fc.array(
  fc.tuple(
    randomGraph({ maxTasks: 12 }),
    fc.array(definition, { minLength: 12, maxLength: 12 }),
    fc.array(state, { minLength: 12, maxLength: 12 }),
    fc.record({ createdAt: time, options, isLive: fc.nat(3), isDeleted: fc.nat(5), isPlain: fc.boolean() }),
  ),
  { minLength: 1, maxLength: 5 },
)

/** A store with the graphs. */
function filledWith(all: Generated): TaskStore {
  const store = new TaskStore()
  for (const [g, [tasks, definitions, states, chosen]] of all.entries()) {
    const inputs = tasks.map((task, i) => ({
      ...(chosen.isPlain ? {} : definitions[i]),
      ...task,
      id: `${g}${task.id}`,
      depends_on: task.depends_on.map((id) => `${g}${id}`),
    }))
    const graph = acceptGraph(store, inputs as unknown as TaskInput[], chosen.createdAt, undefined, chosen.options)
    for (const [i, task] of graph.tasks.entries()) Object.assign(task, states[chosen.isPlain ? 0 : i])
    graph.endedAt = 1
    graph.live = 0
    if (chosen.isDeleted === 0) graph.tasks[0]!.removal = 'deleted'
    if (chosen.isLive > 0) continue
    Object.assign(graph.tasks.at(-1)!, { status: 'pending', removal: undefined })
    graph.live = 1
  }
  return store
}

type Generated = typeof graphs extends fc.Arbitrary<infer T> ? T : never

const byTime = (a: { createdAt: number; ordinal: number }, b: { createdAt: number; ordinal: number }) =>
  a.createdAt - b.createdAt || a.ordinal - b.ordinal

test('packs hold what the entries hold', async () => {
  await fc.assert(
    fc.asyncProperty(graphs, async (all) => {
      const store = filledWith(all)
      const expected = inEntries(store)
      expected.graphs.sort(byTime)
      using dir = await packed(store)
      expect(await found(dir.path)).toStrictEqual(expected)
      mentionAll(dir.path, 2, store)
      expect(await found(dir.path)).toStrictEqual(expected)
    }),
    { numRuns: 200 },
  )
})

const end = (store: TaskStore, { tasks }: Graph) => {
  for (const task of tasks) {
    if (task.isTerminal || task.isDeleted) continue
    store.apply({ kind: 'ended', task, at: 2, ending: { status: 'skipped', error: 'e' } })
  }
}

/** Bytes of the frames of a pack that belong to no graph. */
const SMALL_FRAMES = 300

/** The steps between two snapshots. */
const step = fc.record({
  kind: fc.constantFrom('submit', 'submit', 'end', 'delete task', 'retire', 'restart'),
  pick: fc.nat(),
  size: fc.integer({ min: 1, max: 40 }),
})

test('whatever changes between snapshots, a start finds the graphs as they are', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(step, { maxLength: 6 }), { minLength: 1, maxLength: 8 }), async (rounds) => {
      using dir = tempDir()
      const store = new TaskStore()
      const changed = new Set<Graph>()
      store.watch((change) => changed.add('graph' in change ? change.graph : change.task.graph))
      store.onReplaced = ({ graph }) => changed.add(graph)
      let packs = new Packs(dir.path, [])
      raiseFormat(dir.path)
      let segment = 0
      for (const steps of rounds) {
        for (const { kind, pick, size } of steps) {
          const all = [...store.graphs].filter(({ isRetired }) => !isRetired)
          const graph = all[pick % all.length]
          if (kind === 'submit') {
            const tasks = Array.from({ length: size }, (_, i) => ({ id: `${pick % 3}-${i}`, type: 'noop' }))
            if (tasks.every(({ id }) => store.whyTaken(id) === undefined)) acceptGraph(store, tasks)
          } else if (graph === undefined) continue
          else if (kind === 'end') end(store, graph)
          else if (kind === 'delete task') {
            const task = graph.tasks.find(({ isDeleted }) => !isDeleted)
            if (task !== undefined) store.apply({ kind: 'deleted', task, at: 3 })
          } else if (kind === 'retire' && graph.live === 0) store.apply({ kind: 'graph-retired', graph, at: 4 })
          else if (kind === 'restart') packs = new Packs(dir.path, (await recover(dir.path)).packs)
        }
        await pack(packs, ++segment, store, changed)
        changed.clear()
        const expected = inEntries(store)
        expect(await found(dir.path)).toStrictEqual(expected)
        const { packs: files, changed: unpacked, gone } = await recover(dir.path)
        expect([files.at(-1)!.to, gone.length, unpacked.every(({ live }) => live > 0)]).toEqual([segment, 0, true])
        for (const { bytes, needed } of files.slice(0, -1))
          expect(2 * needed + SMALL_FRAMES).toBeGreaterThanOrEqual(bytes)
        expect(files.length).toBeLessThan(12)
      }
    }),
    { numRuns: 8 },
  )
})

/** A store with two graphs that have ended, and one that has not. */
function filled(count = 3): TaskStore {
  const store = new TaskStore()
  for (const prefix of ['a', 'b', 'c']) {
    const graph = acceptGraph(
      store,
      Array.from({ length: count }, (_, i) => ({ id: `${prefix}${i}`, type: 'os', tool_name: 'noop' })),
    )
    for (const task of graph.tasks.slice(prefix === 'b' ? 1 : 0))
      store.apply({ kind: 'ended', task, at: 2, ending: { status: 'skipped', error: 'e' } })
  }
  return store
}

test('graphs of many frames are read in blocks, and no other user reads them', async () => {
  const store = filled(6_000)
  using dir = await packed(store)
  const path = join(dir.path, 'pack-0000000001-0000000001.log')
  expect(statSync(path).size).toBeGreaterThan(1024 * 1024)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(filesWithInput(dir.path)).toContain(path)
  expect(await found(dir.path)).toStrictEqual(inEntries(store))
})

test('a graph that does not change is not written again, and no file grows for ever', async () => {
  const store = filled(2_000)
  using dir = await packed(store)
  const packs = new Packs(dir.path, (await recover(dir.path)).packs)
  const first = readdirSync(dir.path).find((name) => name.startsWith('pack'))!
  const { ino } = statSync(join(dir.path, first))
  for (const graph of store.graphs) Object.assign(graph, { pack: 1, packBytes: 1 })
  for (let segment = 2; segment < 200; segment++) {
    const graph = acceptGraph(store, [{ id: 'again', type: 'noop' }])
    end(store, graph)
    await pack(packs, segment, store, [graph])
  }
  expect(statSync(join(dir.path, first)).ino).toBe(ino)
  expect(packsIn(dir.path).length).toBeLessThan(12)
})

test('a graph that is gone stays gone, though an older pack has superseded frames of it', async () => {
  const store = new TaskStore()
  using dir = tempDir()
  raiseFormat(dir.path)
  const packs = new Packs(dir.path, [])
  const [kept, gone] = ['kept', 'gone'].map((id) => acceptGraph(store, [{ id, type: 'noop' }])) as [Graph, Graph]
  await pack(packs, 1, store, [kept, gone])
  end(store, gone)
  await pack(packs, 2, store, [gone])
  store.apply({ kind: 'graph-retired', graph: gone, at: 4 })
  await pack(packs, 3, store, [gone])
  await pack(packs, 4, store, [])
  expect((await recover(dir.path)).graphs.map(({ id }) => id)).toEqual([kept.id])
})

test('a file within the range of another one does not count', async () => {
  const store = filled()
  using dir = await packed(store)
  const path = join(dir.path, 'pack-0000000001-0000000001.log')
  const old = readFileSync(path)
  renameSync(path, join(dir.path, 'pack-0000000001-0000000007.log'))
  writeFileSync(path, old.subarray(0, 100))
  writeFileSync(join(dir.path, segmentName(7)), 'a torn tail')
  expect((await recover(dir.path)).graphs).toHaveLength(3)
  expect((await recover(dir.path)).segments).toEqual({ oldest: 7, newest: 7 })
  rmSync(join(dir.path, segmentName(7)))
})

test.each<[string, (path: string) => void, string]>([
  ['that is cut', (path) => writeFileSync(path, readFileSync(path).subarray(0, -3)), 'it is damaged at offset '],
  [
    'that lost its last frame',
    (path) => writeFileSync(path, readFileSync(path).subarray(0, -34)),
    'it is damaged at offset ',
  ],
  ['that is empty', (path) => writeFileSync(path, ''), 'it is damaged at offset 0'],
  ['in which a byte is wrong', (path) => flip(path, 200), 'it is damaged at offset '],
  ['that is gone', (path) => renameSync(path, `${path}.aside`), 'what came before '],
])('a pack %s stops the start, and stays as it is', async (_, change, message) => {
  using dir = await packed(filled())
  const path = join(dir.path, 'pack-0000000001-0000000001.log')
  writeFileSync(join(dir.path, segmentName(2)), '')
  change(path)
  const before = readdirSync(dir.path)
  await expect(recover(dir.path)).rejects.toThrow(message)
  expect(readdirSync(dir.path)).toEqual(before)
})

test('a pack from before the format was raised does not count', async () => {
  const store = filled()
  using dir = await packed(store)
  rmSync(join(dir.path, 'format.json'))
  await writeSnapshot(filled(5), dir.path)
  expect((await recover(dir.path)).graphs.map(({ tasks }) => tasks.length)).toEqual([5, 5, 5])
})

function flip(path: string, at: number): void {
  const bytes = readFileSync(path)
  bytes[at]! ^= 1
  writeFileSync(path, bytes)
}
