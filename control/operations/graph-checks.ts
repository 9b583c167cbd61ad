/**
 * Checks a submitted graph before its ids are claimed. Submissions and dry runs make the same checks in the same order,
 * and differ in the handling of faults (`rules/report.ts`).
 */
import type { GraphFields, SubmitWarning, TaskInput } from '../../shared/contract/submission.ts'
import { inRanges, type Steps } from '../../shared/process/steps.ts'
import { ChildInputs } from '../rules/child-inputs.ts'
import { checkGraphShape, type DecodedGraph, decodeGraph } from '../rules/decode.ts'
import { type FanOutTasks, knownList, reviewFanOuts } from '../rules/fan-out-review.ts'
import { reviewGroups, withoutGroups } from '../rules/group-review.ts'
import { reportHiddenValues } from '../rules/hidden-env.ts'
import { reviewOnEnd } from '../rules/on-end.ts'
import { type KnownInputs, NO_PLACEHOLDERS, reviewPlaceholders } from '../rules/placeholder-review.ts'
import { mentionsPlaceholderInSteps } from '../rules/placeholders.ts'
import type { Report } from '../rules/report.ts'
import { spareTasks } from '../rules/spare-tasks.ts'
import { type CheckedTasks, checkTasks, type ValidTask } from '../rules/validate.ts'
import { tooLongText } from '../scheduler/fan-out-list.ts'
import type { OperationParts } from './parts.ts'
import { addFailure, type ReviewedTask, reviewedTask, reviewGraph, withKnownInputs } from './review.ts'

/** A graph as the body of POST /tasks. The journal stores this body. */
export interface EncodedGraph {
  readonly body: Uint8Array
  /** The graph in `body` as a value, if the caller has it. Then the body is not decoded. */
  readonly graph?: GraphInput
}

/** A graph as a value. */
export type GraphInput = { readonly [F in keyof GraphFields]: GraphFields[F] | undefined } & {
  readonly tasks: readonly TaskInput[]
}

/** The tasks of a graph as submitted, and as their executors see them, in the same order. */
export interface Reviewable {
  readonly inputs: readonly ValidTask[]
  readonly tasks: readonly ReviewedTask[]
}

export interface Checking<R extends Reviewable> {
  readonly report: Report
  /** Gets the tasks that are certain to fail, and the graph with them. Default: warnings tell of them. */
  readonly reportFailure?: Report
  /** Whose graph it is. */
  readonly tenant?: string | undefined
  /** The tasks to review. Called after the structure of the graph was checked. */
  toReview(decoded: DecodedGraph, checked: CheckedTasks, known: KnownInputs): Steps<R>
}

export interface GraphCheckFindings<R extends Reviewable> {
  readonly decoded: DecodedGraph
  readonly checked: CheckedTasks
  readonly reviewed: R
  /** The members of groups, under ids within the graph. */
  readonly members: readonly ValidTask[]
  /** The groups that have these members. */
  readonly groups: ReadonlySet<ValidTask>
  readonly known: KnownInputs
  readonly fanOuts: FanOutTasks
  readonly warnings: readonly SubmitWarning[]
}

/** Throws `ServiceError` 400 if the body is not a graph, 413 if it has too many tasks. Reports other faults. */
export function* checkGraph<R extends Reviewable>(
  parts: OperationParts,
  { body, graph }: EncodedGraph,
  { report, reportFailure, tenant, toReview }: Checking<R>,
): Steps<GraphCheckFindings<R>> {
  const checkSize = (count: number) => parts.retention.checkSize(count)
  const decoded = yield* graph === undefined
    ? decodeGraph(body, checkSize, report)
    : checkGraphShape(graph, checkSize, report)
  const checked = yield* checkTasks(decoded, parts.executors.types, report)
  yield* reviewOnEnd(decoded.options, checked.tasks, report)
  // Of a plain task, nothing is left to check but what its executor says.
  const { arePlain } = decoded
  const whole = arePlain ? withoutGroups(checked) : yield* reviewGroups(checked, parts.executors.types, report)
  const others = arePlain ? [] : whole.tasks
  yield* inRanges(others.length, (from, to) => reportHiddenValues(others, report, from, to))
  const { params } = decoded.options
  const isValue = graph !== undefined
  const fanOuts = yield* reviewFanOuts(arePlain ? [] : checked.tasks, params, report)
  const mayHavePlaceholders =
    params !== undefined || (others.length > 0 && (isValue || (yield* mentionsPlaceholderInSteps(body))))
  const known = mayHavePlaceholders
    ? yield* reviewPlaceholders(whole, decoded.options, fanOuts, report)
    : NO_PLACEHOLDERS
  const reviewed = yield* toReview(decoded, checked, known)
  const members = whole.tasks.slice(checked.tasks.length)
  const all = members.length === 0 ? reviewed : withMembers(reviewed, members)
  const submitted = { fields: decoded.fields, inputs: arePlain ? [] : all.inputs }
  const tasks = withKnownInputs(all.tasks, all.inputs, known)
  const failures = reportFailure && { spare: yield* spareTasks(whole, params), report: reportFailure }
  const warnings = yield* reviewGraph(parts, submitted, tasks, report, { failures, tenant })
  for (const { task_id, message } of yield* failingFanOuts(fanOuts, params, parts))
    addFailure({ warnings, failures }, task_id, message)
  const groups = new Set(whole.groups.values())
  return { decoded, checked, reviewed, members, groups, known, fanOuts, warnings }
}

const withMembers = ({ inputs, tasks }: Reviewable, members: readonly ValidTask[]): Reviewable => ({
  inputs: [...inputs, ...members],
  tasks: [...tasks, ...members.map(reviewedTask)],
})

/** The error of each task whose list is known to be too long, or whose children are known to get more than a graph may store. */
function* failingFanOuts(
  fanOuts: FanOutTasks,
  params: DecodedGraph['options']['params'],
  { maxFanOut, maxGraphResultBytes }: OperationParts,
): Steps<SubmitWarning[]> {
  const errors: SubmitWarning[] = []
  const inputs = new ChildInputs(params)
  for (const task of fanOuts.values()) {
    const list = knownList(task, params)
    if (list === undefined) continue
    const { length } = list
    const width = task.tasks?.length ?? 1
    if (length * width > maxFanOut) {
      errors.push({ task_id: task.id, message: `for_each: ${tooLongText(length, width, maxFanOut)}` })
      continue
    }
    let bytes = 0
    for (const member of task.tasks ?? [task]) bytes += yield* inputs.bytes(member, list)
    if (bytes <= maxGraphResultBytes) continue
    const message =
      `for_each: the inputs of its ${length * width} children have at least ${bytes} bytes together, but a graph may store ` +
      `${maxGraphResultBytes} bytes of results and inputs (--max-graph-result-bytes): what does not fit fails`
    errors.push({ task_id: task.id, message })
  }
  return errors
}
