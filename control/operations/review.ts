/**
 * Reviews a graph that passed the seven checks, before its ids are claimed: refuses unknown fields and unknown parameters,
 * and warns of tasks that are certain to fail.
 *
 * Only submissions are reviewed. A graph from disk was accepted before, whatever its fields are.
 */
import {
  MAX_SUBMIT_WARNINGS,
  MAX_WARNING_CHARACTERS,
  type SubmitWarning,
  type TaskInput,
} from '../../shared/contract/control.ts'
import { badRequest } from '../../shared/errors.ts'
import { inRanges, type Steps } from '../../shared/steps.ts'
import { didYouMean, quoted, type UnknownFields, unknownField } from '../../shared/unknown-names.ts'
import { type ExecutableTask, ExecutionError, type ToolParameters } from '../executors/executor.ts'
import type { ExecutorRegistry } from '../executors/registry.ts'
import { graphFieldFault, nearestTaskField, unknownTaskField } from '../graph/known-fields.ts'
import { normalizeTool } from '../graph/normalize.ts'
import type { ValidTask } from '../graph/validate.ts'

export interface Reviewer {
  readonly executors: ExecutorRegistry
  readonly unknownFields: UnknownFields
}

/** The members of a task that a review reads. */
export type ReviewedTask = Pick<ExecutableTask, 'id' | 'type' | 'toolName' | 'input'>

/** A submitted task as its executor would see it. */
export function reviewedTask({ id, type, tool_name, params, input }: ValidTask): ReviewedTask {
  return { id, ...normalizeTool(type, tool_name ?? undefined), input: input ?? params ?? undefined }
}

/** A graph as it was submitted. */
interface Submitted {
  /** The object that contains the list of tasks. */
  readonly fields: object
  /** In the order of the graph's tasks. */
  readonly inputs: readonly TaskInput[]
}

/** Resolves with the warnings. Throws 400 with the first unknown field, then the first unknown parameter. */
export function* reviewGraph(
  reviewer: Reviewer,
  { fields, inputs }: Submitted,
  tasks: readonly ReviewedTask[],
): Steps<SubmitWarning[]> {
  if (reviewer.unknownFields === 'refuse') {
    const fault = graphFieldFault(fields)
    if (fault !== undefined) throw badRequest(fault)
    yield* inRanges(tasks.length, (from, to) => refuseTaskFields(reviewer, inputs, tasks, from, to))
  }
  const warnings: SubmitWarning[] = []
  yield* inRanges(tasks.length, (from, to) => reviewInputs(reviewer, tasks, warnings, from, to))
  return warnings
}

function refuseTaskFields(
  { executors }: Reviewer,
  inputs: readonly TaskInput[],
  tasks: readonly ReviewedTask[],
  from: number,
  to: number,
): void {
  for (let i = from; i < to; i++) {
    const name = unknownTaskField(inputs[i]!)
    if (name === undefined) continue
    const { id, type, toolName } = tasks[i]!
    const parameters = Object.keys(executors.get(type)?.parametersOf?.(toolName)?.schema.properties ?? {})
    throw badRequest(`unknown field ${quoted(name)} in task ${id}${didYouMean(nearestTaskField(name, parameters))}`)
  }
}

/** Refuses unknown parameters of tasks `from` to `to`. Adds to `warnings`, up to `MAX_SUBMIT_WARNINGS`. */
export function reviewInputs(
  { executors, unknownFields }: Reviewer,
  tasks: readonly ReviewedTask[],
  warnings: SubmitWarning[],
  from: number,
  to: number,
): void {
  for (let i = from; i < to; i++) {
    const { id, type, toolName, input } = tasks[i]!
    const executor = executors.get(type)
    if (executor === undefined) continue
    if (unknownFields === 'refuse') refuseParameter(executor.parametersOf?.(toolName), input, id)
    if (executor.checkInput === undefined || warnings.length === MAX_SUBMIT_WARNINGS) continue
    try {
      executor.checkInput(toolName, input)
    } catch (error) {
      if (!(error instanceof ExecutionError)) throw error
      warnings.push({ task_id: id, message: error.message.slice(0, MAX_WARNING_CHARACTERS) })
    }
  }
}

function refuseParameter(parameters: ToolParameters | undefined, input: unknown, id: string): void {
  if (parameters === undefined) return
  const found = unknownField(parameters.schema, input)
  if (found === undefined) return
  const { at, path, nearest } = found
  const subject = at === '' ? `parameter ${quoted(path)} of ${parameters.label}` : `field ${quoted(path)}`
  throw badRequest(`unknown ${subject} in task ${id}${didYouMean(nearest)}`)
}
