/**
 * Fast path for most submissions: small valid graphs. Pure.
 *
 * It combines all checks in one pass over the tasks, without their order, error texts and steps. If it returns
 * undefined, the caller makes the checks one by one (`decode.ts`, `validate.ts`), which accept the graph or report the
 * fault. A property test compares both. A graph of ten tasks takes 132 µs of CPU time in all with the fast path, and
 * 143 µs without.
 */
import { GROUP_TYPE } from '../../shared/contract/fan-out.ts'
import type { TaskInput } from '../../shared/contract/submission.ts'
import { isObject } from '../../shared/text/json.ts'
import { parseText, textOf } from '../../shared/text/json-bytes.ts'
import { hasFewFields, isPlainTask, isWellShaped } from '../rules/decode.ts'
import { dependenciesStartOf, dependencyCounts, type Edges, edgesAtOnce, noEdges } from '../rules/edges.ts'
import { hasFanOut } from '../rules/fan-out-rule.ts'
import { type GraphOptions, graphOptions } from '../rules/graph-options.ts'
import { isGroup } from '../rules/group-rule.ts'
import { mentionsPlaceholder } from '../rules/placeholders.ts'
import { hasFields, isKnownType, type ValidGraph, type ValidTask } from '../rules/validate.ts'
import { unknownGraphField, unknownTaskField } from './known-fields.ts'

/**
 * Maximum bytes, tasks and dependencies of a small graph. To check it blocks the event loop for about a millisecond; to
 * check it in steps takes longer in all: a chain of 1,000 tasks ×1.2 of the CPU time up to its end.
 */
const MAX_BYTES = 64 * 1024
const MAX_TASKS = 1_024
const MAX_DEPENDENCIES = 4 * 1024

export interface SmallGraph extends ValidGraph {
  readonly options: GraphOptions
}

/** The graph in `body`, if it is small, valid and without unknown fields. */
export function smallGraph(body: Uint8Array, registeredTypes: ReadonlySet<string>): SmallGraph | undefined {
  if (body.length === 0 || body.length > MAX_BYTES) return undefined
  const graph = graphIn(body)
  const options = graph && graphOptions(graph)
  if (graph === undefined || options === undefined) return undefined
  const { tasks } = graph
  const positions = new Map<string, number>()
  let lastType = ''
  for (let i = 0; i < tasks.length; i++) {
    const task = tasks[i]!
    if (!(isPlainTask(task) || isSound(task)) || !hasFields(task)) return undefined
    if (task.type !== lastType && !isKnownType(task.type, registeredTypes)) return undefined
    lastType = task.type
    if (positions.set(task.id, i).size === i) return undefined
  }
  const starts = dependenciesStartOf(tasks)
  const dependencyCount = starts[tasks.length]!
  if (dependencyCount > MAX_DEPENDENCIES) return undefined
  const valid = tasks as readonly ValidTask[]
  if (dependencyCount === 0) return { tasks: valid, edges: noEdges(starts), options }
  const edges = edgesAtOnce(tasks, starts, (id) => positions.get(id))
  return edges !== undefined && isAcyclic(edges) ? { tasks: valid, edges, options } : undefined
}

/** Whether the fields of a task that is not plain pass the checks that look at it alone, but for those of `hasFields`. */
const isSound = (task: TaskInput): boolean =>
  isWellShaped(task) &&
  !hasFanOut(task) &&
  !isGroup(task) &&
  task.type !== GROUP_TYPE &&
  hasFewFields(task) &&
  unknownTaskField(task) === undefined

/**
 * Parses a graph with a short list of unchecked tasks. Undefined for others, and for graphs with a callback, a group,
 * parameters, placeholders or tasks for their end.
 */
function graphIn(body: Uint8Array): { readonly tasks: readonly TaskInput[] } | undefined {
  try {
    const text = textOf(body)
    if (mentionsPlaceholder(text)) return undefined
    const graph = parseText(text)
    if (
      !isObject(graph) ||
      !hasFewFields(graph) ||
      !Array.isArray(graph.tasks) ||
      graph.callback != null ||
      graph.concurrency != null ||
      graph.on_end != null ||
      graph.params != null ||
      unknownGraphField(graph) !== undefined
    )
      return undefined
    const { length } = graph.tasks
    return length === 0 || length > MAX_TASKS ? undefined : (graph as { tasks: TaskInput[] })
  } catch {
    return undefined
  }
}

/**
 * Whether the graph is acyclic. Visits tasks once all their dependencies were visited; a cycle leaves tasks unvisited.
 */
function isAcyclic({ dependenciesStart, dependentsStart, dependents }: Edges): boolean {
  const missing = dependencyCounts({ dependenciesStart })
  const ready: number[] = []
  for (let i = 0; i < missing.length; i++) if (missing[i] === 0) ready.push(i)
  for (let at = 0; at < ready.length; at++) {
    const task = ready[at]!
    for (let d = dependentsStart[task]!; d < dependentsStart[task + 1]!; d++) {
      const dependent = dependents[d]!
      if (--missing[dependent]! === 0) ready.push(dependent)
    }
  }
  return ready.length === missing.length
}
