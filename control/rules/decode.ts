/**
 * Check 1: the body of POST /tasks is JSON of the right shape. Pure.
 *
 * Every fault becomes `invalid JSON: <detail>`, and the detail names the field. The body `null`, and a list of tasks
 * that is absent or `null`, are an empty graph, which check 2 refuses.
 */
import { GROUP_TYPE } from '../../shared/contract/fan-out.ts'
import { MemberInput, TaskInput } from '../../shared/contract/submission.ts'
import { inRanges, type Steps } from '../../shared/process/steps.ts'
import { isObject, jsonTypeOf } from '../../shared/text/json.ts'
import { decodeJson, invalidJson, invalidJsonText, MAX_FIELDS } from '../json/body.ts'
import { valueFault } from '../json/depth.ts'
import { tooManyFieldsText } from '../json/large-json.ts'
import { checkOf } from '../json/schema-check.ts'
import { GRAPH_OPTIONS, type GraphOptions, graphOptions, graphOptionsFault } from './graph-options.ts'
import { isGroup, withGroupType } from './group-rule.ts'
import { onEndTasks } from './on-end.ts'
import { type Report, refuse } from './report.ts'

const taskCheck = checkOf(TaskInput)
const memberCheck = checkOf(MemberInput)

/** Whether the fields of `task` have the right types. Required fields may be missing. */
export const isTaskShape = (task: unknown): task is TaskInput => taskCheck.accepts(task)

/**
 * Whether a task has no fields but an id, a type and dependencies, of the right types. So have most tasks of large graphs: no
 * check of other fields needs to see them.
 */
export function isPlainTask(task: unknown): task is TaskInput {
  if (!isObject(task)) return false
  const { id, type, depends_on } = task
  let fields = 0
  for (const _ in task) fields++
  if (typeof id !== 'string' || typeof type !== 'string' || type === GROUP_TYPE) return false
  if (depends_on === undefined) return fields === 2
  return fields === 3 && Array.isArray(depends_on) && depends_on.every((dependency) => typeof dependency === 'string')
}

/** The tasks of a graph after the check of their forms. */
export interface ShapedTasks {
  /** All are plain (`isPlainTask`). */
  readonly arePlain: boolean
  /** The tasks without invalid fields. Lacks tasks that are not objects or have an invalid id. */
  readonly tasks: TaskInput[]
  /** Tasks that lack a field because it was invalid. */
  readonly incomplete: ReadonlySet<TaskInput>
  /** Number of elements of the submitted list. */
  readonly submitted: number
}

/** A graph as submitted: its tasks, and the object that contains them, with all its other fields. */
export interface DecodedGraph extends ShapedTasks {
  readonly fields: object
  readonly options: GraphOptions
}

/** Throws if there are too many tasks, before any of them is checked. */
type CheckSize = (count: number) => void

/** Throws 400 if the body is not a graph, and the errors of `checkSize`. Reports other faults. */
export function* decodeGraph(
  body: Uint8Array,
  checkSize: CheckSize = () => {},
  report: Report = refuse,
): Steps<DecodedGraph> {
  return yield* checkGraphShape(yield* decodeJson(body, { tasks: true }), checkSize, report)
}

/** As `decodeGraph`, for a parsed body. */
export function* checkGraphShape(graph: unknown, checkSize: CheckSize, report: Report = refuse): Steps<DecodedGraph> {
  if (isObject(graph)) {
    if (!hasFewFields(graph)) report(tooManyFields(''))
    const atEnd = Array.isArray(graph.on_end) ? graph.on_end.length : 0
    if (Array.isArray(graph.tasks)) checkSize((yield* countOf(graph.tasks)) + atEnd)
  }
  const submitted = submittedTasks(graph)
  const shaped = yield* checkShapes(submitted, 'tasks', report)
  yield* inRanges(shaped.arePlain ? 0 : submitted.length, (from, to) => {
    for (let i = from; i < to; i++) {
      const task = submitted[i]
      if (isObject(task) && !hasFewFields(task)) report(tooManyFields(`tasks[${i}]`), idOf(task))
    }
  })
  const fields = graph ?? {}
  const options = decodeOptions(fields, '', report)
  const atEnd = onEndTasks(options)
  if (atEnd.length === 0 || shaped.submitted === 0) return { fields, ...shaped, options }
  return {
    fields,
    ...shaped,
    arePlain: false,
    tasks: [...shaped.tasks, ...atEnd],
    submitted: shaped.submitted + atEnd.length,
    options,
  }
}

/** Number of tasks, with those of groups. */
function* countOf(tasks: readonly unknown[]): Steps<number> {
  let count = tasks.length
  yield* inRanges(tasks.length, (from, to) => {
    for (let i = from; i < to; i++) {
      const members = (tasks[i] as { readonly tasks?: unknown } | null | undefined)?.tasks
      if (Array.isArray(members)) count += members.length
    }
  })
  return count
}

/** The fields of a graph beside its tasks. `at` is the path of the graph in the body, for errors. */
export function decodeOptions(fields: object, at = '', report: Report = refuse): GraphOptions {
  const options = graphOptions(fields)
  if (options !== undefined) return options
  const sound: Record<string, unknown> = {}
  for (const name of GRAPH_OPTIONS) {
    const value = (fields as Readonly<Record<string, unknown>>)[name]
    if (graphOptions({ [name]: value }) !== undefined) sound[name] = value
    else report(invalidJsonText(`${at && `${at}.`}${graphOptionsFault({ [name]: value })}`))
  }
  return decodeOptions(sound)
}

/** Whether an object has at most `MAX_FIELDS` fields. */
export function hasFewFields(object: object): boolean {
  let count = 0
  for (const _ in object) if (++count > MAX_FIELDS) return false
  return true
}

const tooManyFields = (at: string): string => invalidJsonText(tooManyFieldsText(at, MAX_FIELDS))

/**
 * The tasks of a parsed body. `at` is the path of the graph in the body, for errors; empty if the body is the graph.
 * Throws 400.
 */
export function* decodeTasks(graph: unknown, at = ''): Steps<TaskInput[]> {
  const { tasks } = yield* checkShapes(submittedTasks(graph, at), pathOfTasks(at), refuse)
  return tasks
}

function submittedTasks(graph: unknown, at = ''): readonly unknown[] {
  if (graph === null) return []
  if (!isObject(graph)) {
    throw invalidJson(`${at && `${at}: `}expected object with a list of tasks, got ${jsonTypeOf(graph)}`)
  }
  const tasks = graph.tasks ?? []
  if (!Array.isArray(tasks)) throw invalidJson(`${pathOfTasks(at)}: expected array, got ${jsonTypeOf(tasks)}`)
  return tasks
}

const pathOfTasks = (at: string): string => `${at && `${at}.`}tasks`

const NO_TASKS: ReadonlySet<TaskInput> = new Set()

function* checkShapes(submitted: readonly unknown[], path: string, report: Report): Steps<ShapedTasks> {
  const repaired = new Map<number, TaskInput | undefined>()
  /** Groups with their type. */
  const typed = new Map<number, TaskInput>()
  let arePlain = true
  yield* inRanges(submitted.length, (from, to) => {
    for (let i = from; i < to; i++) {
      const task = submitted[i]
      if (isPlainTask(task)) continue
      arePlain = false
      if (!isWellShaped(task)) repaired.set(i, wellShapedPart(task, `${path}[${i}]`, report))
      else if (isGroup(task)) typed.set(i, withGroupType(task))
    }
  })
  const tasks = submitted as TaskInput[]
  if (repaired.size + typed.size === 0) return { arePlain, tasks, incomplete: NO_TASKS, submitted: tasks.length }
  const incomplete = [...repaired.values()].filter((task) => task !== undefined)
  return {
    arePlain,
    tasks: tasks.flatMap((task, i) => (repaired.has(i) ? (repaired.get(i) ?? []) : (typed.get(i) ?? task))),
    incomplete: new Set(incomplete),
    submitted: tasks.length,
  }
}

/** Whether `task` passes check 1: its fields are of the right types, and can be kept. */
export const isWellShaped = (task: unknown): task is TaskInput =>
  isTaskShape(task) &&
  valueFault(task.params) === undefined &&
  valueFault(task.input) === undefined &&
  valueFault(task.when) === undefined &&
  valueFault(task.for_each) === undefined &&
  (task.tasks == null || valueFault(task.tasks) === undefined)

/** Reports invalid fields. Returns the task without them; undefined if the id is invalid. */
function wellShapedPart(task: unknown, at: string, report: Report): TaskInput | undefined {
  if (!isObject(task)) {
    report(invalidJsonText(`${at}: expected object, got ${jsonTypeOf(task)}`))
    return undefined
  }
  const id = idOf(task)
  const part = { ...task }
  while (!isTaskShape(part)) {
    const { path, text } = memberFault(part) ?? taskCheck.faultOf(part)
    report(invalidJsonText(`${at}.${path}: ${text}`), id)
    delete (part as Record<string, unknown>)[fieldOf(path)]
  }
  for (const name of ['params', 'input', 'when', 'for_each', 'tasks'] as const) {
    const fault = valueFault(part[name])
    if (fault === undefined) continue
    report(invalidJsonText(`${at}.${name}: ${fault}`), id)
    delete part[name]
  }
  return id === undefined && task.id != null ? undefined : withGroupType(part)
}

const idOf = ({ id }: { readonly id?: unknown }): string | undefined => (typeof id === 'string' ? id : undefined)

/** The fault of the first member of a group that has one. */
function memberFault({
  tasks,
}: {
  readonly tasks?: unknown
}): { readonly path: string; readonly text: string } | undefined {
  if (!Array.isArray(tasks)) return undefined
  const i = tasks.findIndex((member) => !memberCheck.accepts(member))
  if (i < 0) return undefined
  if (!isObject(tasks[i])) return { path: `tasks[${i}]`, text: `expected object, got ${jsonTypeOf(tasks[i])}` }
  const { path, text } = memberCheck.faultOf(tasks[i])
  return { path: `tasks[${i}].${path}`, text }
}

/** The field of a task that a path such as `annotations.a.b` or `depends_on[3]` lies in. */
const fieldOf = (path: string): string => path.split(/[.[]/, 1)[0]!
