/** A task in the answer about its graph. Pure. */

import {
  type GraphCounts,
  type GraphTask,
  MAX_GRAPH_ANNOTATION_CHARACTERS,
  MAX_GRAPH_ERROR_CHARACTERS,
} from '../../shared/contract/graphs.ts'
import type { Waiting } from '../../shared/contract/waiting.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { FanOut } from './fan-out.ts'
import type { Task } from './graph.ts'
import { durationOf } from './graph-findings.ts'

export function graphTask(task: Task, now: number, waiting?: Waiting): GraphTask {
  const { id, type, toolName, status, attempt, dependsOn, options, startedAt, finishedAt, childOf, fanOut } = task
  const { error: errorText, failure, reused_from } = task.rare
  const durationMs = durationOf(task, now)
  const error = errorText ?? failure?.message // between two attempts, only `failure` is set
  return {
    id,
    type,
    ...(toolName !== undefined && { tool_name: toolName }),
    status,
    ...(task.isReplaced && { replaced: true as const }),
    ...(attempt > 0 && { attempt }),
    ...(dependsOn !== undefined && dependsOn.length > 0 && { depends_on: [...dependsOn] }),
    ...(options.run_if !== undefined && { run_if: options.run_if }),
    ...(options.continue_on_error !== undefined && { continue_on_error: options.continue_on_error }),
    ...(childOf !== undefined && { parent: childOf.parent.id }),
    ...(fanOut !== undefined && { child_count: fanOut.count, children: childCounts(fanOut) }),
    ...(startedAt !== undefined && { started_at: isoTime(startedAt) }),
    ...(finishedAt !== undefined && { finished_at: isoTime(finishedAt) }),
    ...(durationMs !== undefined && { duration_ms: durationMs }),
    ...(error !== undefined && { error: error.slice(0, MAX_GRAPH_ERROR_CHARACTERS) }),
    ...(failure !== undefined && { code: failure.code }),
    ...(waiting !== undefined && { waiting }),
    ...(reused_from !== undefined && { reused_from }),
  }
}

/** How many children are in which state. Deleted ones do not count. At most 100,000, which takes under a millisecond. */
function childCounts(fanOut: FanOut<Task>): GraphCounts {
  const counts: GraphCounts = {}
  for (let i = 0; i < fanOut.count; i++) {
    const { status, isDeleted } = fanOut.child(i)
    if (!isDeleted) counts[status] = (counts[status] ?? 0) + 1
  }
  return counts
}

/** The member `annotations`. Absent if they are too long for a list of many tasks. */
export function shortAnnotations({ options: { annotations } }: Task): Pick<GraphTask, 'annotations'> {
  if (annotations === undefined) return {}
  let characters = 0
  for (const [name, value] of Object.entries(annotations)) characters += name.length + value.length
  return characters === 0 || characters > MAX_GRAPH_ANNOTATION_CHARACTERS ? {} : { annotations: { ...annotations } }
}

/** Ids of the dependencies of `task` in `shown`, without repetition. */
export const shownDependencies = ({ dependsOn = [] }: Task, isShown: (id: string) => boolean): string[] =>
  dependsOn.length < 2 ? dependsOn.filter(isShown) : [...new Set(dependsOn)].filter(isShown)
