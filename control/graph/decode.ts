/**
 * Check 1: the body of POST /tasks is JSON of the right shape. Pure.
 *
 * Every fault becomes `invalid JSON: <detail>`, and the detail names the field. The body `null`, and a list of tasks that is
 * absent or `null`, are an empty graph, which check 2 refuses.
 */
import { TaskInput } from '../../shared/contract/control.ts'
import { isObject, jsonTypeOf } from '../../shared/json.ts'
import { inRanges, type Steps } from '../../shared/steps.ts'
import { decodeJson, invalidJson, MAX_FIELDS, tooDeep } from '../json/body.ts'
import { isWithinDepth } from '../json/depth.ts'
import { tooManyFieldsText } from '../json/large-json.ts'
import { checkOf } from '../json/schema-check.ts'
import { type GraphOptions, graphOptions, graphOptionsFault } from './graph-options.ts'

const taskCheck = checkOf(TaskInput)

/** Compiles the check of tasks, so that the first graph does not wait for it. */
export const prepareDecoding = (): void => void taskCheck.compile()

/** Whether the fields of `task` have the right types. Fields that it needs may be missing. */
export const isTaskShape = (task: unknown): task is TaskInput => taskCheck.accepts(task)

/** A graph as submitted: its tasks, and the object that contains them, with all its other fields. */
export interface DecodedGraph {
  readonly fields: object
  readonly tasks: TaskInput[]
  readonly options: GraphOptions
}

/** Throws if there are too many tasks, before any of them is checked. */
type CheckSize = (count: number) => void

/** Throws 400, and what `checkSize` throws. */
export function* decodeGraph(body: Uint8Array, checkSize: CheckSize = () => {}): Steps<DecodedGraph> {
  return yield* checkGraphShape(yield* decodeJson(body, { tasks: true }), checkSize)
}

/** As `decodeGraph`, for a body that is a JSON value already. */
export function* checkGraphShape(graph: unknown, checkSize: CheckSize): Steps<DecodedGraph> {
  if (isObject(graph)) {
    if (!hasFewFields(graph)) throw tooManyFields('')
    if (Array.isArray(graph.tasks)) checkSize(graph.tasks.length)
  }
  const tasks = yield* decodeTasks(graph)
  yield* inRanges(tasks.length, (from, to) => {
    for (let i = from; i < to; i++) if (!hasFewFields(tasks[i]!)) throw tooManyFields(`tasks[${i}]`)
  })
  const fields = graph ?? {}
  return { fields, tasks, options: decodeOptions(fields) }
}

/** The fields of a graph beside its tasks. `at` is where in the body the graph stands, for errors. Throws 400. */
export function decodeOptions(fields: object, at = ''): GraphOptions {
  const options = graphOptions(fields)
  if (options === undefined) throw invalidJson(`${at && `${at}.`}${graphOptionsFault(fields)}`)
  return options
}

/** Whether an object has at most `MAX_FIELDS` fields. */
export function hasFewFields(object: object): boolean {
  let count = 0
  for (const _ in object) if (++count > MAX_FIELDS) return false
  return true
}

const tooManyFields = (at: string) => invalidJson(tooManyFieldsText(at, MAX_FIELDS))

/** The tasks of a parsed body. `at` is the path of the graph in the body, for errors; empty if the body is the graph. */
export function* decodeTasks(graph: unknown, at = ''): Steps<TaskInput[]> {
  if (graph === null) return []
  if (!isObject(graph)) {
    throw invalidJson(`${at && `${at}: `}expected object with a list of tasks, got ${jsonTypeOf(graph)}`)
  }
  const tasks = graph.tasks ?? []
  const path = `${at && `${at}.`}tasks`
  if (!Array.isArray(tasks)) throw invalidJson(`${path}: expected array, got ${jsonTypeOf(tasks)}`)
  yield* inRanges(tasks.length, (from, to) => {
    for (let i = from; i < to; i++) checkTaskShape(tasks[i], path, i)
  })
  return tasks as TaskInput[]
}

/** Whether `task` passes check 1: its fields are of the right types, and not too deep. */
export const isWellShaped = (task: unknown): task is TaskInput =>
  isTaskShape(task) && isWithinDepth(task.params) && isWithinDepth(task.input)

function checkTaskShape(task: unknown, tasksPath: string, index: number): void {
  if (isWellShaped(task)) return
  if (!isTaskShape(task)) throw invalidJson(shapeFault(task, `${tasksPath}[${index}]`))
  if (!isWithinDepth(task.params)) throw tooDeep(`${tasksPath}[${index}].params`)
  throw tooDeep(`${tasksPath}[${index}].input`)
}

function shapeFault(task: unknown, at: string): string {
  if (!isObject(task)) return `${at}: expected object, got ${jsonTypeOf(task)}`
  const { path, expected } = taskCheck.faultOf(task)
  return `${at}.${path}: expected ${expected}`
}
