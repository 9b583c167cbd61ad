/**
 * Adds the tasks that the result of a dynamic task asks for to its graph, as a patch by those whose work the task is: whoever
 * submitted the graph, and all who have changed it. The patch and the end of the task are kept together.
 */
import type { ErrorCode } from '../../shared/contract/error-codes.ts'
import { badRequest, ServiceError } from '../../shared/contract/errors.ts'
import { MAX_PATCH_TASKS } from '../../shared/contract/patch.ts'
import type { TaskInput } from '../../shared/contract/submission.ts'
import type { Caller } from '../../shared/http/callers.ts'
import { runCooperatively } from '../../shared/process/steps.ts'
import { quoted } from '../../shared/request/unknown-names.ts'
import { isObject, jsonTypeOf } from '../../shared/text/json.ts'
import { ADD_TASKS, addedTasks, placedFault } from '../rules/added-tasks.ts'
import type { Failure } from '../rules/failure.ts'
import type { Report } from '../rules/report.ts'
import type { AddTasks } from '../scheduler/attempts.ts'
import type { Graph, Task } from '../task/graph.ts'
import type { TaskStore } from '../task/task-store.ts'
import type { OperationParts } from './parts.ts'
import { afterOthers, ensurePossible, logPatch, type Plan, patchOf, plan } from './patch-graph.ts'
import { toldOf } from './retry.ts'

/** Milliseconds before storage that took no patch is asked again. */
const RETRY_MS = 500

export const taskAdditions =
  (parts: OperationParts): AddTasks =>
  async (task, result, signal, end) => {
    const asked = (await runCooperatively(addedTasks(result))) ?? { tasks: [] }
    if ('fault' in asked) return failure(400, asked.fault)
    try {
      const tasks = listIn(asked.tasks)
      const addition = { task, tasks, signal, end }
      if (tasks.length === 0) end()
      else while (!(await afterOthers(task.graph, () => add(parts, addition)))) await Bun.sleep(RETRY_MS)
      return undefined
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      return failure(error.status, error.message)
    }
  }

interface Addition {
  readonly task: Task
  readonly tasks: readonly TaskInput[]
  readonly signal: AbortSignal
  readonly end: () => void
}

/** False if it has to be tried again, because what keeps the patch takes nothing now. */
async function add(parts: OperationParts, addition: Addition): Promise<boolean> {
  const { scheduler, keeper, quotas, retention, log } = parts
  const { task, tasks, signal, end } = addition
  const { graph } = task
  /** A task without a record, and one of a graph that is cancelled, adds nothing. */
  const isOver = () => {
    if (!signal.aborted && !task.isDeleted && !graph.isCancelled) return false
    if (!signal.aborted) end()
    return true
  }
  if (isOver()) return true
  const planned = await plannedFor(parts, graph, tasks)
  const claim = await claimIds(parts, graph, planned)
  if (claim === undefined) return false
  let isKept = false
  try {
    await toldOf(parts)
    if (isOver()) return true
    ensurePossible(parts, graph, planned)
    if (!isWritable(parts)) return false
    for (const author of authorsOf(parts, graph)) quotas.patch(graph, planned.added, 0, author, false)
    retention.makeRoom(tasks.length)
    const { change, journaled } = patchOf(parts, graph, planned, graph.submittedBy, task.id)
    keeper.keepPatchWith(graph, journaled, planned.definitions, () => scheduler.patchAtEnd(change, end))
    isKept = true
    logPatch(log, change)
    return true
  } finally {
    if (!isKept) claim.free()
  }
}

async function plannedFor(parts: OperationParts, graph: Graph, tasks: readonly TaskInput[]): Promise<Plan> {
  checkNames(parts.store, graph, tasks)
  const refused = refusedIn(graph, tasks)
  const planned = await runCooperatively(plan(parts, graph, graph.edges!, { add: tasks as TaskInput[] }, { refused }))
  ensurePossible(parts, graph, planned)
  return planned
}

/** Undefined while that is not possible. */
async function claimIds(
  { keeper }: OperationParts,
  graph: Graph,
  { added }: Plan,
): Promise<{ readonly free: () => void } | undefined> {
  try {
    return { free: (await keeper.claimIds?.(graph, added)) ?? (() => {}) }
  } catch (error) {
    if (error instanceof ServiceError && error.status === 503) return undefined
    throw error
  }
}

/** Throws the first fault, at its place in the result. The added tasks come last. */
function refusedIn({ submitted }: Graph, tasks: readonly TaskInput[]): Report {
  const first = submitted.filter(({ atEnd }) => atEnd === undefined).length
  const indexes = new Map(tasks.map(({ id }, i) => [id, i]))
  return (message, id) => {
    throw badRequest(placedFault(message, first, id === undefined ? undefined : indexes.get(id)))
  }
}

function listIn(given: unknown): readonly TaskInput[] {
  if (!Array.isArray(given)) throw badRequest(`${ADD_TASKS}: expected array, got ${jsonTypeOf(given)}`)
  if (given.length > MAX_PATCH_TASKS)
    throw new ServiceError(413, `${ADD_TASKS}: ${given.length} tasks, at most ${MAX_PATCH_TASKS} are added at a time`)
  const other = given.findIndex((task) => !isObject(task))
  if (other >= 0) throw badRequest(`${ADD_TASKS}/${other}: expected object, got ${jsonTypeOf(given[other])}`)
  return given
}

/** Throws 400 for an id that is taken, and for a dependency that is no task of the graph. */
function checkNames(store: TaskStore, graph: Graph, tasks: readonly TaskInput[]): void {
  const ids: ReadonlySet<unknown> = new Set(tasks.map(({ id }) => id))
  for (const [i, { id, depends_on }] of tasks.entries()) {
    const at = `${ADD_TASKS}/${i}`
    if (typeof id === 'string' && store.taskIn(graph, id) !== undefined)
      throw badRequest(`${at}/id: the graph has a task ${quoted(id)} already: choose another id`)
    for (const name of Array.isArray(depends_on) ? depends_on : [])
      if (typeof name === 'string' && !ids.has(name) && store.taskIn(graph, name) === undefined)
        throw badRequest(`${at}/depends_on: the graph has no task ${quoted(name)}`)
  }
}

function isWritable({ keeper }: OperationParts): boolean {
  try {
    keeper.assertWritable()
    return true
  } catch {
    return false
  }
}

/** Throws 403 for one whose token is gone, or is of another tenant now. Without names, the additions are held to nothing. */
function authorsOf({ callerNamed }: OperationParts, { submittedBy, tenant, patched }: Graph): Caller[] {
  const names = new Set([...(submittedBy === undefined ? [] : [submittedBy]), ...(patched?.by ?? [])])
  return [...names].map((name) => {
    const caller = callerNamed(name)
    if (caller === undefined)
      throw new ServiceError(403, `${ADD_TASKS}: the token ${name}, whose task this is, is unknown or has expired`)
    if (name === submittedBy && caller.grant.tenant !== tenant)
      throw new ServiceError(403, `${ADD_TASKS}: the token ${name}, whose task this is, has another tenant now`)
    return caller
  })
}

const CODES: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid_input',
  403: 'denied',
  409: 'invalid_input',
  413: 'resource_limit_exceeded',
  429: 'resource_limit_exceeded',
  503: 'resource_limit_exceeded',
}

const failure = (status: number, message: string): Failure => ({
  code: CODES[status] ?? 'internal',
  message: message.startsWith(ADD_TASKS) ? message : `${ADD_TASKS}: ${message}`,
})
