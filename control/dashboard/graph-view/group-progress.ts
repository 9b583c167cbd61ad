/** How far a group is: its elements, or without `for_each` its tasks. Pure. */
import { countText } from '../model/amounts.ts'
import { countsOf, endedCount } from '../model/counts.ts'
import { hasEnded, type Look, lookOf } from '../model/looks.ts'
import type { Counts, GraphTask } from '../model/wire.ts'

export interface GroupProgress {
  /** The states of its tasks. */
  readonly counted: Counts
  /** `3 of 12 elements ended, 1 failed, 2 run`. */
  readonly sentence: string
  /** The same for a small box: `3/12 · 1 failed · 2 run`, or `3 of 12 elements`. */
  readonly short: string
}

/** The look of a group, which says too that something in it waits for a person. */
export const groupLookOf = (group: GraphTask, children: readonly GraphTask[]): Look =>
  !hasEnded(group.status) && children.some((child) => lookOf(child) === 'asking') ? 'asking' : lookOf(group)

/** `children` may lack some, if the graph has more tasks than the page. Then tasks are counted, not elements. */
export function groupProgress(group: GraphTask, children: readonly GraphTask[]): GroupProgress {
  const { child_count: total = children.length } = group
  const counted = total > children.length ? (group.children ?? {}) : countsOf(children)
  const elements = total > children.length ? undefined : elementsOf(group, children)
  const { ended, failed, running, count, noun } = elements ?? {
    ...{ ended: endedCount(counted), failed: counted.failed ?? 0, count: total, noun: 'tasks' },
    running: (counted.running ?? 0) + (counted.cancelling ?? 0),
  }
  const parts = [failed > 0 && `${countText(failed)} failed`, running > 0 && `${countText(running)} run`]
  const more = parts.filter((part) => part !== false)
  const how = `${countText(ended)} of ${countText(count)} ${noun}`
  return {
    counted,
    sentence: [`${how} ended`, ...more].join(', '),
    short: more.length === 0 ? how : [`${countText(ended)}/${countText(count)}`, ...more].join(' · '),
  }
}

/** Undefined for a group without `for_each`. An element has failed once one of its tasks has, and runs until all have ended. */
function elementsOf(group: GraphTask, children: readonly GraphTask[]) {
  const byElement = Map.groupBy(children, ({ id }) => id.slice(0, id.lastIndexOf('/')))
  if (byElement.size === 0 || byElement.has(group.id)) return undefined
  const found = { ended: 0, failed: 0, running: 0, count: byElement.size, noun: 'elements' }
  for (const tasks of byElement.values()) {
    const hasEndedAll = tasks.every(({ status }) => hasEnded(status))
    if (hasEndedAll) found.ended++
    else if (tasks.some(({ status }) => status !== 'pending')) found.running++
    if (tasks.some((task) => lookOf(task) === 'failed')) found.failed++
  }
  return found
}
