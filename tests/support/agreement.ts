/**
 * Checks that control and the runtime service agree about runtime tasks once all of them have ended. Pure.
 *
 * The service that decides an outcome is right about it. The runtime service decides how a program ends, and control
 * passes that on. Control decides a cancel or a timeout and kills the task in the runtime service. There the task is
 * `cancelled`, has ended by itself just before, or has never arrived. An attempt that failed because the runtime
 * service was unreachable, or refused it, never arrived there. Only if control may give up an unreachable runtime
 * service (`isPatient` is false), a failed attempt may exist there.
 */
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { TaskSummary } from '../../shared/contract/runtime.ts'
import type { PlannedTask } from './mixed-graph.ts'

interface BothSides {
  readonly planned: ReadonlyMap<string, PlannedTask>
  /** By task id; those that were deleted are missing. */
  readonly here: ReadonlyMap<string, TaskRecord>
  /** By handle. */
  readonly there: ReadonlyMap<string, TaskSummary>
  readonly isPatient: boolean
  /** An attempt that had no place yet when its control was killed is followed by one more. Default: it always has one. */
  readonly mayBeUnplaced?: boolean
}

/** A sentence for each thing that cannot be. */
export function disagreements(sides: BothSides): string[] {
  const faults: string[] = []
  for (const record of sides.here.values()) {
    const plan = sides.planned.get(record.id)
    if (plan === undefined) faults.push(`${record.id}: nobody submitted it`)
    else for (const fault of faultsOf(record, plan, sides)) faults.push(`${fault} ${inShort(record, sides)}`)
  }
  for (const task of sides.there.values()) {
    const fault = strangerFault(task, sides)
    if (fault !== undefined) faults.push(`${task.task_id}: ${fault}`)
  }
  return faults
}

/** The parts of `<task>-<graph>-<attempt>`. */
export function partsOf(handle: string): { id: string; graphId: string; attempt: number } {
  const first = handle.indexOf('-')
  const last = handle.lastIndexOf('-')
  return { id: handle.slice(0, first), graphId: handle.slice(first + 1, last), attempt: Number(handle.slice(last + 1)) }
}

/** What the runtime service has that control does not know of, or not like that. */
function strangerFault({ task_id }: TaskSummary, { planned, here }: BothSides): string | undefined {
  const { id, graphId, attempt } = partsOf(task_id)
  if (planned.get(id)?.isRuntime !== true) return 'nobody submitted it'
  const record = here.get(id)
  if (record === undefined) return undefined // deleted
  if (record.graph_id !== graphId) return `it is of another graph than ${record.graph_id}`
  if (attempt > (record.attempt ?? 0)) return `control knows of ${record.attempt ?? 0} attempts only`
  return undefined
}

function* faultsOf(record: TaskRecord, plan: PlannedTask, sides: BothSides): Generator<string> {
  const { id, status, attempt: attempts = 0 } = record
  const lost = plan.dependsOn.filter((dependency) => sides.here.get(dependency)?.status !== 'success')
  if (record.started_at !== undefined && lost.some((dependency) => sides.here.has(dependency))) {
    yield `${id} started without ${lost.join()}:`
  }
  if (status === 'skipped' && lost.length === 0) yield `${id} was skipped, but all that it depends on succeeded:`
  if (!plan.isRuntime) return
  for (let attempt = 1; attempt < attempts; attempt++) {
    const fault = earlierFault(plan, handleOf(record, attempt, sides), sides)
    if (fault !== undefined) yield `attempt ${attempt} of ${id} failed, ${fault}:`
  }
  const fault = lastFault(record, plan, handleOf(record, attempts, sides), sides)
  if (fault !== undefined) yield `${id} ${fault}:`
}

const handleOf = ({ id, graph_id }: TaskRecord, attempt: number, { there }: BothSides): TaskSummary | undefined =>
  there.get(`${id}-${graph_id}-${attempt}`)

/** What is wrong about an attempt that failed and was followed by another one. */
function earlierFault(plan: PlannedTask, there: TaskSummary | undefined, sides: BothSides): string | undefined {
  if (there === undefined || (isOwnEnd(there, plan) && there.status !== 'success')) return undefined
  if (mayBeStopped(plan, sides)) return wronglyStopped(there, plan)
  return `but is ${there.status} there`
}

/** Whether control may end an attempt that nobody cancelled. */
const mayBeStopped = ({ timeout }: PlannedTask, { isPatient }: BothSides): boolean =>
  timeout !== undefined || !isPatient

/** What is wrong about an attempt that control has ended, or meant to. */
function wronglyStopped(there: TaskSummary | undefined, plan: PlannedTask): string | undefined {
  if (there === undefined || there.status === 'cancelled' || isOwnEnd(there, plan)) return undefined
  return `but is ${there.status} there (${there.error?.message})`
}

function lastFault(
  record: TaskRecord,
  plan: PlannedTask,
  there: TaskSummary | undefined,
  sides: BothSides,
): string | undefined {
  const { status, attempt = 0, handle_id } = record
  // One that is cancelled between two attempts has none, as none is carried out.
  const isBetween = status === 'cancelled' && handle_id === undefined
  if (there !== undefined && handle_id !== there.task_id && !isBetween)
    return `has the handle ${handle_id}, not ${there.task_id}`
  switch (status) {
    case 'skipped':
      return attempt === 0 ? undefined : 'was skipped, but has started'
    case 'cancelled':
      return wronglyStopped(there, plan)
    case 'success':
      return there?.status === 'success' && isOwnEnd(there, plan) ? resultFault(record, there) : 'did not succeed there'
    case 'failed':
      return isLast(record, plan, sides) ? failureFault(record, plan, there, sides) : 'failed too early or too late'
    default:
      return `is still ${status}`
  }
}

/** Whether no attempt is left. */
function isLast(record: TaskRecord, { retry }: PlannedTask, sides: BothSides): boolean {
  const { attempt: attempts = 0 } = record
  if (sides.mayBeUnplaced !== true) return attempts === retry + 1
  const handles = Array.from({ length: attempts }, (_, i) => handleOf(record, i + 1, sides))
  return attempts > retry && handles.filter((task) => task !== undefined).length <= retry + 1
}

function failureFault(
  record: TaskRecord,
  plan: PlannedTask,
  there: TaskSummary | undefined,
  sides: BothSides,
): string | undefined {
  const { code, message = '', source, details } = record.runtime?.error ?? {}
  const neverThere = there === undefined ? undefined : `failed before it got there, but is ${there.status} there`
  if (source === 'runtime') {
    const isRefused = (details as { status_code?: number } | undefined)?.status_code !== undefined
    if (isRefused) return neverThere
    if (code === 'cancelled' && !sides.isPatient) return wronglyStopped(there, plan)
    if (there?.error?.code !== code || !isOwnEnd(there!, plan)) return `failed with ${code}, but not there`
    return resultFault(record, there!)
  }
  if (code === 'timeout' && plan.timeout !== undefined) return wronglyStopped(there, plan)
  if (code !== 'external_failure') return `failed with ${code}`
  if (message.startsWith('lost touch')) return sides.isPatient ? 'was given up' : wronglyStopped(there, plan)
  return neverThere
}

/** The result is what the runtime service says. */
function resultFault({ result }: TaskRecord, there: TaskSummary): string | undefined {
  const of = ({ task_id, status, exit_code, exit_signal, finished_at }: Partial<TaskSummary>) =>
    JSON.stringify([task_id, status, exit_code, exit_signal, finished_at])
  const told = of((result ?? {}) as Partial<TaskSummary>)
  return told === of(there) ? undefined : `has the result ${told}`
}

/** Whether the task ended there as its program ends. */
function isOwnEnd({ status, exit_code, error }: TaskSummary, { end }: PlannedTask): boolean {
  if (end.kind === 'success') return status === 'success' && exit_code === 0
  return end.kind === 'failed' && status === 'failed' && error?.code === end.code && exit_code === end.exitCode
}

function inShort(record: TaskRecord, sides: BothSides): string {
  const { status, attempt = 0, retry, timeout, error, runtime, placed_on, started_at, attempts: records } = record
  const there = Array.from({ length: attempt }, (_, i) => handleOf(record, i + 1, sides))
  const attempts = there.map((task) => (task === undefined ? 'none' : `${task.status} ${task.error?.code ?? ''}`))
  const { end } = sides.planned.get(record.id)!
  const failure = runtime?.error
  const here = { status, attempt, retry, timeout, error, failure, placed_on, started_at, records }
  return JSON.stringify({ ...here, there: attempts, end })
}
