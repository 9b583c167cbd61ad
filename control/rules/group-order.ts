/**
 * The order inside a group, for the waves and the longest chain of a graph that is only checked: its tasks run in its place,
 * so they count, and the group itself does not. Pure.
 */
import { runSync } from '../../shared/process/steps.ts'
import { criticalPath } from './critical-path.ts'
import { knownList } from './fan-out-review.ts'
import { memberId } from './group-rule.ts'
import { Members } from './members.ts'
import type { Parameters } from './parameters.ts'
import type { ValidTask } from './validate.ts'
import { wavesOf } from './waves.ts'

/** Children of a group that are named one by one. Of more, and of a list that is not known, `each[*]/build` stands for all. */
export const MAX_NAMED_CHILDREN = 1_000

export interface GroupOrder {
  /** The ids of the children of each wave of the group. */
  readonly waves: readonly (readonly string[])[]
  /** The longest chain. The elements of a list run beside each other, so it is that of one of them. */
  readonly path: readonly string[]
}

/** Undefined if nothing runs in its place: the list is empty. `group` has sound members. */
export function groupOrder(group: ValidTask, params: Parameters | undefined): GroupOrder | undefined {
  const { tasks, edges } = new Members(group.tasks!)
  const list = group.for_each == null ? undefined : knownList(group, params)
  if (list?.length === 0) return undefined
  const areNamed = list !== undefined && list.length * tasks.length <= MAX_NAMED_CHILDREN
  const idsOf = (local: string): string[] => {
    if (group.for_each == null) return [memberId(group.id, undefined, local)]
    return areNamed ? list.map((_, index) => memberId(group.id, index, local)) : [`${group.id}[*]/${local}`]
  }
  const order = Uint32Array.from(tasks.keys())
  const waves = runSync(wavesOf(edges, order, (position) => tasks[position]!.id))
  const { positions } = runSync(criticalPath(edges, order, () => 1))
  return {
    waves: waves.map((ids) => ids.flatMap(idsOf)),
    path: positions.map((position) => idsOf(tasks[position]!.id)[0]!),
  }
}
