/**
 * Goal: a start finds the same in the short form of graphs that have ended as in the state file, and never relies on a short
 * form that does not belong to the state file.
 * Method: random graphs with random states are written to real files, and read with and without the short form.
 */
import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import fc from 'fast-check'
import type { Graph, Task } from '../../../control/graph/graph.ts'
import { ResultFile } from '../../../control/graph/result-file.ts'
import { filesWithInput, recover } from '../../../control/log/recovery.ts'
import { readShortForm } from '../../../control/log/short-form-reader.ts'
import { MIN_STATE_BYTES, shortFormPath } from '../../../control/log/short-form-writer.ts'
import { statePath, writeSnapshot } from '../../../control/log/snapshot-writer.ts'
import { TaskStore } from '../../../control/store/tasks.ts'
import type { TaskInput } from '../../../shared/contract/submission.ts'
import { acceptGraph } from '../../support/graph.ts'
import { randomGraph } from '../../support/random-graph.ts'
import { tempDir } from '../../support/temp.ts'

const ALWAYS = { shortFormFrom: 0 }

/** Everything about a recovered graph. */
const described = ({ tasks, ...graph }: Graph) => ({
  ...graph,
  options: graph.options,
  tasks: tasks
    .map((task) => ({ ...task, ...definitionOf(task), ...stateOf(task) }))
    .map(({ graph: _, ...task }) => task),
})

const definitionOf = ({
  type,
  toolName,
  retry,
  retries,
  cache,
  timeout,
  annotations,
  secrets,
  rule,
  fanOutRule,
}: Task) => ({
  ...{ type, toolName, retry, retries, cache, timeout, annotations, secrets, rule, fanOutRule },
})

const stateOf = (task: Task) => ({
  ...{ createdAt: task.createdAt, interruptedAttempts: task.interruptedAttempts, failure: task.failure },
  ...{ errorText: task.errorText, skipStanding: task.skipStanding, progress: task.progress, attempts: task.attempts },
  ...{ handle: task.handle, reusedFrom: task.reusedFrom, resolvedInput: task.resolvedInput, runStatus: task.runStatus },
  ...{ inputFile: task.inputFile, isConditionMet: task.isConditionMet, fanOut: task.fanOut?.count },
})

async function found(dir: string) {
  const { graphs, lastSeq, lastOrdinal, processes, toKillRemotely, toForget } = await recover(dir)
  const tasks = [...toKillRemotely, ...toForget].map(({ id }) => id)
  return { graphs: graphs.map(described), lastSeq, lastOrdinal, processes, tasks }
}

/** The ids of graphs that a start takes from the short form. Undefined if it does not use that. */
function shortGraphs(dir: string): string[] | undefined {
  const ids: string[] = []
  const isUsed = readShortForm(dir, { entry: () => {}, ended: ({ id }) => ids.push(id) > 0 })
  return isUsed ? ids : undefined
}

/** A start finds the same without the short form. */
async function expectSameWithout(dir: string): Promise<void> {
  const before = await found(dir)
  rmSync(shortFormPath(dir), { force: true })
  expect(before).toStrictEqual(await found(dir))
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
    interruptedAttempts: fc.nat(2),
    ownCreatedAt: time,
    failure: fc.constant(failure),
    errorText: fc.string(),
    skipStanding: fc.constantFrom('neutral', 'bad'),
    resolvedInput: json,
    progress: fc.array(fc.record({ at: fc.constant('2026-01-01T00:00:00.000Z'), message: fc.string() })),
    attempts: fc.array(fc.record({ attempt: fc.nat(9), error: fc.string() }), { maxLength: 2 }),
    handle: fc.constantFrom({ id: 'h', isTaken: true, owner: 'o', runtime: 'gpu' }, { id: 'h', isTaken: false }),
    reusedFrom: fc.constant({ graph_id: 'g', task_id: 't' }),
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

test('holds what the entries of the state file hold', async () => {
  let used = 0
  await fc.assert(
    fc.asyncProperty(graphs, async (all) => {
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
      using dir = tempDir()
      await writeSnapshot(store, dir.path, ALWAYS)
      used += shortGraphs(dir.path)!.length
      await expectSameWithout(dir.path)
    }),
    { numRuns: 200 },
  )
  expect(used).toBeGreaterThan(100)
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

test('is used for graphs that have ended, in lines that are cut anywhere', async () => {
  using dir = tempDir()
  const store = filled(6_000)
  await writeSnapshot(store, dir.path, { shortFormFrom: MIN_STATE_BYTES })
  expect(statSync(statePath(dir.path)).size).toBeGreaterThan(MIN_STATE_BYTES)
  expect(shortGraphs(dir.path)).toEqual([...store.graphs].filter(({ live }) => live === 0).map(({ id }) => id))
  expect(statSync(shortFormPath(dir.path)).mode & 0o777).toBe(0o600)
  expect(filesWithInput(dir.path)).toContain(shortFormPath(dir.path))
  await expectSameWithout(dir.path)
})

test('is not kept for a small state file, or for one that another one replaced', async () => {
  using dir = tempDir()
  await writeSnapshot(filled(), dir.path, ALWAYS)
  expect(readdirSync(dir.path).toSorted()).toEqual(['ended-graphs.ndjson', 'state.json'])
  await writeSnapshot(filled(), dir.path, { shortFormFrom: MIN_STATE_BYTES })
  expect(readdirSync(dir.path)).toEqual(['state.json'])
  await writeSnapshot(filled(), dir.path, ALWAYS)
  await writeSnapshot(filled(), dir.path)
  expect(readdirSync(dir.path)).toEqual(['state.json'])
})

test('is without effect if the disk refuses it', async () => {
  using dir = tempDir()
  mkdirSync(`${shortFormPath(dir.path)}.new`)
  await writeSnapshot(filled(), dir.path, ALWAYS)
  expect(shortGraphs(dir.path)).toBeUndefined()
  expect((await recover(dir.path)).graphs).toHaveLength(3)
})

test.each<[string, (dir: string) => void]>([
  ['edited state file', (dir) => edit(statePath(dir), '"a1","type":"os"', '"a1","type":"ox"')],
  ['extended state file', (dir) => edit(statePath(dir), '{\n', '{ \n')],
  ['invalid short form', (dir) => edit(shortFormPath(dir), '"a1"', '"a9"')],
  ['incompatible short form', (dir) => edit(shortFormPath(dir), '{"form":1', '{"form":2')],
  ['incomplete short form', (dir) => edit(shortFormPath(dir), '"state_bytes"', '')],
  ['empty short form', (dir) => writeFileSync(shortFormPath(dir), '')],
])('a start with an %s reads the entries', async (_, change) => {
  using dir = tempDir()
  await writeSnapshot(filled(), dir.path, ALWAYS)
  expect(shortGraphs(dir.path)).toHaveLength(2)
  change(dir.path)
  expect(shortGraphs(dir.path)).toBeUndefined()
  await expectSameWithout(dir.path)
})

function edit(path: string, from: string, to: string): void {
  const text = readFileSync(path, 'utf8')
  expect(text).toContain(from)
  writeFileSync(path, text.replace(from, to))
}
