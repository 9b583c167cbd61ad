/**
 * Reviews the fan-outs of a submitted graph: whether their fields are well formed, and whether no id is that of a child. Pure.
 *
 * References of lists are checked with those of inputs (`placeholder-review.ts`).
 */

import { inRanges, isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { jsonTypeOf } from '../../shared/text/json.ts'
import { parentIdOf } from './child-ids.ts'
import { hasFanOut, listSource } from './fan-out-rule.ts'
import { isGroup } from './group-rule.ts'
import type { Parameters } from './parameters.ts'
import { UnknownParameters } from './parameters.ts'
import type { Report } from './report.ts'
import type { ValidTask } from './validate.ts'

/** The tasks with `for_each`, by id. */
export type FanOutTasks = ReadonlyMap<string, ValidTask>

/** Fields that mean something only beside `for_each`. */
const COMPANIONS = ['max_parallel', 'fail_fast'] as const

/** Reports faults of fan-outs in the order of the tasks, then ids that are those of children. */
export function* reviewFanOuts(
  tasks: readonly ValidTask[],
  params: Parameters | undefined,
  report: Report,
): Steps<FanOutTasks> {
  const found = new Map<string, ValidTask>()
  const unknownParameters = new UnknownParameters(params ?? {})
  yield* inRanges(tasks.length, (from, to) => {
    for (let i = from; i < to; i++) {
      const task = tasks[i]!
      if (!hasFanOut(task)) continue
      if (task.for_each != null) found.set(task.id, task)
      const fault = fieldFault(task, params, unknownParameters)
      if (fault !== undefined) report(`task ${task.id}${fault}`, task.id)
    }
  })
  if (found.size > 0) yield* reviewIds(tasks, found, report)
  return found
}

/** Completes `task a`. */
function fieldFault(task: ValidTask, params: Parameters = {}, unknown: UnknownParameters): string | undefined {
  if (task.for_each == null) {
    return `: ${COMPANIONS.find((name) => task[name] != null)} means nothing without for_each`
  }
  if (task.cache != null && !isGroup(task))
    return ': for_each and cache exclude each other: all children would have the same key'
  const source = listSource(task.for_each)
  if (typeof source === 'string') return `: for_each: ${source}`
  if (source.kind !== 'parameter') return undefined
  const { name } = source
  const text = unknown.textOf(name)
  if (text !== undefined) return ` ${text}`
  const value = params[name]
  // A parameter without a value is a fault of its own.
  return value === null || Array.isArray(value)
    ? undefined
    : `: for_each: parameter ${name} is no list: it is of type ${jsonTypeOf(value)}`
}

function* reviewIds(tasks: readonly ValidTask[], found: FanOutTasks, report: Report): Steps<void> {
  for (let i = 0; i < tasks.length; i++) {
    const { id } = tasks[i]!
    const parent = parentIdOf(id)
    if (parent !== undefined && found.has(parent)) report(`task id ${id} is reserved by for_each of ${parent}`, id)
    if (isYieldDue(i)) yield
  }
}

/** What to write instead of the id of a child, which no other task can name; empty for any other id. */
export function childHint(id: string, found: FanOutTasks): string {
  const parent = parentIdOf(id)
  if (parent === undefined || !found.has(parent)) return ''
  const index = id.slice(parent.length + 1, -1)
  return ` (it is a child of ${parent}: use {"$from": ${JSON.stringify(parent)}, "path": "/result/${index}"})`
}

/** The list of a task with `for_each`, as far as it is known before it runs. */
export function knownList({ for_each }: ValidTask, params: Parameters = {}): readonly unknown[] | undefined {
  const source = listSource(for_each)
  if (typeof source === 'string' || source.kind === 'reference') return undefined
  const list =
    source.kind === 'list' ? source.list : Object.hasOwn(params, source.name) ? params[source.name] : undefined
  return Array.isArray(list) ? list : undefined
}
