/**
 * Groups: a task with `tasks` of its own runs these, its members, in its place; with `for_each` once for each element. Pure.
 *
 * Members name each other by ids that are local to the group. A member of an element is a child of the group, under the id
 * `<group>[0]/<member>`, or `<group>/<member>` without `for_each`. No id of a member has a slash or a bracket, so no two children
 * have the same id.
 */
import { GROUP_TYPE } from '../../shared/contract/fan-out.ts'
import type { TaskInput } from '../../shared/contract/submission.ts'
import { childId } from './child-ids.ts'

export const isGroup = ({ tasks }: { readonly tasks?: unknown }): boolean => tasks != null

/** Whether children execute for the task. */
export const hasChildren = ({ for_each, tasks }: { readonly for_each?: unknown; readonly tasks?: unknown }): boolean =>
  for_each != null || tasks != null

/** `task` with the type that a group has, which callers may leave out. */
export const withGroupType = (task: TaskInput): TaskInput =>
  isGroup(task) && task.type == null ? { ...task, type: GROUP_TYPE } : task

/** The id of a member for an element. `index` is undefined without `for_each`. */
export const memberId = (groupId: string, index: number | undefined, id: string): string =>
  `${index === undefined ? groupId : childId(groupId, index)}/${id}`
