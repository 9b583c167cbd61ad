/**
 * Reviews the placeholders and conditions of a submitted graph: whether they are well formed, and whether the
 * parameters and tasks that they name exist. Pure.
 *
 * Values of parameters and literals are known at submission, values of other tasks are not. The review also returns the
 * known part of each input, for the checks of the executors.
 */
import { MAX_SECRETS } from '../../shared/contract/secrets.ts'
import { inRanges, isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { checkReferences, type TaskReference } from './ancestors.ts'
import { childHint, type FanOutTasks } from './fan-out-review.ts'
import { listSource } from './fan-out-rule.ts'
import type { GraphOptions } from './graph-options.ts'
import type { ReviewedMembers } from './group-review.ts'
import { isGroup } from './group-rule.ts'
import { normalizeTool } from './normalize.ts'
import { atEndOf } from './on-end.ts'
import { missingParameters, type Parameters, parameterBytes, UnknownParameters } from './parameters.ts'
import { elementOf, fill, findPlaceholders, isFileReference, type Path, type Place, pathText } from './placeholders.ts'
import type { Report } from './report.ts'
import { ResolvedSize } from './resolved-size.ts'
import { type SecretPlace, secretPlaceFault, secretPlacesOf } from './secret-places.ts'
import { placeholderFault } from './task-secrets.ts'
import type { ValidTask } from './validate.ts'
import { operandFault, whenIn } from './when.ts'

/** The input of a task with all values known at submission. */
export interface KnownInput {
  readonly input: unknown
  /** False if null replaces values of other tasks. */
  readonly isWhole: boolean
  /** Whether its `inputs` name files of tasks that have not run yet. */
  readonly hasFiles?: boolean
  /** The secrets that the task sends. */
  readonly secrets?: readonly SecretPlace[]
}

/** The submitted tasks whose input has placeholders. */
export type KnownInputs = ReadonlyMap<ValidTask, KnownInput>

export const NO_PLACEHOLDERS: KnownInputs = new Map()

/** Reports parameters without a value, then the placeholders of each task, then references to the wrong tasks. */
export function* reviewPlaceholders(
  { tasks, edges, groups, nameFor, hintFor }: ReviewedMembers,
  options: Pick<GraphOptions, 'params' | 'on_end'>,
  fanOuts: FanOutTasks,
  report: Report,
): Steps<KnownInputs> {
  const { params = {} } = options
  const inputs = new Map<ValidTask, KnownInput>()
  const references: TaskReference[] = []
  const files: FilePlace[] = []
  const unknownParameters = new UnknownParameters(params)
  for (const missing of missingParameters(params)) report(missing)
  for (let position = 0; position < tasks.length; position++) {
    const task = tasks[position]!
    const { id } = task
    for (const field of ['params', 'input'] as const) {
      if (typeof task[field] !== 'object' || task[field] === null) continue
      const { places, faults } = yield* findPlaceholders(task[field])
      for (const { path, text } of faults) {
        report(`task ${id}: ${pathText(field, path)}: ${text}`, id)
        yield
      }
      const tool = normalizeTool(task.type ?? '', task.tool_name ?? undefined)
      const secrets = secretPlacesOf(tool, places)
      if (secrets.length > MAX_SECRETS)
        report(`task ${id}: ${field} has ${secrets.length} $secret (a task has at most ${MAX_SECRETS})`, id)
      for (const { path, placeholder } of places) {
        const misplaced =
          placeholder.kind === 'secret' ? secretPlaceFault(tool, path) : placeholderFault(tool.type, path)
        if (misplaced !== undefined) {
          report(`task ${id}: ${pathText(field, path)}: ${misplaced}`, id)
          yield
        }
        if (placeholder.kind === 'reference') references.push({ position, id: nameFor(task, placeholder.reference.id) })
        if (isFileReference(placeholder)) files.push({ position, field, place: { path, placeholder } })
        const element = elementOf(placeholder)
        if (element !== undefined && (groups.get(task) ?? task).for_each == null) {
          const at = element === placeholder ? path : [...path, 'file']
          report(
            `task ${id}: ${pathText(field, at)}: $${element.kind} means something only in a task with for_each`,
            id,
          )
          yield
        }
        if (placeholder.kind === 'graph' && atEndOf(id, options) === undefined) {
          report(`task ${id}: ${pathText(field, path)}: $graph means something only in on_end`, id)
          yield
        }
        if (placeholder.kind !== 'parameter') continue
        const unknown = unknownParameters.textOf(placeholder.name)
        if (unknown === undefined) continue
        report(`task ${id} ${unknown}`, id)
        yield
      }
      if (places.length > 0 && field === executedField(task)) {
        const onTooLarge = (path: Path, text: string) => report(`task ${id}: ${pathText(field, path)}: ${text}`, id)
        const isFanOut = (other: string) => fanOuts.has(nameFor(task, other))
        const known = yield* knownInput(task[field], places, { params, isFanOut, onTooLarge })
        inputs.set(task, secrets.length === 0 ? known : { ...known, secrets })
      }
    }
    if (task.when != null) {
      const when = whenIn(task.when)
      const fault = typeof when === 'string' ? when : yield* operandFault(when)
      if (fault !== undefined) report(`task ${id}: ${fault}`, id)
      else if (typeof when !== 'string') references.push({ position, id: nameFor(task, when.reference.id) })
    }
    const list = task.for_each == null ? undefined : listSource(task.for_each)
    if (typeof list === 'object' && list.kind === 'reference') references.push({ position, id: list.reference.id })
    if (isYieldDue(position)) yield
  }
  yield* checkFiles(tasks, files, nameFor, report)
  const hint = (id: string) => childHint(id, fanOuts) || hintFor(id)
  const isAtEnd = (id: string) => atEndOf(id, options) !== undefined
  const runsAfter = (id: string, other: string) => isAtEnd(id) && !isAtEnd(other)
  yield* checkReferences({ tasks, edges }, references, report, { hint, runsAfter })
  return inputs
}

/** A file reference of a submitted task. */
interface FilePlace {
  readonly position: number
  readonly field: string
  readonly place: Place
}

const categoryOf = ({ type, tool_name }: ValidTask): string => normalizeTool(type ?? '', tool_name ?? undefined).type

/** Reports files for tasks, and of tasks, that have none. Unknown tasks are reported as those of other references. */
function* checkFiles(
  tasks: readonly ValidTask[],
  files: readonly FilePlace[],
  nameFor: ReviewedMembers['nameFor'],
  report: Report,
): Steps<void> {
  if (files.length === 0) return
  const byId = new Map<string, ValidTask>()
  yield* inRanges(tasks.length, (from, to) => {
    for (let i = from; i < to; i++) byId.set(tasks[i]!.id, tasks[i]!)
  })
  yield* inRanges(files.length, (from, to) => {
    for (let i = from; i < to; i++) {
      const { position, field, place } = files[i]!
      const task = tasks[position]!
      const { path, placeholder } = place
      if (categoryOf(task) !== 'runtime') {
        report(`task ${task.id}: ${pathText(field, path)}: only runtime tasks have inputs`, task.id)
      }
      const source = placeholder.kind === 'reference' ? byId.get(nameFor(task, placeholder.reference.id)) : undefined
      if (source !== undefined && isGroup(source))
        report(`task ${task.id} takes files of the group ${source.id}: take them in a task of that group`, task.id)
      else if (source !== undefined && categoryOf(source) !== 'runtime')
        report(`task ${task.id} takes files of ${source.id}, which is no runtime task`, task.id)
    }
  })
}

/** The field that the executor of a task gets. */
const executedField = ({ input }: ValidTask): 'params' | 'input' => (input == null ? 'params' : 'input')

/** Stands for the id that a task will have in the runtime service, and for the path of a file that an element names. */
const NOT_RUN_YET = 'not-run-yet'

/** `onTooLarge` gets the place at which the values exceed the limit. Values from there on are left out. */
function* knownInput(
  input: unknown,
  places: readonly Place[],
  {
    params,
    isFanOut,
    onTooLarge,
  }: {
    readonly params: Parameters
    /** Whether the task that the input names has children. */
    readonly isFanOut: (id: string) => boolean
    readonly onTooLarge: (path: Path, text: string) => void
  },
): Steps<KnownInput> {
  const values: unknown[] = places.map(() => null)
  const size = new ResolvedSize()
  let isWhole = true
  let hasFiles = false
  for (let i = 0; i < places.length; i++) {
    if (isYieldDue(i)) yield
    const { path, placeholder } = places[i]!
    if (placeholder.kind === 'literal') {
      values[i] = placeholder.value
    } else if (placeholder.kind === 'parameter' && Object.hasOwn(params, placeholder.name)) {
      const fault = size.add(yield* parameterBytes(params, placeholder.name))
      if (fault !== undefined) {
        onTooLarge(path, fault)
        return { input: yield* fill(input, places, values), isWhole: false }
      }
      values[i] = params[placeholder.name]
    } else if (placeholder.kind === 'reference' && placeholder.reference.file !== undefined) {
      const { id, file } = placeholder.reference
      const value = { task_id: NOT_RUN_YET, file: typeof file === 'string' ? file : NOT_RUN_YET }
      values[i] = isFanOut(id) ? [value] : value
      hasFiles = true
    } else {
      isWhole = false
    }
  }
  return { input: yield* fill(input, places, values), isWhole, ...(hasFiles && { hasFiles }) }
}
