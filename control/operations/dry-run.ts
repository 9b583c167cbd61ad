/**
 * Checks a graph as a submission would, without effects: nothing is stored, claimed, evicted or started.
 *
 * A dry run collects all faults. A fault hides others only if they cannot be checked without it: a task with an invalid
 * id is not checked further, and the parameters of a task with another invalid field are not checked.
 */

import { ServiceError } from '../../shared/contract/errors.ts'
import { type GraphDryRun, type GraphFault, MAX_DRY_RUN_ERRORS } from '../../shared/contract/graph-dry-run.ts'
import type { Caller } from '../../shared/http/callers.ts'
import { inRanges, isYieldDue, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { criticalPath } from '../rules/critical-path.ts'
import type { DecodedGraph } from '../rules/decode.ts'
import type { Edges } from '../rules/edges.ts'
import { type GraphOptions, NO_GRAPH_OPTIONS } from '../rules/graph-options.ts'
import { type GroupOrder, groupOrder } from '../rules/group-order.ts'
import { onEndTasks } from '../rules/on-end.ts'
import { dependencyOrder } from '../rules/order.ts'
import { type KnownInputs, NO_PLACEHOLDERS } from '../rules/placeholder-review.ts'
import type { Report } from '../rules/report.ts'
import { type CheckedTasks, hasFields, type ValidTask } from '../rules/validate.ts'
import { wavesOf } from '../rules/waves.ts'
import {
  checkGraph,
  type EncodedGraph,
  type GraphCheckFindings,
  type GraphInput,
  type Reviewable,
} from './graph-checks.ts'
import { idList } from './id-list.ts'
import type { OperationParts } from './parts.ts'
import { planTasks } from './plan-tasks.ts'
import { type ReviewedTask, reviewedTask } from './review.ts'
import { timeLimitsOf } from './time-limits.ts'

/** The body of a request, or the graph as a value. */
export type ExaminedGraph = { readonly body: Uint8Array } | { readonly graph: GraphInput }

export async function dryRun(
  parts: OperationParts,
  examined: ExaminedGraph,
  call: {
    readonly traceId: string
    readonly signal: AbortSignal
    /** Who would submit it. */
    readonly by?: Caller | undefined
    /** Only the faults and warnings: no order of the tasks, no plans. */
    readonly isBrief?: boolean
    /** The graph is for later: the room in its group may be another one then. */
    readonly isForLater?: boolean
  },
): Promise<GraphDryRun> {
  const encoded = { body: NO_BODY, ...examined }
  const faults = new Faults()
  const examining = examine(parts, encoded, faults, call)
  const { tasks, known, options, ...found } = await runCooperatively(examining)
  const fault = call.isForLater ? undefined : await parts.scheduler.groups.whyRefused(options, call.by?.grant.tenant)
  if (fault !== undefined) faults.report(fault)
  const plans = await planTasks(parts.executors, { tasks, known }, call)
  const limits = await runCooperatively(timeLimitsOf(tasks))
  return {
    valid: faults.list.length === 0,
    errors: faults.list,
    ...found,
    runtime: plans.byTask,
    ...(limits.byTask && { time_limits: limits.byTask }),
    ...((faults.isTruncated || plans.isTruncated || limits.isTruncated) && { truncated: true as const }),
  }
}

const NO_BODY = new Uint8Array()

/** The faults of a graph, in the order of their reports. */
class Faults {
  readonly list: GraphFault[] = []
  isTruncated = false
  /** A set, because a task may name an unknown dependency twice. */
  readonly #reported = new Set<string>()

  readonly report: Report = (message, taskId) => this.#add(message, taskId)

  /** As `report`, for a task that a submission accepts. */
  readonly reportFailure: Report = (message, taskId) => this.#add(message, taskId, { fails: true })

  #add(message: string, taskId: string | undefined, more: Pick<GraphFault, 'fails'> = {}): void {
    if (taskId !== undefined && this.#reported.has(message)) return
    if (this.list.length === MAX_DRY_RUN_ERRORS) {
      this.isTruncated = true
      return
    }
    this.#reported.add(message)
    this.list.push({ message, ...(taskId !== undefined && { task_id: taskId }), ...more })
  }
}

interface Examined extends Pick<GraphDryRun, 'warnings' | 'waves' | 'critical_path'> {
  /** The tasks whose fields are all valid. */
  readonly tasks: readonly ValidTask[]
  readonly known: KnownInputs
  readonly options: GraphOptions
}

const NOTHING: Examined = {
  options: NO_GRAPH_OPTIONS,
  tasks: [],
  known: NO_PLACEHOLDERS,
  warnings: [],
  waves: [],
  critical_path: [],
}

function* examine(
  parts: OperationParts,
  encoded: EncodedGraph,
  { report, reportFailure }: Faults,
  { by, isBrief = false }: { readonly by?: Caller | undefined; readonly isBrief?: boolean },
): Steps<Examined> {
  try {
    const found = yield* checkGraph(parts, encoded, {
      ...{ report, reportFailure, tenant: by?.grant.tenant },
      *toReview({ incomplete }, { tasks }) {
        const reviewable: { inputs: ValidTask[]; tasks: ReviewedTask[] } = { inputs: [], tasks: [] }
        yield* inRanges(tasks.length, (from, to) => {
          for (const task of tasks.slice(from, to)) {
            if (!hasFields(task) || incomplete.has(task)) continue
            reviewable.inputs.push(task)
            reviewable.tasks.push(reviewedTask(task))
          }
        })
        return reviewable
      },
    })
    const { decoded, checked, reviewed, members, known, warnings } = found
    yield* checkClaim(parts, decoded, checked, { report, tenant: by?.grant.tenant })
    const tasks = [...reviewed.inputs, ...members]
    yield* inRanges(by === undefined ? 0 : tasks.length, (from, to) => {
      for (const task of tasks.slice(from, to)) {
        const fault = parts.quotas.tenantFault(reviewedTask(task), by)
        if (fault !== undefined) report(fault, task.id)
      }
    })
    return {
      tasks: isBrief ? [] : tasks,
      known,
      options: decoded.options,
      warnings,
      ...(isBrief ? NO_ORDER : yield* orderOfGraph(found)),
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    report(error.message) // the body is not a graph, or has too many tasks: nothing else can be checked
    return NOTHING
  }
}

/** The checks against the state of the service. */
function* checkClaim(
  parts: OperationParts,
  { options }: DecodedGraph,
  { tasks }: CheckedTasks,
  { report, tenant }: { readonly report: Report; readonly tenant: string | undefined },
): Steps<void> {
  const { store, callbacks } = parts
  if (options.scope !== 'graph') {
    yield* inRanges(tasks.length, (from, to) => {
      for (let i = from; i < to; i++) {
        const { id } = tasks[i]!
        const fault = store.whyTaken(id)
        if (fault !== undefined) report(fault, id)
      }
    })
  }
  if (options.callback !== undefined) callbacks.check(options.callback, report, { tenant })
}

export type OrderOfTasks = Pick<GraphDryRun, 'waves' | 'critical_path'>

/** The order of a task of `on_end` among the others: it runs after all of them. */
const OUTSIDE: GroupOrder = { waves: [], path: [] }

const NO_ORDER: OrderOfTasks = { waves: [], critical_path: [] }

/** The order of the tasks of a graph that was checked, those of `on_end` last. Empty if ids or dependencies have a fault. */
export function* orderOfGraph<R extends Reviewable>({
  decoded: { options },
  checked: { tasks, edges },
  groups,
}: GraphCheckFindings<R>): Steps<OrderOfTasks> {
  if (edges === undefined) return NO_ORDER
  const inside = new Map([...groups].map((group) => [group, groupOrder(group, options.params)]))
  const atEnd = onEndTasks(options).map(({ id }) => id!)
  for (const task of atEnd.length === 0 ? [] : tasks) if (atEnd.includes(task.id)) inside.set(task, OUTSIDE)
  const { waves, ...order } = yield* orderOf(tasks, edges, inside)
  return { ...order, waves: atEnd.length > 0 ? [...waves, atEnd] : waves }
}

/** `inside`: what runs in place of the groups. */
function* orderOf(
  tasks: readonly ValidTask[],
  edges: Edges,
  inside: ReadonlyMap<ValidTask, GroupOrder | undefined>,
): Steps<OrderOfTasks> {
  const idAt = (position: number) => tasks[position]!.id
  const insideOf = (position: number) => inside.get(tasks[position]!)
  const order = yield* dependencyOrder(edges)
  const waves = yield* wavesOf(edges, order, idAt, (position) => insideOf(position)?.waves)
  const { positions } = yield* criticalPath(edges, order, (position) => insideOf(position)?.path.length ?? 1)
  return { waves, critical_path: positions.flatMap((position) => insideOf(position)?.path ?? [idAt(position)]) }
}

/** Encodes `found` as JSON. In steps, because a graph may have a million tasks. */
export function* dryRunJson<F extends OrderOfTasks>({ waves, critical_path, ...found }: F): Steps<string> {
  const texts: string[] = []
  for (let i = 0; i < waves.length; i++) {
    texts.push(yield* idList(waves[i]!, (id) => id))
    if (isYieldDue(i)) yield
  }
  const path = yield* idList(critical_path, (id) => id)
  return `${JSON.stringify(found).slice(0, -1)},"waves":[${texts.join()}],"critical_path":${path}}`
}
