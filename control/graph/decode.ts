/**
 * Check 1: the body of POST /tasks is JSON of the right shape. Pure.
 *
 * Whatever is wrong becomes `invalid JSON: <detail>`, and the detail names the field. The body `null`, an absent and a
 * `null` list of tasks are an empty graph, which is check 2.
 */
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { TaskInput } from '../../shared/contract/control.ts'
import { badRequest } from '../../shared/errors.ts'
import { JsonSyntaxError, parseJson, parseObjectWithArray } from '../../shared/json-slices.ts'
import { isYieldDue, type Slices } from '../../shared/slices.ts'

/** Bytes up to which a body is parsed in one go: about two milliseconds. */
const PARSE_AT_ONCE_BYTES = 512 * 1024

/** Levels of arrays and objects in one task's `params` or `input`. Deeper values exhaust the stack of whoever reads them. */
export const MAX_JSON_DEPTH = 200

let compiled: TypeCheck<typeof TaskInput> | undefined

/** The check of one task. Made when it is first needed: it would cost every start milliseconds. */
const taskShape = (): TypeCheck<typeof TaskInput> => {
  compiled ??= TypeCompiler.Compile(TaskInput)
  return compiled
}

/** Whether `task` has fields of the right types; not whether it has those it needs. */
export const isTaskShape = (task: unknown): task is TaskInput => taskShape().Check(task)

const invalid = (detail: string) => badRequest(`invalid JSON: ${detail}`)

/** The tasks of a graph as submitted, or throws 400. */
export function* decodeGraph(body: Uint8Array): Slices<TaskInput[]> {
  return yield* decodeTasks(yield* decodeJson(body))
}

/** The tasks of a parsed body. */
export function* decodeTasks(graph: unknown): Slices<TaskInput[]> {
  if (graph === null) return []
  if (!isObject(graph)) throw invalid(`expected object with a list of tasks, got ${nameOf(graph)}`)
  const tasks = graph.tasks ?? []
  if (!Array.isArray(tasks)) throw invalid(`tasks: expected array, got ${nameOf(tasks)}`)
  for (let i = 0; i < tasks.length; i++) {
    checkTaskShape(tasks[i], i)
    if (isYieldDue(i)) yield
  }
  return tasks as TaskInput[]
}

function* decodeJson(body: Uint8Array): Slices<unknown> {
  if (body.length === 0) throw invalid('the body is empty')
  try {
    if (body.length <= PARSE_AT_ONCE_BYTES) return parseJson(body)
    return yield* parseObjectWithArray(body, 'tasks')
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw invalid(error.message)
    throw error
  }
}

function checkTaskShape(task: unknown, index: number): void {
  if (!isTaskShape(task)) throw invalid(shapeFault(task, index))
  for (const field of ['params', 'input'] as const) {
    const value = task[field]
    if (value !== null && typeof value === 'object' && !isWithinDepth(value, MAX_JSON_DEPTH)) {
      throw invalid(`tasks[${index}].${field}: nested deeper than ${MAX_JSON_DEPTH} levels`)
    }
  }
}

function shapeFault(task: unknown, index: number): string {
  if (!isObject(task)) return `tasks[${index}]: expected object, got ${nameOf(task)}`
  const field = taskShape().Errors(task).First()?.path.split('/')[1] as keyof typeof TaskInput.properties
  return `tasks[${index}].${field}: expected ${TaskInput.properties[field]?.expected}`
}

function isWithinDepth(value: object, levels: number): boolean {
  if (levels === 0) return false
  for (const member of Object.values(value)) {
    if (member !== null && typeof member === 'object' && !isWithinDepth(member, levels - 1)) return false
  }
  return true
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

const nameOf = (value: unknown): string => (Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value)
