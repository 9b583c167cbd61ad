/** Graphs made by the real rules, for tests of what works on them. */

import { createGraph, type Graph, type Task } from '../../control/graph/graph.ts'
import { validateGraph } from '../../control/graph/validate.ts'
import type { TaskStore } from '../../control/store/tasks.ts'
import type { TaskInput } from '../../shared/contract/control.ts'
import { runSync } from '../../shared/steps.ts'

/** Types that these graphs may name; `test` is for executors of the tests' own. */
const TYPES: ReadonlySet<string> = new Set(['os', 'runtime', 'mcp', 'test'])

let graphs = 0

/** A graph that no store knows yet. */
export function graphOf(tasks: TaskInput[], createdAt = Date.now(), types = TYPES): Graph {
  const valid = runSync(validateGraph(tasks, types))
  return runSync(
    createGraph(valid, { id: `graph-${++graphs}`, ordinal: graphs, traceId: `trace-${graphs}`, createdAt }),
  )
}

/** A graph that `store` has accepted. */
export function acceptGraph(store: TaskStore, tasks: TaskInput[], createdAt = Date.now(), types = TYPES): Graph {
  const graph = graphOf(tasks, createdAt, types)
  runSync(store.claim(graph))
  store.apply({ kind: 'graph-accepted', graph })
  return graph
}

/** A task that belongs to no store. */
export const taskOf = (task: TaskInput): Task => graphOf([{ id: 'task', type: 'test', ...task }]).tasks[0]!

/** The task of `graph` with this id. */
export function taskIn(graph: Graph, id: string): Task {
  const task = graph.tasks.find((candidate) => candidate.id === id)
  if (task === undefined) throw new Error(`no task ${id} in the graph`)
  return task
}
