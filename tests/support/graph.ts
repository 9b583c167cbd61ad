/** Builds graphs with the real rules, for tests of the code that uses them. */

import { type GraphOptions, NO_GRAPH_OPTIONS } from '../../control/rules/graph-options.ts'
import { withGroupType } from '../../control/rules/group-rule.ts'
import { validateGraph } from '../../control/rules/validate.ts'
import { createGraph, type Graph, type Task } from '../../control/task/graph.ts'
import type { TaskStore } from '../../control/task/task-store.ts'
import type { TaskInput } from '../../shared/contract/submission.ts'
import { runSync } from '../../shared/process/steps.ts'

/** Types that these graphs may name; `test` is for executors of the tests' own. */
const TYPES: ReadonlySet<string> = new Set(['approval', 'mcp', 'os', 'runtime', 'test', 'wait'])

let graphs = 0

/** A graph that no store knows yet. */
export function graphOf(
  tasks: TaskInput[],
  createdAt = Date.now(),
  types = TYPES,
  options: GraphOptions = NO_GRAPH_OPTIONS,
  tenant?: string,
): Graph {
  const valid = runSync(validateGraph(tasks.map(withGroupType), types))
  const identity = { id: `graph-${++graphs}`, ordinal: graphs, traceId: `trace-${graphs}`, createdAt, options, tenant }
  return runSync(createGraph(valid, identity))
}

/** A graph that `store` has accepted. */
export function acceptGraph(
  store: TaskStore,
  tasks: TaskInput[],
  createdAt = Date.now(),
  types = TYPES,
  options: GraphOptions = NO_GRAPH_OPTIONS,
): Graph {
  const graph = graphOf(tasks, createdAt, types, options)
  runSync(store.claim(graph))
  store.apply({ kind: 'graph-accepted', graph })
  return graph
}

/** As `acceptGraph`, for a graph whose ids are its own. */
export const acceptScoped = (store: TaskStore, tasks: TaskInput[]): Graph =>
  acceptGraph(store, tasks, Date.now(), TYPES, { scope: 'graph' })

/** A task that belongs to no store. */
export const taskOf = (task: TaskInput): Task => graphOf([{ id: 'task', type: 'test', ...task }]).tasks[0]!

/** The task of `graph` with this id. */
export function taskIn(graph: Graph, id: string): Task {
  const task = graph.tasks.find((candidate) => candidate.id === id)
  if (task === undefined) throw new Error(`no task ${id} in the graph`)
  return task
}
