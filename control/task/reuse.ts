/** Reuses the definition and the outcome of a task in a rerun. Pure. */
import type { TaskInput } from '../../shared/contract/submission.ts'
import { STANDING_BITS } from '../rules/conditions.ts'
import type { Task } from './graph.ts'
import { isInputField } from './known-fields.ts'
import { wholeRecord } from './record.ts'

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
