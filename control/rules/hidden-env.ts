/**
 * Hides the values of `env` in tasks that start programs where tasks are shown, and refuses hidden values in
 * submissions. Pure.
 */
import { HIDDEN_VALUE, hiddenEnv, hiddenValueText, nameOfHidden } from '../../shared/process/hidden-env.ts'
import { isObject } from '../../shared/text/json.ts'
import { normalizeTool } from './normalize.ts'
import { hasPlaceholderName, placeholderIn } from './placeholders.ts'
import type { Report } from './report.ts'
import type { ValidTask } from './validate.ts'

const RUNTIME = 'runtime'

/** Categories whose tools start programs of this machine. They take `env` beside their other parameters. */
const LOCAL: ReadonlySet<string> = new Set(['os', 'cli-skills'])

/**
 * Fields of an execution that hold text or a list of texts. Any other value in them may hold an `env` and is hidden
 * whole.
 */
const TEXT_FIELDS = ['program', 'args', 'script', 'interpreter'] as const

/** Fields of a placeholder that may hold its value. */
const VALUE_FIELDS = ['$literal', 'default'] as const

type Fields = Record<string, unknown>

/**
 * The `input` of a task of `type` as it may be shown. Returns `input` itself if it holds no `env`. The `env` of a
 * runtime task is at the top or in `execution`. If either is not an object, such as a list or JSON as text, it may hold
 * an `env` anywhere, so all of it is hidden. Other tasks may have any JSON value as a parameter, which is shown
 * unchanged.
 */
export function shownInput(type: string, input: unknown): unknown {
  if (LOCAL.has(type)) return shownAt(input, shownLocal, false)
  return type === RUNTIME ? shownAt(input, shownRuntime, true) : input
}

/**
 * `value` as it may be shown, where an object is expected that `shown` handles. If `value` is a placeholder, so are the
 * values in it. With `hidesOthers`, values that are not objects are hidden.
 */
function shownAt(value: unknown, shown: (fields: Fields) => Fields, hidesOthers: boolean): unknown {
  if (!isObject(value)) return hidesOthers && mayHoldEnv(value) ? HIDDEN_VALUE : value
  let fields = shown(value)
  if (!hasPlaceholderName(value)) return fields
  for (const name of VALUE_FIELDS) {
    const inner = shownAt(value[name], shown, hidesOthers)
    if (inner !== value[name]) fields = { ...fields, [name]: inner }
  }
  return fields
}

function shownLocal(input: Fields): Fields {
  const env = hiddenEnv(input.env)
  return env === input.env ? input : { ...input, env }
}

function shownRuntime(input: Fields): Fields {
  const shown = shownFields(input)
  const { execution } = input
  const shownExecution = shownAt(execution, shownFields, true)
  return shownExecution === execution ? shown : { ...shown, execution: shownExecution }
}

/** Shows an execution, or an input with the same fields. Returns the object itself if nothing is hidden. */
function shownFields(fields: Fields): Fields {
  const env = hiddenEnv(fields.env)
  const isHidingEnv = env !== fields.env
  const odd = TEXT_FIELDS.filter((name) => isOdd(fields[name]))
  if (!isHidingEnv && odd.length === 0) return fields
  return {
    ...fields,
    ...Object.fromEntries(odd.map((name) => [name, HIDDEN_VALUE])),
    ...(isHidingEnv && { env }),
  }
}

const mayHoldEnv = (value: unknown): boolean => typeof value === 'string' || !isScalar(value)

/** Neither a scalar nor a list of scalars. */
const isOdd = (value: unknown): boolean => !isScalar(value) && !(Array.isArray(value) && value.every(isScalar))

/** Whether `value` is a scalar, or a placeholder for one that holds no value itself. */
const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null || isBarePlaceholder(value)

/** Whether `value` refers to a parameter, to an element of a list, or to a value of another task with a scalar as default. */
function isBarePlaceholder(value: object): boolean {
  const placeholder = isObject(value) && hasPlaceholderName(value) ? placeholderIn(value) : undefined
  if (typeof placeholder !== 'object' || placeholder.kind === 'literal') return false
  return placeholder.kind !== 'reference' || typeof placeholder.reference.default?.value !== 'object'
}

interface Shown extends Pick<ValidTask, 'params' | 'input'> {
  readonly type?: string | null
  readonly tasks?: readonly Shown[] | null
}

/** A submitted task as it may be shown. Returns the task itself if nothing is hidden. */
export function shownTask<Submitted extends Shown>(task: Submitted): Submitted {
  const { params, input, tasks } = task
  if (tasks != null) {
    const shown = shownMembers(tasks)
    return shown === tasks ? task : { ...task, tasks: shown }
  }
  const type = categoryWithEnv(task.type)
  if (type === undefined) return task
  const shown = { params: shownInput(type, params), input: shownInput(type, input) }
  if (shown.params === params && shown.input === input) return task
  return {
    ...task,
    ...(params !== undefined && { params: shown.params }),
    ...(input !== undefined && { input: shown.input }),
  }
}

/** The members of a group as they may be shown. Returns the list itself if nothing is hidden. */
export function shownMembers<M extends Shown>(members: readonly M[]): readonly M[] {
  const shown = members.map((member) => shownTask(member))
  return shown.some((member, i) => member !== members[i]) ? shown : members
}

/** Reports hidden values in the submitted `tasks` from `from` to `to`. */
export function reportHiddenValues(tasks: readonly ValidTask[], report: Report, from: number, to: number): void {
  let type = '' // most tasks are of the type of the one before
  let category: string | undefined
  for (let i = from; i < to; i++) {
    const task = tasks[i]!
    if (task.type !== type) {
      type = task.type
      category = categoryWithEnv(type)
    }
    if (category !== undefined) reportHiddenOf(task, category, report)
  }
}

function reportHiddenOf({ id, params, input }: ValidTask, category: string, report: Report): void {
  const reportHidden = (path: string) => report(hiddenValueText(path), id)
  for (const [field, value] of [
    ['params', params],
    ['input', input],
  ] as const) {
    const path = `task ${id}: ${field}`
    if (category === RUNTIME) eachHiddenAt(path, value, eachHiddenOfRuntime, reportHidden)
    else if (isObject(value)) eachHiddenAt(path, value, hiddenVariable, reportHidden)
  }
}

type OnHidden = (path: string) => void

/** Finds the values that `shownAt` would hide. `each` stands for `shown`. */
function eachHiddenAt(
  path: string,
  value: unknown,
  each: (path: string, fields: Fields, onHidden: OnHidden) => void,
  onHidden: OnHidden,
): void {
  if (value === HIDDEN_VALUE) onHidden(path)
  if (!isObject(value)) return
  each(path, value, onHidden)
  if (!hasPlaceholderName(value)) return
  for (const name of VALUE_FIELDS) eachHiddenAt(`${path}.${name}`, value[name], each, onHidden)
}

function eachHiddenOfRuntime(path: string, input: Fields, onHidden: OnHidden): void {
  eachHiddenField(path, input, onHidden)
  eachHiddenAt(`${path}.execution`, input.execution, eachHiddenField, onHidden)
}

function eachHiddenField(path: string, fields: Fields, onHidden: OnHidden): void {
  for (const name of TEXT_FIELDS) if (fields[name] === HIDDEN_VALUE) onHidden(`${path}.${name}`)
  hiddenVariable(path, fields, onHidden)
}

/** Reports only the first hidden variable, because a record hides all of them. */
function hiddenVariable(path: string, { env }: Fields, onHidden: OnHidden): void {
  const variable = nameOfHidden(env)
  if (variable !== undefined) onHidden(variable === '' ? `${path}.env` : `${path}.env.${variable}`)
}

/** The category of a submitted type whose tasks may have an `env`; undefined for others. */
function categoryWithEnv(submitted: string | null | undefined): string | undefined {
  if (!submitted) return undefined
  const { type, toolName } = normalizeTool(submitted, undefined)
  const mayHaveEnv = type === RUNTIME || (LOCAL.has(type) && (toolName === undefined || toolName === 'shell'))
  return mayHaveEnv ? type : undefined
}
