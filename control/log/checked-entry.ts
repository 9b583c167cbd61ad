/** Checks an entry of the state file. Pure. */
import { TASK_STATUSES } from '../../shared/contract/task-status.ts'
import { MAX_TIME_MS } from '../../shared/text/iso-time.ts'
import { isObject } from '../../shared/text/json.ts'
import { SKIP_STANDINGS } from '../rules/conditions.ts'
import { isTaskShape } from '../rules/decode.ts'
import { graphOptions, graphOptionsFault } from '../rules/graph-options.ts'
import { RESULT_FILE_NAME } from '../rules/result-file.ts'
import { isStoredFanOut } from './journaled-fan-out.ts'
import { isKnownToService, type StoredTask, storedTask, type TaskEntry, type Writable } from './stored-task.ts'

/**
 * Returns what the entry says, with its id. The `key` is the id of the task, unless only its graph knows the id; then the entry
 * has the id. Throws `refuse(detail)` if the entry is invalid; otherwise the result is the entry itself, changed.
 */
export function checkedEntry(key: string, entry: unknown, refuse: (detail: string) => Error): StoredTask {
  if (!isTaskShape(entry)) throw refuse(`the entry of task ${key} is not a task`)
  const task = entry as Partial<Writable<TaskEntry>>
  const id = isKnownToService(task) ? key : task.id
  if (id == null) throw refuse(`the entry of task ${key} has no id`)
  if (!task.type) throw refuse(`task ${id} has no type`)
  if (!(TASK_STATUSES as readonly string[]).includes(task.status ?? '')) {
    throw refuse(`task ${id} has the unknown status ${JSON.stringify(task.status ?? null)}`)
  }
  for (const file of [task.result_file, task.input_file]) {
    if (file !== undefined && !RESULT_FILE_NAME.test(String(file))) {
      throw refuse(`task ${id} names the result file ${JSON.stringify(file)}`)
    }
  }
  if (!isListOrAbsent(task.progress, isObject)) throw refuse(`task ${id} has progress that is no list of entries`)
  if (!isListOrAbsent(task.attempts, isAttempt)) throw refuse(`task ${id} has attempts that are no list of attempts`)
  if (!isSkipStandingOrAbsent(task.skip_standing)) {
    throw refuse(`task ${id} has the unknown skip_standing ${JSON.stringify(task.skip_standing)}`)
  }
  if (task.reused_from != null && !isReusedFrom(task.reused_from)) {
    throw refuse(`task ${id} has reused_from that is no graph_id and task_id`)
  }
  if (task.asked_at !== undefined && !isTime(task.asked_at)) {
    throw refuse(`task ${id} has the asked_at ${JSON.stringify(task.asked_at)}, which is no time`)
  }
  if (!isListOrAbsent(task.settled_dependencies, isSettled)) {
    throw refuse(`task ${id} has settled_dependencies that are no list of dependencies and outcomes`)
  }
  if (task.parent !== undefined && typeof task.parent !== 'string')
    throw refuse(`task ${id} has a parent that is no id`)
  if (task.child_count !== undefined && !isCount(task.child_count)) {
    throw refuse(`task ${id} has a child_count that is no number of tasks`)
  }
  if (task.fan_out !== undefined && !isStoredFanOut(task.fan_out)) {
    throw refuse(`task ${id} has a fan_out that is no count with its items`)
  }
  task.id = id
  if (task.graph === undefined) return storedTask(task as TaskEntry)
  if (!isObject(task.graph)) throw refuse(`task ${id} has a graph that is no object`)
  const graph = graphOptions(task.graph)
  if (graph === undefined) throw refuse(`task ${id} has a graph with ${graphOptionsFault(task.graph)}`)
  task.graph = graph
  return storedTask(task as TaskEntry)
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0

const isListOrAbsent = (value: unknown, isItem: (item: unknown) => boolean): boolean =>
  value == null || (Array.isArray(value) && value.every(isItem))

const isAttempt = (item: unknown): boolean => isObject(item) && Number.isSafeInteger(item.attempt)

const isSkipStandingOrAbsent = (value: unknown): boolean =>
  value === undefined || (SKIP_STANDINGS as readonly unknown[]).includes(value)

/** Milliseconds since 1970. */
const isTime = (value: unknown): boolean =>
  Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= MAX_TIME_MS

const isReusedFrom = (value: unknown): boolean =>
  isObject(value) && typeof value.graph_id === 'string' && typeof value.task_id === 'string'

const isSettled = (item: unknown): boolean =>
  isObject(item) &&
  typeof item.id === 'string' &&
  [...TASK_STATUSES, 'deleted'].includes(String(item.outcome)) &&
  isSkipStandingOrAbsent(item.skip_standing)
