/** Whether only people can let tasks go on: all that has not ended waits for an approval, itself or behind another. Pure. */
import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { isAskedApproval } from './approval.ts'
import type { Task } from './graph.ts'

/**
 * The approvals that wait for an answer, of `tasks` and of all that they wait for. Undefined if something else may go on, or
 * all have ended.
 */
export function* approvalsLeft(tasks: readonly Task[]): Steps<readonly Task[] | undefined> {
  const approvals: Task[] = []
  const open = new Set<Task>()
  let steps = 0
  for (const task of tasks) {
    if (isOpen(task)) open.add(task)
    if (isYieldDue(steps++)) yield
  }
  for (const task of open) {
    if (!isOpen(task)) continue // it has ended meanwhile
    if (isAskedApproval(task)) {
      approvals.push(task)
      continue
    }
    let isBehind = false
    for (const other of awaitedBy(task)) {
      if (isYieldDue(steps++)) yield
      if (!isOpen(other)) continue
      open.add(other) // the loop over `open` comes to it
      isBehind = true
    }
    if (!isBehind) return undefined
  }
  return approvals.length > 0 ? approvals : undefined
}

/** Whether it may still change by itself. A deleted task that has not started never runs. */
const isOpen = ({ isTerminal, isDeleted, status }: Task): boolean => !isTerminal && !(isDeleted && status === 'pending')

/** The tasks without whose end `task` does not go on. None if it can, as far as it knows. */
function* awaitedBy(task: Task): Generator<Task, void> {
  const { status, graph, fanOut, childOf } = task
  if (status === 'running' && fanOut !== undefined) {
    for (let i = 0; i < fanOut.count; i++) yield fanOut.child(i)
  } else if (status === 'pending') {
    const count = graph.dependencyCount(task)
    for (let i = 0; i < count; i++) yield graph.dependency(task, i)
    if (task.waitsForEnd) for (const other of graph.tasks) if (other.atEnd === undefined) yield other
    if (childOf?.isHeldBack(task)) yield* childOf.activeChildren()
  }
}
