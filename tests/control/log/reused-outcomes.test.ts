/**
 * Goal: whenever the service is killed, a rerun is wholly there with its reused outcomes, or wholly gone; the events of reused
 * outcomes are told once. Method: a rerun with the real journal; after each step a start is made from a copy of the files,
 * also of a torn frame.
 */
import { expect, test } from 'bun:test'
import { rowOfChange } from '../../../control/log/event-rows.ts'
import { encodeStates, groupsOf } from '../../../control/log/journaled-state.ts'
import { recover } from '../../../control/log/recovery.ts'
import { ResultFile } from '../../../control/rules/result-file.ts'
import type { Graph } from '../../../control/task/graph.ts'
import { reuseOutcome } from '../../../control/task/rerun.ts'
import type { TaskStore } from '../../../control/task/task-store.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { crashedCopy, durableStore } from '../../support/durable-store.ts'
import { acceptGraph, graphOf, taskIn } from '../../support/graph.ts'
import { until } from '../../support/until.ts'

const TASKS = () => [
  { id: 'a', type: 'test', params: { env: 1 } },
  { id: 'file', type: 'test', depends_on: ['a'] },
  { id: 'failed', type: 'test', depends_on: ['a', 'a', 'file'] },
  { id: 'last', type: 'test', depends_on: ['failed'] },
]

/** An ended graph of which two tasks succeeded. */
function source(store: TaskStore): Graph {
  const graph = acceptGraph(store, TASKS())
  const at = Date.now() - 60_000
  const end = (id: string, ending: object) => {
    const task = taskIn(graph, id)
    store.apply({ kind: 'attempt-started', task, at })
    store.apply({ kind: 'ended', task, at: at + 1_000, ending: ending as never })
  }
  end('a', { status: 'success', result: { n: 1 } })
  end('file', { status: 'success', result: new ResultFile('1-1-1-00000000.json') })
  end('failed', { status: 'failed', error: 'no', failure: { code: 'internal', message: 'no' } })
  store.apply({ kind: 'ended', task: taskIn(graph, 'last'), at: at + 2_000, ending: { status: 'skipped', error: 'x' } })
  return graph
}

/** A copy of `of`, with its successes. */
function copyOf(of: Graph): { graph: Graph; reused: string[] } {
  const graph = graphOf(TASKS())
  const tasks = ['a', 'file'].map((id) => taskIn(graph, id))
  for (const task of tasks) reuseOutcome(task, taskIn(of, task.id), Date.now())
  return { graph, reused: ['[', ...encodeStates(groupsOf(tasks)).slice(1, -1), ']'] }
}

/** What a start finds in copies of the files. */
async function found(dir: string, cutBytes = 0) {
  using copy = crashedCopy([dir], (name) => /\.(json|log)$/.test(name), cutBytes)
  const { graphs, history } = await recover(copy.path)
  const untold = history.unnumbered.map((numbered, i) => rowOfChange(numbered(1_000_000 + i, 0)))
  return { graphs, untold: untold.filter((row) => JSON.stringify(row).includes('reused_from')).map((row) => row[2]) }
}

test('a rerun is there with its reused outcomes, or not at all, and its events are told once', async () => {
  await using w = durableStore()
  const { store, persistence } = w
  const earlier = source(store)
  await until(() => w.numbers.reserved > 0) // then the graph is in the last frame
  const { graph, reused } = copyOf(earlier)
  expect([graph.live, [...graph.missing]]).toEqual([2, [0, 0, 0, 1]])
  runSync(store.claim(graph))
  await persistence.appendGraph(graph, new TextEncoder().encode(JSON.stringify({ tasks: TASKS() })), { reused })

  const isWhole = (recovered: readonly Graph[]) => {
    const again = recovered.find(({ id }) => id === graph.id)!
    expect([again.live, [...again.missing], again.endedAt]).toEqual([2, [0, 0, 0, 1], undefined])
    const outcomes = again.tasks.map(({ id, status, attempt, rare }) => ({
      id,
      status,
      attempt,
      reusedFrom: rare.reused_from,
    }))
    const from = (task_id: string) => ({ graph_id: earlier.id, task_id })
    expect(outcomes).toEqual([
      { id: 'a', status: 'success', attempt: 1, reusedFrom: from('a') },
      { id: 'file', status: 'success', attempt: 1, reusedFrom: from('file') },
      { id: 'failed', status: 'pending', attempt: 0, reusedFrom: undefined },
      { id: 'last', status: 'pending', attempt: 0, reusedFrom: undefined },
    ])
    const [a, file] = again.tasks
    const { startedAt, finishedAt, result } = taskIn(earlier, 'a')
    expect(a).toMatchObject({ startedAt, finishedAt, result, params: { env: 1 } } as never)
    expect(file!.result).toEqual(new ResultFile('1-1-1-00000000.json'))
  }

  const written = await found(w.dir)
  isWhole(written.graphs)
  expect(written.untold).toEqual(['a', 'file'])
  expect((await found(w.dir, 1)).graphs).toEqual([])

  store.apply({ kind: 'graph-accepted', graph })
  persistence.noteNumbered({ kind: 'reused', task: taskIn(graph, 'a'), seq: store.nextSeq(), at: Date.now() })
  persistence.flush()
  expect((await found(w.dir)).untold).toEqual(['file'])
  persistence.noteNumbered({ kind: 'reused', task: taskIn(graph, 'file'), seq: store.nextSeq(), at: Date.now() })
  persistence.flush()
  const told = await found(w.dir)
  isWhole(told.graphs)
  expect(told.untold).toEqual([])

  await w.snapshots.takeLast()
  const stored = await found(w.dir)
  isWhole(stored.graphs)
  expect(stored.untold).toEqual([])
})
