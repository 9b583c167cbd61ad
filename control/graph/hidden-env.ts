/** The values of `env` in runtime tasks: hidden where tasks are shown, refused where a hidden one comes back. Pure. */
import { badRequest } from '../../shared/errors.ts'
import { HIDDEN_VALUE, hiddenEnv, hiddenValueText, nameOfHidden } from '../../shared/hidden-env.ts'
import { isGiven, isObject } from '../../shared/json.ts'
import { normalizeTool } from './normalize.ts'
import type { ValidTask } from './validate.ts'

const RUNTIME = 'runtime'

/** Fields of an execution that hold text or a list of texts. Any other value in them may hold an `env` and is hidden whole. */
const TEXT_FIELDS = ['program', 'args', 'script', 'interpreter'] as const

/**
 * `input` of a task of `type` as it may be shown: itself where it holds no `env`, flat or in `execution`. A value of a
 * wrong type may hold one at any depth, or as JSON in a text, and is hidden whole.
 */
export function shownInput(type: string, input: unknown): unknown {
  if (type !== RUNTIME) return input
  if (!isObject(input)) return mayHoldEnv(input) ? HIDDEN_VALUE : input
  const shown = shownFields(input)
  const { execution } = input
  const shownExecution = isObject(execution) ? shownFields(execution) : mayHoldEnv(execution) ? HIDDEN_VALUE : execution
  return shownExecution === execution ? shown : { ...shown, execution: shownExecution }
}

/** An execution, or an input with the same fields beside others; itself where nothing is hidden. */
function shownFields(fields: Record<string, unknown>): Record<string, unknown> {
  const isHidingEnv = isGiven(fields.env)
  const odd = TEXT_FIELDS.filter((name) => isOdd(fields[name]))
  if (!isHidingEnv && odd.length === 0) return fields
  return {
    ...fields,
    ...Object.fromEntries(odd.map((name) => [name, HIDDEN_VALUE])),
    ...(isHidingEnv && { env: hiddenEnv(fields.env) }),
  }
}

const mayHoldEnv = (value: unknown): boolean => typeof value === 'string' || !isScalar(value)

/** Neither a scalar nor a list of scalars. */
const isOdd = (value: unknown): boolean => !isScalar(value) && !(Array.isArray(value) && value.every(isScalar))

const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null

/** A submitted task as it may be shown; itself where nothing is to be hidden. */
export function shownTask<Submitted extends Pick<ValidTask, 'params' | 'input'> & { type?: string | null }>(
  task: Submitted,
): Submitted {
  const { params, input } = task
  if (!isRuntime(task.type)) return task
  const shown = { params: shownInput(RUNTIME, params), input: shownInput(RUNTIME, input) }
  if (shown.params === params && shown.input === input) return task
  return {
    ...task,
    ...(params !== undefined && { params: shown.params }),
    ...(input !== undefined && { input: shown.input }),
  }
}

/** Throws 400 for the first of `tasks` from `from` to `to` that was sent with a hidden value. */
export function refuseHiddenValues(tasks: readonly ValidTask[], from: number, to: number): void {
  let other = '' // most tasks are of the type of the one before
  for (let i = from; i < to; i++) {
    const task = tasks[i]!
    if (task.type === other) continue
    if (isRuntime(task.type)) refuseHiddenValue(task)
    else other = task.type
  }
}

function refuseHiddenValue({ id, params, input }: ValidTask): void {
  for (const [field, value] of [
    ['params', params],
    ['input', input],
  ] as const) {
    const path = `task ${id}: ${field}`
    refuseHidden(path, value)
    if (!isObject(value)) continue
    refuseHiddenFields(path, value)
    const { execution } = value
    refuseHidden(`${path}.execution`, execution)
    if (isObject(execution)) refuseHiddenFields(`${path}.execution`, execution)
  }
}

function refuseHiddenFields(path: string, fields: Record<string, unknown>): void {
  for (const name of TEXT_FIELDS) refuseHidden(`${path}.${name}`, fields[name])
  refuseHiddenEnv(`${path}.env`, fields.env)
}

function refuseHidden(path: string, value: unknown): void {
  if (value === HIDDEN_VALUE) throw badRequest(hiddenValueText(path))
}

function refuseHiddenEnv(path: string, env: unknown): void {
  const name = nameOfHidden(env)
  if (name !== undefined) throw badRequest(hiddenValueText(name === '' ? path : `${path}.${name}`))
}

const isRuntime = (type: string | null | undefined): boolean =>
  type === RUNTIME || (!!type && normalizeTool(type, undefined).type === RUNTIME)
