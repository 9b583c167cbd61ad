/**
 * Checks 2 to 7 of POST /tasks, in the order of the specification. Pure.
 *
 * Each check runs over the whole graph before the next begins; among several faults of one check the first in the order
 * of the list is named. Linear in tasks and dependencies, in slices, without recursion.
 */
import type { TaskInput } from '../../shared/contract/control.ts'
import { badRequest } from '../../shared/errors.ts'
import { isYieldDue, type Slices } from '../../shared/slices.ts'
import { normalizeTool } from './normalize.ts'
import { buildEdges, type Edges, findCycle } from './order.ts'

/** Ids of a cycle that its error text names; a longer one is cut. */
const MAX_CYCLE_IDS = 8

/** A graph that passed all checks: the tasks have ids and registered types, and `edges` has no cycle. */
export interface ValidGraph {
  readonly tasks: readonly ValidTask[]
  readonly edges: Edges
}

export type ValidTask = TaskInput & { readonly id: string; readonly type: string }

/** The graph ready to be run, or throws 400 with the text of the check that failed. */
export function* validateGraph(tasks: TaskInput[], registeredTypes: ReadonlySet<string>): Slices<ValidGraph> {
  if (tasks.length === 0) throw badRequest('task graph is empty')
  const valid = yield* checkFields(tasks)
  const positions = yield* checkUnique(valid)
  const edges = yield* checkDependencies(valid, positions)
  const cycle = yield* findCycle(edges)
  if (cycle !== null) throw badRequest(`cycle detected in task graph: ${describeCycle(cycle.map((i) => valid[i]!.id))}`)
  yield* checkTypes(valid, registeredTypes)
  return { tasks: valid, edges }
}

function* checkFields(tasks: TaskInput[]): Slices<ValidTask[]> {
  for (let i = 0; i < tasks.length; i++) {
    const { id, type, retry } = tasks[i]!
    if (!id) throw badRequest('task id is required')
    if (!type) throw badRequest(`task ${id}: type is required`)
    if (retry != null && !(Number.isSafeInteger(retry) && retry >= 0)) {
      throw badRequest(`task ${id}: retry must be a non-negative integer`)
    }
    if (isYieldDue(i)) yield
  }
  return tasks as ValidTask[]
}

function* checkUnique(tasks: readonly ValidTask[]): Slices<Map<string, number>> {
  const positions = new Map<string, number>()
  for (let i = 0; i < tasks.length; i++) {
    const { id } = tasks[i]!
    if (positions.has(id)) throw badRequest(`duplicate task id: ${id}`)
    positions.set(id, i)
    if (isYieldDue(i)) yield
  }
  return positions
}

function* checkDependencies(tasks: readonly ValidTask[], positions: Map<string, number>): Slices<Edges> {
  const dependents: number[] = []
  const dependencies: number[] = []
  for (let i = 0; i < tasks.length; i++) {
    const { id, depends_on } = tasks[i]!
    for (const dependency of depends_on ?? []) {
      const position = positions.get(dependency)
      if (position === undefined) throw badRequest(`task ${id} depends on unknown task ${dependency}`)
      if (position === i) throw badRequest(`task ${id} cannot depend on itself`)
      dependents.push(i)
      dependencies.push(position)
      if (isYieldDue(dependents.length)) yield
    }
    if (isYieldDue(i)) yield
  }
  return yield* buildEdges(tasks.length, new Uint32Array(dependents), new Uint32Array(dependencies))
}

function* checkTypes(tasks: readonly ValidTask[], registeredTypes: ReadonlySet<string>): Slices<void> {
  let known = ''
  for (let i = 0; i < tasks.length; i++) {
    const { type } = tasks[i]!
    if (type !== known) checkType(type, registeredTypes) // most are like the one before
    known = type
    if (isYieldDue(i)) yield
  }
}

function checkType(type: string, registeredTypes: ReadonlySet<string>): void {
  if (registeredTypes.has(type) || registeredTypes.has(normalizeTool(type, undefined).type)) return
  const available = [...registeredTypes].sort().join(', ')
  throw badRequest(`unknown task type: ${type} (available: ${available})`)
}

function describeCycle(ids: readonly string[]): string {
  const named = ids.length <= MAX_CYCLE_IDS ? [...ids, ids[0]] : [...ids.slice(0, MAX_CYCLE_IDS), '...']
  return named.join(' -> ')
}
