/**
 * The fields that a graph and its tasks may have. Pure.
 *
 * Callers may submit a record of the service as a task. So the fields that the service sets are known and ignored.
 */
import { GraphCallback } from '../../shared/contract/callbacks.ts'
import { GraphConcurrency } from '../../shared/contract/graph-groups.ts'
import { TaskGraph, TaskInput } from '../../shared/contract/submission.ts'
import { allUnknown, didYouMean, FREE_FIELDS, firstUnknown, quoted } from '../../shared/request/unknown-names.ts'
import { isObject } from '../../shared/text/json.ts'
import { nearestName, type Synonyms } from '../../shared/text/nearest-name.ts'
import { NAMES_SET_BY_SERVICE } from './task-fields.ts'

const INPUT_FIELDS = Object.keys(TaskInput.properties)

const KNOWN_FIELDS: ReadonlySet<string> = new Set([...INPUT_FIELDS, ...NAMES_SET_BY_SERVICE, ...FREE_FIELDS])

const GRAPH_INPUT_FIELDS = Object.keys(TaskGraph.properties)

/** Names the schema of a file to editors. Ignored. */
const SCHEMA_FIELD = '$schema'

const GRAPH_FIELDS: ReadonlySet<string> = new Set([...GRAPH_INPUT_FIELDS, SCHEMA_FIELD, ...FREE_FIELDS])

/** Names of the fields of a task in other systems. */
const TASK_SYNONYMS: Synonyms = {
  after: 'depends_on',
  dependencies: 'depends_on',
  deps: 'depends_on',
  requires: 'depends_on',
  needs: 'depends_on',
  max_retries: 'retry',
  retries: 'retry',
  retry_count: 'retry',
  arguments: 'params',
  parameters: 'params',
  deadline: 'timeout',
  timeout_seconds: 'timeout',
  schedule_to_start_timeout: 'queue_timeout',
  delay: 'not_before',
  start_at: 'not_before',
  run_at: 'not_before',
  prio: 'priority',
  priority_weight: 'priority',
  kind: 'type',
  name: 'id',
  task_id: 'id',
  tool: 'tool_name',
  if: 'when',
  condition: 'when',
  trigger_rule: 'run_if',
  allow_failure: 'continue_on_error',
  ignore_errors: 'continue_on_error',
  foreach: 'for_each',
  items: 'for_each',
  with_items: 'for_each',
  loop: 'for_each',
  map: 'for_each',
  matrix: 'for_each',
  parallelism: 'max_parallel',
  concurrency: 'max_parallel',
  'max-parallel': 'max_parallel',
  'fail-fast': 'fail_fast',
  memoize: 'cache',
  steps: 'tasks',
  subtasks: 'tasks',
  cache_key: 'cache',
}

/** Names of the fields of a graph in other systems. */
const GRAPH_SYNONYMS: Synonyms = {
  steps: 'tasks',
  jobs: 'tasks',
  nodes: 'tasks',
  stages: 'tasks',
  graph_name: 'name',
  title: 'name',
  parameters: 'params',
  variables: 'params',
  vars: 'params',
  tags: 'labels',
  concurrency_group: 'concurrency',
  concurrency_key: 'concurrency',
  mutex: 'concurrency',
}

/** Whether a field affects the task. Other fields are known and ignored, or unknown. */
export const isInputField = (name: string): boolean => Object.hasOwn(TaskInput.properties, name)

/** `task` with only those fields. */
export function inputFields(task: TaskInput): TaskInput {
  const fields: Record<string, unknown> = {}
  for (const name in task) if (isInputField(name)) fields[name] = task[name as keyof TaskInput]
  return fields
}

/** The first unknown field of a task; undefined if all are known. */
export const unknownTaskField = (task: object): string | undefined => firstUnknown(task, KNOWN_FIELDS)

/** All unknown fields of a task. */
export const unknownTaskFields = (task: object): string[] => allUnknown(task, KNOWN_FIELDS)

/** The first unknown field beside `tasks`; undefined if all are known. */
export const unknownGraphField = (graph: object): string | undefined => firstUnknown(graph, GRAPH_FIELDS)

/** The probable meaning of an unknown field: a parameter of the tool (`params.limits`) or a field of the task. */
export const nearestTaskField = (name: string, parameters: readonly string[]): string | undefined =>
  parameters.includes(name) ? `params.${name}` : nearestName(name, INPUT_FIELDS, TASK_SYNONYMS)

/** The fault of an unknown field beside `tasks`. */
export function graphFieldFaults(graph: object): string[] {
  const unknown = allUnknown(graph, GRAPH_FIELDS).map((name) => {
    const nearest = nearestName(name, GRAPH_INPUT_FIELDS, GRAPH_SYNONYMS)
    return `unknown field ${quoted(name)} in graph${didYouMean(nearest)}`
  })
  return [...unknown, ...INNER_FIELDS.flatMap(([name, known]) => innerFieldFaults(graph, name, known))]
}

/** The fields of fields of a graph. */
const INNER_FIELDS = [
  ['concurrency', Object.keys(GraphConcurrency.properties)],
  ['callback', Object.keys(GraphCallback.properties)],
] as const

function innerFieldFaults(graph: object, field: string, known: readonly string[]): string[] {
  const value = (graph as Readonly<Record<string, unknown>>)[field]
  const names = isObject(value) ? allUnknown(value, new Set(known)) : []
  return names.map((name) => {
    const nearest = nearestName(name, known)
    return `unknown field ${quoted(`${field}.${name}`)} in graph${didYouMean(nearest && `${field}.${nearest}`)}`
  })
}
