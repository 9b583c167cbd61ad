/**
 * What a retry in place makes pending again, and when it is refused. Pure; linear in tasks and edges.
 *
 * The named tasks run again, and with them all that depends on them, whatever has become of it: what was skipped because of
 * them may run now, and a clean-up that has run has to clean up again. A task that has children keeps them: a named one runs
 * those again that did not succeed, and one that depends on another one that runs again runs all of them. A named child has
 * its parent run again, which counts it anew.
 */
import type { Retried } from '../../shared/contract/control.ts'
import { inRanges, isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import { decide } from '../rules/conditions.ts'
import type { Edges } from '../rules/edges.ts'
import { listSource } from '../rules/fan-out-rule.ts'
import { hasPlaceholder } from '../rules/placeholders.ts'
import { attemptRecord, withAttempt } from './attempt-record.ts'
import type { Graph, Task } from './graph.ts'
import type { RareState } from './rare-state.ts'

/** Whether a retry may name `task`: it ended without success. Of what was skipped, the cause is to be retried. */
export const isRetryable = ({ status, isDeleted }: Pick<Task, 'status' | 'isDeleted'>): boolean =>
  !isDeleted && (status === 'failed' || status === 'cancelled')

const isLoss = (task: Task): boolean => isRetryable(task) && !(task.status === 'failed' && task.continuesOnError)

/** The submitted tasks for which a retry of the whole `graph` runs: those whose end makes it fail. */
export const failedTasks = (graph: Graph): Task[] =>
  graph.submitted.filter((task) => isLoss(task) && task.atEnd === undefined)

/** The `named` tasks of `graph`, and all that run again with them, in order: those of `on_end` depend on all others. */
export function* retriedWith(graph: Graph, edges: Edges, named: ReadonlySet<Task>): Steps<Task[]> {
  const found = new Set(named)
  yield* addDependents(found, edges)
  if ([...found].some(({ atEnd }) => atEnd === undefined))
    for (const task of graph.atEnd ?? []) if (!task.isDeleted) found.add(task)
  for (const { parent } of graph.fanOuts ?? []) {
    const isAll = dependsOnAny(parent, edges, found)
    if (!found.has(parent) || !(isAll || named.has(parent))) continue
    for (const child of childrenOf(parent)) if (!child.isDeleted && (isAll || isLoss(child))) found.add(child)
  }
  if (graph.fanOuts !== undefined) yield* addDependents(found, edges)
  const all = graph.tasks
  const tasks: Task[] = []
  yield* inRanges(all.length, (from, to) => {
    for (let i = from; i < to; i++) if (found.has(all[i]!)) tasks.push(all[i]!)
  })
  return tasks
}

/** Adds what depends on the tasks in `found`: other members of a group, and the task that they are children of. */
function* addDependents(found: Set<Task>, { dependents, dependentsStart }: Edges): Steps<void> {
  let steps = 0
  for (const task of found) {
    if (isYieldDue(steps++)) yield
    const { childOf, graph, position } = task
    const add = (other: Task) => other.isDeleted || found.add(other)
    if (childOf !== undefined) {
      for (let d = 0; d < childOf.dependentCount(task); d++) add(childOf.dependent(task, d))
      add(childOf.parent)
      continue
    }
    for (let d = dependentsStart[position]!; d < dependentsStart[position + 1]!; d++) add(graph.tasks[dependents[d]!]!)
  }
}

function dependsOnAny(task: Task, { dependencies, dependenciesStart }: Edges, others: ReadonlySet<Task>): boolean {
  const { graph, position } = task
  const own = dependencies.subarray(dependenciesStart[position], dependenciesStart[position + 1])
  return own.some((dependency) => others.has(graph.tasks[dependency]!))
}

const childrenOf = ({ fanOut }: Task): Task[] =>
  fanOut === undefined ? [] : Array.from({ length: fanOut.count }, (_, i) => fanOut.child(i))

/** Those of `tasks` that have ended and have children. */
export const endedParents = (tasks: readonly Task[]): Task[] =>
  tasks.filter(({ fanOut, isTerminal }) => fanOut !== undefined && isTerminal)

/** Why one of the `tasks`, which run again together, cannot do so with its children; undefined if all can. */
export function whyNotByChildren(tasks: readonly Task[]): string | undefined {
  const parents = endedParents(tasks)
  if (parents.length === 0) return undefined
  const all = new Set(tasks)
  const ids = new Set(tasks.flatMap(({ id, childOf }) => (childOf === undefined ? id : [])))
  for (const parent of parents) {
    const { id, graph, options } = parent
    const source = listSource(options.for_each)
    if (typeof source !== 'string' && source.kind === 'reference' && ids.has(source.reference.id))
      return `task ${id}, which runs again with ${source.reference.id}, has run for its list: run the graph again (POST /graphs/${graph.id}/rerun)`
    for (const child of childrenOf(parent)) {
      if (child.isDeleted)
        return `task ${child.id} was deleted, and task ${id} cannot succeed without it: submit the graph again`
      if (options.fail_fast && isLoss(child) && child.status === 'failed' && !all.has(child))
        return `task ${child.id} failed, too, and ends ${id} at once (fail_fast): retry task ${id}`
    }
  }
  return undefined
}

/** Why `task`, which has ended without success or depends on such a task, cannot run again; undefined if it can. */
export function whyNotAgain(task: Task, { dependencies, dependenciesStart }: Edges): string | undefined {
  const { id, graph, position, isReplaced, status, childOf } = task
  if (childOf !== undefined) return undefined // its parent can, or cannot
  if (task.options.dynamic === true && status === 'success')
    return `task ${id}, which runs again with it, is dynamic and has succeeded: run its graph again (POST /graphs/${graph.id}/rerun)`
  if (isReplaced) return replacedText(task)
  if (!task.isTerminal && !isUndecided(task))
    return `task ${id}, which runs again with it, ${status === 'pending' ? 'is about to start' : `is ${status}`}: try again when it has ended, or cancel it first`
  for (let d = dependenciesStart[position]!; d < dependenciesStart[position + 1]!; d++) {
    const dependency = graph.tasks[dependencies[d]!]!
    if (dependency.isDeleted)
      return `task ${dependency.id} was deleted, and task ${id} depends on it: submit the graph again`
  }
  return undefined
}

export const replacedText = ({ id }: Task): string =>
  `another graph has taken the id of task ${id} since: submit the graph again, with "scope": "graph"`

/** Whether the pending `task` still waits for a dependency. */
function isUndecided({ graph, position, status, runIf, atEnd }: Task): boolean {
  if (atEnd !== undefined) return status === 'pending' && !graph.isAtEnd
  const missing = graph.missing[position] ?? 0
  if (status !== 'pending' || missing === 0) return false
  return !graph.hasRules || decide(runIf, graph.standings[position]!, false) === 'wait'
}

/** The rare state of the ended `task` once it runs again. Its numbers of attempts go on, and all of its retries are left. */
export function revivedRare(task: Task, isNamed: boolean, by: string | undefined, at: number): RareState {
  const { attempt, rare, finishedAt } = task
  const revived: RareState = { ...rare, interrupted_attempts: attempt || undefined }
  if (attempt > 0 && rare.reused_from === undefined)
    revived.attempts = withAttempt(rare.attempts, attemptRecord(task, finishedAt, rare.failure))
  if (isNamed || attempt > 0) revived.retried = retriedBy(rare.retried, by, at)
  for (const name of ENDED_STATE) delete revived[name]
  revived.hasPlaceholders = hasPlaceholder(task.input) || undefined
  return revived
}

/** Gives `task` the state of one that runs again. */
export function reviveTask(task: Task, rare: RareState, at: number): void {
  task.rare = rare
  task.status = 'pending'
  task.attemptStartedAt = undefined
  task.updatedAt = at
  task.finishedAt = undefined
  task.result = undefined
}

/** What an end leaves, and the next run finds out again. */
const ENDED_STATE = [
  ...(['failure', 'error', 'skip_standing', 'handle', 'reused_from', 'asked_at', 'unmet', 'condition_met'] as const),
  ...(['resolved_input', 'input_file', 'process'] as const),
]

const retriedBy = ({ count, by: names = [] }: Partial<Retried> = {}, by: string | undefined, at: number): Retried => {
  const all = by === undefined || names.includes(by) ? names : [...names, by]
  return { count: (count ?? 0) + 1, at: isoTime(at), ...(all.length > 0 && { by: [...all] }) }
}

/** How often tasks of `graph` were retried in all: it rises with each retry. */
export const retriesOf = ({ tasks }: Graph): number =>
  tasks.reduce((sum, { rare }) => sum + (rare.retried?.count ?? 0), 0)

/** Whether the token `name` has retried a task of `graph`. */
export const hasRetried = ({ tasks }: Graph, name: string): boolean =>
  tasks.some(({ rare }) => rare.retried?.by?.includes(name) === true)
