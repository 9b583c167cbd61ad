/**
 * What a retry in place makes pending again, and when it is refused. Pure; linear in tasks and edges.
 *
 * The named tasks run again, and with them all that depends on them, whatever has become of it: what was skipped because of
 * them may run now, and a clean-up that has run has to clean up again.
 */
import type { Retried } from '../../shared/contract/control.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import { decide } from '../rules/conditions.ts'
import type { Edges } from '../rules/edges.ts'
import { hasPlaceholder } from '../rules/placeholders.ts'
import { attemptRecord, withAttempt } from './attempt-record.ts'
import type { Graph, Task } from './graph.ts'

/** Whether a retry may name `task`: it ended without success. Of what was skipped, the cause is to be retried. */
export const isRetryable = ({ status, isDeleted }: Pick<Task, 'status' | 'isDeleted'>): boolean =>
  !isDeleted && (status === 'failed' || status === 'cancelled')

/** The submitted tasks for which a retry of the whole `graph` runs: those whose end makes it fail. */
export const failedTasks = (graph: Graph): Task[] =>
  graph.submitted.filter(
    (task) => isRetryable(task) && task.atEnd === undefined && !(task.status === 'failed' && task.continuesOnError),
  )

/** The `named` tasks of `graph`, and all that depend on them, in order: those of `on_end` depend on all others. */
export function retriedWith(graph: Graph, { dependents, dependentsStart }: Edges, named: Iterable<Task>): Task[] {
  const found = new Set(named)
  for (const { position } of found) {
    for (let d = dependentsStart[position]!; d < dependentsStart[position + 1]!; d++) {
      const dependent = graph.tasks[dependents[d]!]!
      if (!dependent.isDeleted) found.add(dependent)
    }
  }
  if ([...found].some(({ atEnd }) => atEnd === undefined))
    for (const task of graph.atEnd ?? []) if (!task.isDeleted) found.add(task)
  return [...found].sort((a, b) => a.position - b.position)
}

/** Why `task`, which has ended without success or depends on such a task, cannot run again; undefined if it can. */
export function whyNotAgain(task: Task, { dependencies, dependenciesStart }: Edges): string | undefined {
  const { id, graph, position, fanOut, isReplaced, status } = task
  if (fanOut !== undefined)
    return `task ${id} has run by its children: run its graph again (POST /graphs/${graph.id}/rerun)`
  if (isReplaced)
    return `another graph has taken the id of task ${id} since: submit the graph again, with "scope": "graph"`
  if (!task.isTerminal && !isUndecided(task))
    return `task ${id}, which runs again with it, ${status === 'pending' ? 'is about to start' : `is ${status}`}: try again when it has ended, or cancel it first`
  for (let d = dependenciesStart[position]!; d < dependenciesStart[position + 1]!; d++) {
    const dependency = graph.tasks[dependencies[d]!]!
    if (dependency.isDeleted)
      return `task ${dependency.id} was deleted, and task ${id} depends on it: submit the graph again`
  }
  return undefined
}

/** Whether the pending `task` still waits for a dependency. */
function isUndecided({ graph, position, status, runIf, atEnd }: Task): boolean {
  if (atEnd !== undefined) return status === 'pending' && !graph.isAtEnd
  const missing = graph.missing[position] ?? 0
  if (status !== 'pending' || missing === 0) return false
  return !graph.hasRules || decide(runIf, graph.standings[position]!, false) === 'wait'
}

/** Gives `task` the state of one that runs again. Its numbers of attempts go on, and all of its retries are left. */
export function reviveTask(task: Task, isNamed: boolean, by: string | undefined, at: number): void {
  const { attempt, rare, finishedAt } = task
  if (attempt > 0 && rare.reused_from === undefined)
    task.setRare('attempts', withAttempt(rare.attempts, attemptRecord(task, finishedAt, rare.failure)))
  if (isNamed || attempt > 0) task.setRare('retried', retriedBy(rare.retried, by, at))
  task.setRare('interrupted_attempts', attempt || undefined)
  for (const name of ENDED_STATE) task.setRare(name, undefined)
  task.setRare('hasPlaceholders', hasPlaceholder(task.input) || undefined)
  task.status = 'pending'
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
