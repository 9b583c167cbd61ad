/** New tasks for the children of a task. */

import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { childId } from '../rules/child-ids.ts'
import { memberId } from '../rules/group-rule.ts'
import type { Members } from '../rules/members.ts'
import { hasPlaceholder } from '../rules/placeholders.ts'
import type { FanOut } from './fan-out.ts'
import { Task } from './graph.ts'
import { childOptions, taskOptions } from './task-options.ts'

/** The children that a task gets. `Graph.addChildren` gives them their positions. */
export const newChildren = (fanOut: FanOut<Task>): Steps<Task[]> =>
  fanOut.members === undefined ? newCopies(fanOut) : newMembers(fanOut, fanOut.members)

/** Children that share the definition of their parent. */
function* newCopies(fanOut: FanOut<Task>): Steps<Task[]> {
  const { parent, count } = fanOut
  const { graph, id, type, toolName, params, rare } = parent
  const options = childOptions(parent.options)
  const input = parent.input === params ? undefined : parent.input
  const children: Task[] = []
  for (let i = 0; i < count; i++) {
    const definition = { id: childId(id, i), type, tool_name: toolName ?? null, params, input }
    const child = new Task(graph, i, definition, options, fanOut)
    child.setRare('hasPlaceholders', rare.hasPlaceholders)
    children.push(child)
    if (isYieldDue(i)) yield
  }
  return children
}

/** The members of a group, for each of its elements. */
function* newMembers(fanOut: FanOut<Task>, { tasks }: Members): Steps<Task[]> {
  const { parent, elements } = fanOut
  const { graph, id } = parent
  const options = tasks.map((member) => taskOptions(member))
  const havePlaceholders = tasks.map(({ input, params }) => hasPlaceholder(input ?? params) || undefined)
  const children: Task[] = []
  for (let element = 0; element < elements; element++) {
    const idOf = (local: string) => memberId(id, fanOut.hasList ? element : undefined, local)
    for (let m = 0; m < tasks.length; m++) {
      const { depends_on, ...member } = tasks[m]!
      const definition = { ...member, id: idOf(member.id), depends_on: depends_on?.map(idOf) ?? null }
      const child = new Task(graph, children.length, definition, options[m]!, fanOut)
      child.setRare('hasPlaceholders', havePlaceholders[m])
      children.push(child)
      if (isYieldDue(children.length)) yield
    }
  }
  return children
}
