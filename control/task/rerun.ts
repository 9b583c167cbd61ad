/**
 * What a rerun executes again of an ended graph, and what it reuses: the definitions of tasks, and the outcomes of the
 * others. Pure; linear in tasks and edges.
 */

import type { TaskInput } from '../../shared/contract/submission.ts'
import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { STANDING_BITS } from '../rules/conditions.ts'
import type { Edges } from '../rules/edges.ts'
import type { Task } from './graph.ts'
import { isInputField } from './known-fields.ts'
import { wholeRecord } from './record.ts'

/**
 * For each task 1 if it runs again: it did not succeed, its id is in `from`, or it depends on such a task. The outcomes
 * of the others are reused.
 */
export function* tasksToRun(
  tasks: readonly Pick<Task, 'id' | 'status'>[],
  { dependentsStart, dependents }: Pick<Edges, 'dependentsStart' | 'dependents'>,
  from: ReadonlySet<string>,
): Steps<Uint8Array> {
  const runs = new Uint8Array(tasks.length)
  const found: number[] = []
  const add = (position: number) => {
    if (runs[position] === 1) return
    runs[position] = 1
    found.push(position)
  }
  let steps = 0
  for (let i = 0; i < tasks.length; i++) {
    if (tasks[i]!.status !== 'success' || from.has(tasks[i]!.id)) add(i)
    if (isYieldDue(steps++)) yield
  }
  for (let at = 0; at < found.length; at++) {
    const task = found[at]!
    for (let d = dependentsStart[task]!; d < dependentsStart[task + 1]!; d++) {
      add(dependents[d]!)
      if (isYieldDue(steps++)) yield
    }
    if (isYieldDue(steps++)) yield
  }
  return runs
}

/** `task` as it can be submitted again, with the values of `env`. */
export function taskInput(task: Task): TaskInput {
  const fields = Object.entries(wholeRecord(task)).filter(([name]) => isInputField(name))
  const input: TaskInput = Object.fromEntries(fields)
  if (task.input === task.params) delete input.input
  return input
}

/**
 * Gives `task` the outcome of `source`, which succeeded. The graph of `task` is not accepted yet. `source` keeps its
 * attempt in another service. `at` is in milliseconds since 1970.
 */
export function reuseOutcome(task: Task, source: Task, at: number): void {
  const { graph } = task
  task.status = source.status
  task.attempt = source.attempt
  task.setRare('interrupted_attempts', source.rare.interrupted_attempts)
  task.updatedAt = at
  task.startedAt = source.startedAt
  task.attemptStartedAt = source.attemptStartedAt
  task.finishedAt = source.finishedAt
  task.setRare('resolved_input', source.rare.resolved_input)
  task.result = source.result
  task.setRare('progress', source.rare.progress)
  task.setRare('attempts', source.rare.attempts)
  task.setRare('reused_from', source.rare.reused_from ?? { graph_id: source.graph.id, task_id: source.id })
  graph.live--
  for (let i = 0; i < graph.dependentCount(task); i++) {
    const { position } = graph.dependent(task, i)
    graph.missing[position]!--
    if (graph.hasRules) graph.standings[position]! |= STANDING_BITS.good
  }
}
