/**
 * Reviews a graph that passed all checks, before its ids are claimed. Reports unknown fields and parameters, and warns
 * of tasks that are certain to fail. A dry run reports those without which the graph cannot succeed.
 *
 * Only submissions are reviewed. Graphs on disk were accepted earlier and keep their unknown fields.
 */
import {
  MAX_SUBMIT_WARNINGS,
  MAX_WARNING_CHARACTERS,
  type SubmitWarning,
  type TaskInput,
} from '../../shared/contract/submission.ts'
import { inRanges, type Steps } from '../../shared/process/steps.ts'
import { didYouMean, eachUnknownField, quoted } from '../../shared/request/unknown-names.ts'
import { type ExecutableTask, ExecutionError, type ToolParameters } from '../executors/executor.ts'
import { normalizeTool } from '../rules/normalize.ts'
import type { KnownInputs } from '../rules/placeholder-review.ts'
import type { Report } from '../rules/report.ts'
import type { SecretPlace } from '../rules/secret-places.ts'
import type { ValidTask } from '../rules/validate.ts'
import { graphFieldFaults, nearestTaskField, unknownTaskField, unknownTaskFields } from '../task/known-fields.ts'
import type { OperationParts } from './parts.ts'
import { SecretsReview } from './secrets-review.ts'

/** The members of a task that a review reads. */
export type ReviewedTask = Pick<ExecutableTask, 'id' | 'type' | 'toolName' | 'input' | 'secrets'> & {
  /** Null replaces unknown values of placeholders; only the names of parameters are reviewed. */
  readonly isPartial?: boolean
  /** The secrets that it sends. */
  readonly sent?: readonly SecretPlace[] | undefined
}

/** The `tasks` that were submitted as `inputs`, with the known part of inputs that have placeholders. */
export const withKnownInputs = (
  tasks: readonly ReviewedTask[],
  inputs: readonly ValidTask[],
  known: KnownInputs,
): readonly ReviewedTask[] =>
  known.size === 0
    ? tasks
    : tasks.map((task, i) => {
        const { id, type, toolName, secrets } = task
        const { input, isWhole, secrets: sent } = known.get(inputs[i]!) ?? {}
        return isWhole === undefined ? task : { id, type, toolName, input, secrets, isPartial: !isWhole, sent }
      })

/** A submitted task as its executor would see it. */
export function reviewedTask({ id, type, tool_name, params, input, secrets }: ValidTask): ReviewedTask {
  const tool = normalizeTool(type, tool_name ?? undefined)
  return { id, ...tool, input: input ?? params ?? undefined, secrets: secrets ?? undefined }
}

/** A submitted graph. */
interface Submitted {
  /** The object that contains the list of tasks. */
  readonly fields: object
  /** In the order of the graph's tasks. Empty if all are plain (`isPlainTask`), and so without unknown fields. */
  readonly inputs: readonly TaskInput[]
}

/** Reports unknown fields, then the wrong secrets and unknown parameters of each task. Returns the warnings. */
export function* reviewGraph(
  reviewer: OperationParts,
  { fields, inputs }: Submitted,
  tasks: readonly ReviewedTask[],
  report: Report,
  { failures, tenant }: ReviewOptions = {},
): Steps<SubmitWarning[]> {
  if (reviewer.unknownFields === 'refuse') {
    for (const fault of graphFieldFaults(fields)) report(fault)
    yield* inRanges(inputs.length, (from, to) => reportTaskFields(reviewer, inputs, tasks, report, from, to))
  }
  const findings = newFindings(reviewer, report, { failures, tenant })
  yield* inRanges(tasks.length, (from, to) => reviewInputs(reviewer, tasks, findings, from, to))
  return findings.warnings
}

function reportTaskFields(
  { executors }: OperationParts,
  inputs: readonly TaskInput[],
  tasks: readonly ReviewedTask[],
  report: Report,
  from: number,
  to: number,
): void {
  for (let i = from; i < to; i++) {
    if (unknownTaskField(inputs[i]!) === undefined) continue
    const { id, type, toolName } = tasks[i]!
    const parameters = Object.keys(executors.get(type)?.parametersOf?.(toolName)?.schema.properties ?? {})
    for (const name of unknownTaskFields(inputs[i]!)) {
      const nearest = nearestTaskField(name, parameters)
      report(`unknown field ${quoted(name)} in task ${id}${didYouMean(nearest)}`, id)
    }
  }
}

/** What a review does with tasks that are certain to fail, other than to warn of them. */
export interface ReportedFailures {
  /** Ids of the tasks of which it warns all the same (`graph/spare-tasks.ts`). */
  readonly spare: ReadonlySet<string>
  readonly report: Report
}

/** Collects the findings of a review. */
export interface ReviewFindings {
  readonly report: Report
  /** At most `MAX_SUBMIT_WARNINGS`. */
  readonly warnings: SubmitWarning[]
  readonly secrets: SecretsReview
  /** Undefined: all failures are warnings. */
  readonly failures: ReportedFailures | undefined
  /** Whose tasks they are. */
  readonly tenant: string | undefined
}

interface ReviewOptions extends Partial<Pick<ReviewFindings, 'failures' | 'tenant'>> {}

export const newFindings = (
  { executors }: OperationParts,
  report: Report,
  { failures, tenant }: ReviewOptions = {},
): ReviewFindings => ({
  report,
  warnings: [],
  secrets: new SecretsReview(executors, tenant),
  failures,
  tenant,
})

/** Reports wrong secrets and unknown parameters of the tasks `from` to `to`, and adds warnings. */
export function reviewInputs(
  { executors, unknownFields }: OperationParts,
  tasks: readonly ReviewedTask[],
  findings: ReviewFindings,
  from: number,
  to: number,
): void {
  const { report, warnings, failures, tenant } = findings
  let sound: ReviewedTask | undefined // the last task without input in which nothing was found
  for (let i = from; i < to; i++) {
    const { id, type, toolName, input, secrets, isPartial } = tasks[i]!
    const isEmpty = input === undefined && secrets === undefined
    if (isEmpty && type === sound?.type && toolName === sound.toolName) continue
    const executor = executors.get(type)
    if (executor === undefined) continue
    if (hasSecrets(tasks[i]!) && !areSecretsSound(tasks[i]!, findings)) continue
    const isKnown =
      unknownFields === 'ignore' ||
      input === undefined ||
      areKnown(executor.parametersOf?.(toolName), input, id, report)
    const fault = isPartial ? undefined : executor.inputFault?.(toolName, input)
    if (fault !== undefined) {
      report(`task ${id}: params.${fault}`, id)
      continue
    }
    // The executor would tell of unknown parameters once more.
    if (isPartial || !isKnown || executor.checkInput === undefined) continue
    if (failures === undefined && warnings.length === MAX_SUBMIT_WARNINGS) continue
    try {
      executor.checkInput(toolName, input, secrets, tenant)
      if (isEmpty) sound = tasks[i]
    } catch (error) {
      if (!(error instanceof ExecutionError)) throw error
      addFailure(findings, id, error.message)
    }
  }
}

const hasSecrets = ({ secrets, sent }: ReviewedTask): boolean => secrets !== undefined || sent !== undefined

/** Warns of a task that is certain to fail, or reports it. */
export function addFailure(
  { warnings, failures }: Pick<ReviewFindings, 'warnings' | 'failures'>,
  task_id: string,
  text: string,
): void {
  const message = text.slice(0, MAX_WARNING_CHARACTERS)
  if (failures !== undefined && !failures.spare.has(task_id)) failures.report(`task ${task_id}: ${message}`, task_id)
  else if (warnings.length < MAX_SUBMIT_WARNINGS) warnings.push({ task_id, message })
}

/** Reports what is wrong with the secrets of a task, and which of them are missing. False if the task cannot have them. */
function areSecretsSound(task: ReviewedTask, findings: ReviewFindings): boolean {
  const { report, secrets } = findings
  const fault = secrets.faultOf(task)
  if (fault !== undefined) {
    report(fault, task.id)
    return false
  }
  for (const text of secrets.missing(task)) addFailure(findings, task.id, text)
  return true
}

/** Reports unknown parameters. */
function areKnown(parameters: ToolParameters | undefined, input: unknown, id: string, report: Report): boolean {
  let areAll = true
  if (parameters === undefined) return areAll
  eachUnknownField(parameters.schema, input, ({ at, path, nearest }) => {
    areAll = false
    const subject = at === '' ? `parameter ${quoted(path)} of ${parameters.label}` : `field ${quoted(path)}`
    report(`unknown ${subject} in task ${id}${didYouMean(nearest)}`, id)
  })
  return areAll
}
