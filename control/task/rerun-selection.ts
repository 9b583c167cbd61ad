/** Selects the tasks of an ended graph that a rerun executes again. Pure; linear in tasks and edges. */
import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import type { Edges } from '../rules/edges.ts'
import type { Task } from './graph.ts'

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
