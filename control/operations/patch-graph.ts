/**
 * Changes which tasks a live graph has: new ones come, and those that have not started go or are replaced. Whoever patches
 * submits work, and is held to what a submission of his may do.
 *
 * The graph as it will be is checked in steps, as a submission is. All of the patch happens in one turn of the event loop, and
 * one frame of the log has it: nobody sees a part. Patches of one graph come one after the other. With a database, new tasks have
 * their ids before: another replica may have them.
 */
import { badRequest, ServiceError } from '../../shared/contract/errors.ts'
import { PatchRequest, type PatchResponse } from '../../shared/contract/patch.ts'
import type { SubmitWarning, TaskInput } from '../../shared/contract/submission.ts'
import { type Caller, hasRight, lacking } from '../../shared/http/callers.ts'
import type { Log } from '../../shared/logs/log.ts'
import { inRanges, isYieldDue, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { isObject, jsonTypeOf } from '../../shared/text/json.ts'
import { decodeJson, invalidJson } from '../json/body.ts'
import { refuseUnknownFields, refuseWrongForm } from '../json/request-fields.ts'
import { patchDetail } from '../log/event-rows.ts'
import type { SentKey } from '../log/idempotency.ts'
import { encodePatchedTasks, type PatchToKeep } from '../log/journaled-patch.ts'
import type { Edges } from '../rules/edges.ts'
import { memberId } from '../rules/group-rule.ts'
import { type Patch, patched, reachedFrom } from '../rules/patch.ts'
import { hasPlaceholder, hasPlaceholderName } from '../rules/placeholders.ts'
import { type Report, refuse } from '../rules/report.ts'
import type { ValidTask } from '../rules/validate.ts'
import { isApproval } from '../task/approval.ts'
import type { Change } from '../task/change.ts'
import { type Graph, type PatchedTasks, Task } from '../task/graph.ts'
import { patchedAgain } from '../task/graph-patches.ts'
import { taskInput } from '../task/rerun.ts'
import { type Approval, whyNotAllowed } from './answer-approval.ts'
import { dryRunJson, type OrderOfTasks, orderOfGraph } from './dry-run.ts'
import { checkGraph } from './graph-checks.ts'
import { knownGraph } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'
import { changedText, revisionOf, toldOf } from './retry.ts'
import { type ReviewedTask, reviewedTask } from './review.ts'

interface PatchCall {
  /** The idempotency key of the caller. */
  readonly key: string | null
  readonly by: Caller | undefined
  /** Nothing changes: the answer says what the patch would make of the graph. The key does not count. */
  readonly isDryRun?: boolean
}

interface SentPatch extends Omit<PatchCall, 'key'> {
  readonly sent?: SentKey | undefined
}

/**
 * Returns a `PatchResponse` as JSON once the patch is on disk. `body` is a `PatchRequest`. Throws 404, 400 for what a
 * submission is refused for, 403 for a graph of others, and 409 if the graph has ended or another revision, or a task that is
 * named has started.
 */
export async function patchGraph(
  parts: OperationParts,
  id: string,
  body: Uint8Array,
  { key, by, isDryRun = false }: PatchCall,
): Promise<string> {
  const request = await runCooperatively(decodeRequest(parts, body))
  const graph = knownGraph(parts.store, id)
  if (isDryRun) return afterOthers(graph, () => patch(parts, id, request, { by, isDryRun }))
  if (key !== null) await parts.keeper.kept('promise') // a first request with the key may have got 503
  return parts.keeper.keys.once({ scope: `patch ${id}`, key, body }, (sent) =>
    afterOthers(graph, () => patch(parts, id, request, { sent, by })),
  )
}

/** The last patch of each graph. */
const last = new WeakMap<Graph, Promise<unknown>>()

/** Changes of one graph come one after the other: `act` begins once the ones before it are over. */
export function afterOthers<T>(graph: Graph, act: () => Promise<T>): Promise<T> {
  const next = (last.get(graph) ?? Promise.resolve()).then(act, act)
  last.set(graph, next)
  return next
}

const FIELDS = Object.keys(PatchRequest.properties)
const ARRAYS = { add: true, remove: true, replace: true, change: {} } as const

function* decodeRequest({ unknownFields }: OperationParts, body: Uint8Array): Steps<PatchRequest> {
  const given = yield* decodeJson(body, ARRAYS)
  if (!isObject(given)) throw invalidJson(`expected object, got ${jsonTypeOf(given)}`)
  refuseWrongForm(given, PatchRequest)
  refuseUnknownFields(given, { names: FIELDS }, unknownFields)
  const { add = [], remove = [], replace = [], change = {} } = given as PatchRequest
  if (add.length + remove.length + replace.length + Object.keys(change).length === 0)
    throw badRequest('the patch changes nothing: name tasks in add, remove, replace or change')
  return given as PatchRequest
}

async function patch(
  parts: OperationParts,
  id: string,
  request: PatchRequest,
  { sent, by, isDryRun = false }: SentPatch,
): Promise<string> {
  const { store, keeper } = parts
  ensureMayPatch(knownGraph(store, id), by)
  const graph = liveGraph(parts, id, request.revision)
  const revision = revisionOf(graph)
  const planned = await runCooperatively(plan(parts, graph, graph.edges!, request, { by, isDryRun, refused: refuse }))
  ensurePossible(parts, graph, planned)
  const replaced = new Set(planned.replaced)
  const newTasks = planned.added.filter((task) => !replaced.has(task.id))
  const freeIds = isDryRun ? undefined : await keeper.claimIds?.(graph, newTasks)
  let answer: string
  try {
    await toldOf(parts)
    if (liveGraph(parts, id, revision) !== graph) throw new ServiceError(409, changedText(graph))
    ensurePossible(parts, graph, planned)
    answer = await change(parts, graph, planned, { sent, by, isDryRun })
  } catch (error) {
    freeIds?.()
    throw error
  }
  if (!isDryRun) await keeper.kept('promise')
  return answer
}

/** Changes `graph` in this turn of the event loop. Returns the answer. Throws 503, and 403 or 429 for a quota; then nothing changes. */
function change(
  parts: OperationParts,
  graph: Graph,
  planned: Plan,
  { sent, by, isDryRun = false }: SentPatch,
): string | Promise<string> {
  const { scheduler, keeper, quotas, retention, readiness, log } = parts
  const { warnings, order, added, removed } = planned
  if (!isDryRun) readiness.ensure()
  quotas.patch(graph, added, removed.length, by, isDryRun)
  const more = added.length - removed.length
  if (!isDryRun && more > 0) retention.makeRoom(more)
  const { change: next, journaled } = patchOf(parts, graph, planned, by?.grant.name)
  const found = answerOf(graph, next, warnings)
  if (order !== undefined) return runCooperatively(dryRunJson({ ...found, ...order }))
  const answer = JSON.stringify(found)
  const idempotency = sent && { ...sent, answer, at: next.at }
  keeper.keepPatch(graph, { ...journaled, ...(idempotency && { idempotency }) }, planned.definitions)
  scheduler.patch(next)
  logPatch(log, next)
  return answer
}

type PatchChange = Extract<Change, { readonly kind: 'graph-patched' }>

/** What memory and the log get of a planned patch, in one turn of the event loop. `addedBy` is the id of a dynamic task. */
export function patchOf(
  { store }: OperationParts,
  graph: Graph,
  { definitions: _, warnings: __, order: ___, ...planned }: Plan,
  by: string | undefined,
  addedBy?: string,
): { readonly change: PatchChange; readonly journaled: PatchToKeep } {
  const common = { patched: patchedAgain(graph.patched, by), at: Date.now(), by, task_id: addedBy }
  const { removed, replaced } = planned
  return {
    change: { kind: 'graph-patched', graph, before: graph.tasks, ...planned, ...common },
    journaled: { ...common, seq: store.seq + 1, remove: removed.map((task) => task.id), replaced },
  }
}

export function logPatch(log: Log, { graph, patched: { revision }, added, removed, by, task_id }: PatchChange): void {
  log.info('graph changed', {
    ...{ trace_id: graph.traceId, graph_id: graph.id, revision, added: added.length, removed: removed.length },
    ...(task_id !== undefined && { task_id }),
    ...(by !== undefined && { by }),
  })
}

function answerOf(
  { id }: Graph,
  change: Parameters<typeof patchDetail>[0],
  warnings: readonly SubmitWarning[],
): PatchResponse {
  const { by: _, ...detail } = patchDetail(change)
  return { graph_id: id, ...detail, ...(warnings.length > 0 && { warnings }) }
}

/** Throws 403 for a token that may submit only for itself, and asks for a graph of others. */
function ensureMayPatch({ submittedBy }: Graph, by: Caller | undefined): void {
  if (by !== undefined && submittedBy !== by.grant.name && !hasRight(by, 'cancel')) throw lacking(by, 'cancel')
}

/** Throws 404, and 409 for a graph that cannot change, or has another `revision`. */
function liveGraph({ store }: OperationParts, id: string, revision: number | undefined): Graph {
  const graph = knownGraph(store, id)
  const again = `run it again (POST /graphs/${id}/rerun), or retry what failed (POST /graphs/${id}/retry)`
  if (graph.endedAt !== undefined) throw new ServiceError(409, `graph ${id} has ended: ${again}`)
  if (graph.isAtEnd)
    throw new ServiceError(409, `graph ${id} only does what it does at its end: wait for that, then ${again}`)
  if (graph.isCancelled) throw new ServiceError(409, `graph ${id} is cancelled: once it has ended, ${again}`)
  if (revision !== undefined && revision !== revisionOf(graph)) throw new ServiceError(409, changedText(graph))
  return graph
}

export interface Plan extends PatchedTasks {
  readonly replaced: readonly string[]
  /** The new definitions as JSON. */
  readonly definitions: string
  readonly warnings: readonly SubmitWarning[]
  /** For a dry run. */
  readonly order: OrderOfTasks | undefined
}

interface PlanOptions {
  /** Who must not change what approvals of others decide about. */
  readonly by?: Caller | undefined
  readonly isDryRun?: boolean
  /** Gets the first fault, and throws it. */
  readonly refused: Report
}

/** Checks the graph as the patch will make it, as a submission is checked. */
export function* plan(
  parts: OperationParts,
  graph: Graph,
  edgesNow: Edges,
  request: PatchRequest,
  { by, isDryRun = false, refused }: PlanOptions,
): Steps<Plan> {
  const known = new Map<string, Task>()
  const inputs: TaskInput[] = []
  const settled = new Set<string>()
  const { submitted } = graph
  yield* inRanges(submitted.length, (from, to) => {
    for (const task of submitted.slice(from, to)) {
      known.set(task.id, task)
      if (task.isTerminal || task.isDeleted) settled.add(task.id)
      if (task.atEnd === undefined) inputs.push(taskInput(task))
    }
  })
  let fixed: string | undefined
  const found = patched<TaskInput>(inputs, request as Patch<TaskInput>, (id) => {
    fixed = whyFixed(parts, known.get(id)!)
    return fixed
  })
  if ('fault' in found) throw fixed === undefined ? badRequest(found.fault) : new ServiceError(409, found.fault)
  const { removed, replaced } = found
  for (const { id } of found.added) if (known.has(id!)) throw alreadyThere(id!)
  const gone = [...removed, ...replaced.keys()].map((id) => known.get(id)!)
  if (by !== undefined) yield* ensureMayChange(submitted, edgesNow, gone, by)
  const report: Report = (message, id) => {
    if (id === undefined || !settled.has(id)) refused(message, id)
  }
  const checked = yield* checkGraph(
    parts,
    { body: NO_BODY, graph: { ...graph.options, tasks: found.tasks } },
    {
      ...{ report, tenant: graph.tenant },
      *toReview(_, { tasks }) {
        const reviewed: ReviewedTask[] = []
        yield* inRanges(tasks.length, (from, to) => {
          for (const task of tasks.slice(from, to)) reviewed.push(reviewedTask(task))
        })
        return { inputs: tasks, tasks: reviewed }
      },
    },
  )
  const all = checked.checked.tasks
  const { edges } = checked.checked
  if (edges === undefined) throw yield* heldByEnded(all, settled)
  const added: Task[] = []
  const isNew = new Set([...replaced.keys(), ...found.added.map(({ id }) => id!)])
  const tasks: Task[] = []
  const definitions: ValidTask[] = []
  yield* inRanges(all.length, (from, to) => {
    for (const input of all.slice(from, to)) {
      if (!isNew.has(input.id)) {
        tasks.push(known.get(input.id)!)
        continue
      }
      const task = new Task(graph, -1, input)
      if (checked.known.has(input)) task.setRare('hasPlaceholders', true)
      tasks.push(task)
      added.push(task)
      definitions.push(input)
    }
  })
  return {
    ...{ submitted: tasks, edges, added, removed: gone, replaced: [...replaced.keys()] },
    definitions: yield* encodePatchedTasks(definitions),
    warnings: checked.warnings.filter(({ task_id }) => task_id === undefined || isNew.has(task_id)),
    order: isDryRun === true ? yield* orderOfGraph(checked) : undefined,
  }
}

const NO_BODY = new Uint8Array()

/** 409 for a task that has ended and depends on one that would be gone: its edges say why it ended so. */
function* heldByEnded(tasks: readonly ValidTask[], settled: ReadonlySet<string>): Steps<ServiceError> {
  const ids = new Set(tasks.map(({ id }) => id))
  for (const [i, { id, depends_on }] of tasks.entries()) {
    const gone = settled.has(id) ? depends_on?.find((dependency) => !ids.has(dependency)) : undefined
    if (gone !== undefined)
      return new ServiceError(409, `task ${gone} cannot be removed: task ${id}, which has ended, depends on it`)
    if (isYieldDue(i)) yield
  }
  return new ServiceError(409, 'the tasks that have ended depend on each other in another way than before')
}

/**
 * Throws 403 if an approval that the caller may not answer decides about one of `tasks`, or gets from it who may, or has been asked
 * for about a task that depends on it: the answer is given for the whole of what is to come.
 */
function* ensureMayChange(all: readonly Task[], edges: Edges, tasks: readonly Task[], by: Caller): Steps<void> {
  const deciding = new Map<number, string>()
  const naming = new Map<number, string>()
  for (const [i, task] of all.entries()) {
    for (const approval of approvalsIn(task)) {
      const fault = whyNotAllowed(approval, by)
      if (fault === undefined) continue
      deciding.set(task.position, `approval ${approval.id} decides about it (${fault.message})`)
      if (isOpen(approval))
        naming.set(task.position, `approval ${approval.id} may get from it who answers (${fault.message})`)
    }
    if (isYieldDue(i)) yield
  }
  const { dependents, dependentsStart, dependencies, dependenciesStart } = edges
  const after = (at: number) => dependents.subarray(dependentsStart[at], dependentsStart[at + 1])
  const before = (at: number) => dependencies.subarray(dependenciesStart[at], dependenciesStart[at + 1])
  const isAsked = ({ status, rare }: Task) => status !== 'pending' || rare.asked_at !== undefined
  const asked = [...deciding.keys()].filter((at) => isAsked(all[at]!))
  const decided = yield* reachedFrom(after, asked)
  const guards = [
    { reached: yield* reachedFrom(after, deciding.keys()), textOf: (at: number) => deciding.get(at) },
    { reached: yield* reachedFrom(before, naming.keys()), textOf: (at: number) => naming.get(at) },
    {
      reached: yield* reachedFrom(before, decided.keys()),
      textOf: (at: number) => `task ${all[at]!.id} depends on it, and ${deciding.get(decided.get(at)!)}`,
    },
  ]
  for (const [i, { id, position }] of tasks.entries()) {
    for (const { reached, textOf } of guards) {
      const start = reached.get(position)
      if (start !== undefined) throw new ServiceError(403, `task ${id} cannot be changed: ${textOf(start)}`)
    }
    if (isYieldDue(i)) yield
  }
}

/** Whether an approval does not know yet who may answer it. */
const isOpen = ({ input, rare }: Approval): boolean =>
  rare.resolved_input === undefined && isObject(input) && (hasPlaceholderName(input) || hasPlaceholder(input.by))

/** The task, if it is an approval, or those in a group. */
function approvalsIn(task: Task): readonly Approval[] {
  if (isApproval(task)) return [task]
  const { id, graph, options } = task
  const inside = (options.tasks ?? []).filter(({ type }) => isApproval({ type: type! }))
  return inside.map((member) => ({
    ...{ id: memberId(id, undefined, member.id!), graph, rare: {} },
    input: member.input ?? member.params,
  }))
}

/** Why `task` cannot go or be replaced any more; undefined if it can. */
function whyFixed({ scheduler }: OperationParts, task: Task): string | undefined {
  const { id, status, attempt, fanOut } = task
  if (task.isDeleted) return `task ${id} was deleted`
  if (task.isReplaced) return `another graph has taken the id of task ${id}`
  if (task.atEnd !== undefined) return `task ${id} is what the graph does at its end: it cannot be changed`
  if (task.isTerminal) return `task ${id} has ended (${status}): add a task with another id`
  const hasStarted = status !== 'pending' || attempt > 0 || fanOut !== undefined
  if (hasStarted || task.goesOnElsewhere || scheduler.isBeginning(task))
    return `task ${id} has started: cancel it, and add a task with another id`
  return undefined
}

const alreadyThere = (id: string) =>
  new ServiceError(409, `add: the graph has a task ${id} already: replace it, or choose another id`)

/** Throws 409 if what was possible during the checks is not any more. */
export function ensurePossible(parts: OperationParts, graph: Graph, { added, removed, replaced }: Plan): void {
  const { store } = parts
  if (graph.visible + added.length === removed.length)
    throw new ServiceError(409, `nothing would be left of graph ${graph.id}: cancel it`)
  for (const task of removed) {
    const fault = whyFixed(parts, task)
    if (fault !== undefined) throw new ServiceError(409, fault)
  }
  const own = new Set(replaced)
  for (const { id } of added) {
    if (own.has(id)) continue
    if (store.taskIn(graph, id) !== undefined) throw alreadyThere(id) // a child, by now
    const fault = graph.isScoped ? undefined : store.whyTaken(id)
    if (fault !== undefined) throw new ServiceError(409, fault)
  }
}
