/**
 * Retries tasks in place: they run again in their graph, and so does all that depends on them (`task/retry.ts`). Whoever
 * retries submits work, and is held to what a submission of his may do.
 *
 * All tasks are pending again in one turn of the event loop, and one frame of the log has them. A graph may have 100,000 tasks, so
 * all else is done in steps: what they become is made before, as long as nothing of the graph changes, and written and queued
 * after.
 */
import { ServiceError } from '../../shared/contract/errors.ts'
import { MAX_RETRIED_SHOWN } from '../../shared/contract/events.ts'
import { RetryRequest, type RetryResponse } from '../../shared/contract/retry.ts'
import { type Caller, hasRight, lacking } from '../../shared/http/callers.ts'
import { inRanges, nextTurn, runCooperatively, runSync, type Steps } from '../../shared/process/steps.ts'
import type { SentKey } from '../log/idempotency.ts'
import type { Edges } from '../rules/edges.ts'
import type { Change } from '../task/change.ts'
import type { Graph, Task } from '../task/graph.ts'
import { edgesByName } from '../task/graph-findings.ts'
import type { RareState } from '../task/rare-state.ts'
import {
  endedParents,
  failedTasks,
  isRetryable,
  replacedText,
  retriedWith,
  revivedRare,
  whyNotAgain,
  whyNotByChildren,
} from '../task/retry.ts'
import type { TaskStore } from '../task/task-store.ts'
import { knownGraph, knownTask, type TaskAddress } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'
import { bodyIn } from './pause.ts'

export interface RetryCall {
  /** As sent: a `RetryRequest`, or nothing. */
  readonly body: Uint8Array
  /** The idempotency key of the caller. */
  readonly key?: string | null | undefined
  readonly by: Caller | undefined
}

/**
 * Retries one task. Returns a `RetryResponse` as JSON once that is on disk. Throws 404, 409 for a task that cannot run again
 * and for another revision of the graph, what a submission throws, and 403 for a graph of others.
 */
export function retryTask(parts: OperationParts, address: TaskAddress, call: RetryCall): Promise<string> {
  return once(parts, JSON.stringify([address.graphId ?? null, address.id]), call, () => ({
    id: knownTask(parts.store, address).graph.id,
    namedNow() {
      const task = knownTask(parts.store, address)
      const fault = whyNotNamed(task)
      if (fault !== undefined) throw new ServiceError(409, fault)
      return [task]
    },
  }))
}

/** As `retryTask`, for all tasks that made the graph fail. */
export function retryGraph(parts: OperationParts, id: string, call: RetryCall): Promise<string> {
  return once(parts, id, call, () => ({
    id,
    namedNow() {
      const tasks = failedTasks(knownGraph(parts.store, id))
      if (tasks.length > 0) return tasks
      throw new ServiceError(409, `nothing to retry: no task of graph ${id} has failed or was cancelled`)
    },
  }))
}

interface Subject {
  /** Of the graph. */
  readonly id: string
  /** Called in the turn in which its tasks are pending again. Throws if they cannot be. */
  readonly namedNow: () => readonly Task[]
}

const NO_BODY = new Uint8Array()

async function once(
  parts: OperationParts,
  subject: string,
  { body, key = null, by }: RetryCall,
  find: () => Subject,
): Promise<string> {
  const { revision } = bodyIn(parts, RetryRequest, body)
  const request = { scope: `retry ${subject}`, key, body: revision === undefined ? NO_BODY : body }
  if (key !== null) await parts.keeper.kept('promise') // a first request with the key may have got 503
  return parts.keeper.keys.once(request, (sent) => retry(parts, find(), { revision, sent, by }))
}

/** Plans of a retry in steps. If the graph changes all the time, the next one is made in one step. */
const MAX_TRIES = 3

interface Given {
  readonly revision: number | undefined
  readonly sent: SentKey | undefined
  readonly by: Caller | undefined
}

async function retry(parts: OperationParts, { id, namedNow }: Subject, { revision, sent, by }: Given): Promise<string> {
  const { store, scheduler, keeper } = parts
  ensureMayRetry(knownGraph(store, id), by)
  ensureRevision(knownGraph(store, id), revision)
  namedNow()
  await keeper.kept('promise') // an end is kept before it is undone
  const { tasks: list } = knownGraph(store, id)
  const built = await runCooperatively(edgesByName(knownGraph(store, id).submitted))
  const lists = await listsAgain(parts, knownGraph(store, id), built, namedNow)
  const refused = await scheduler.groups.whyRefused(endedOptions(knownGraph(store, id)), knownGraph(store, id).tenant)
  if (refused !== undefined) throw new ServiceError(409, refused)
  const changes = changesOf(store, id)
  try {
    for (let tries = 1; ; tries++) {
      await toldOf(parts)
      const before = changes.count
      const steps = plan(parts, id, { list, built, lists, revision, namedNow, by })
      const made = tries > MAX_TRIES ? runSync(steps) : await runCooperatively(steps)
      if (changes.count === before) return await carryOut(parts, made, sent, by)
    }
  } finally {
    changes.stop()
  }
}

/** Counts the changes of a graph. */
function changesOf(store: TaskStore, id: string) {
  const changes = { count: 0, stop: () => {} }
  changes.stop = store.watch((change) => {
    if (('graph' in change ? change.graph : change.task.graph).id === id) changes.count++
  })
  return changes
}

type Retry = Extract<Change, { kind: 'tasks-retried' }>

interface Found extends Pick<Given, 'revision' | 'by'>, Pick<Subject, 'namedNow'>, Pick<Retry, 'lists'> {
  /** The tasks of the graph when its edges were `built`. */
  readonly list: readonly Task[]
  readonly built: Edges
}

/** What a retry makes of the graph as it is. Throws 409 if it cannot. */
function* plan(
  parts: OperationParts,
  id: string,
  { list, built, lists, revision, namedNow, by }: Found,
): Steps<Omit<Retry, 'idempotency'>> {
  const graph = knownGraph(parts.store, id)
  ensureRevision(graph, revision)
  const named = new Set(namedNow())
  if (graph.edges === undefined && graph.tasks !== list)
    throw new ServiceError(409, `graph ${id} was changed, and has ended: try again`)
  const edges = graph.edges ?? built
  const tasks = yield* tasksAgain(graph, edges, named)
  if (endedParents(tasks).some((task) => !lists.has(task)))
    throw new ServiceError(409, `graph ${id} has changed meanwhile: try again`)
  const at = Date.now()
  const name = by?.grant.name
  const revived: (RareState | undefined)[] = []
  yield* inRanges(tasks.length, (from, to) => {
    for (const task of tasks.slice(from, to))
      revived.push(task.isTerminal ? revivedRare(task, named.has(task), name, at) : undefined)
  })
  return { kind: 'tasks-retried', graph, edges, tasks, named, revived, lists, by: name, at }
}

/** Nothing of the graph has changed since the plan was made. */
async function carryOut(
  parts: OperationParts,
  { at, ...change }: Omit<Retry, 'idempotency'>,
  sent: SentKey | undefined,
  by: Caller | undefined,
): Promise<string> {
  const { scheduler, keeper, quotas, readiness, log } = parts
  const { graph, tasks, named, revived } = change
  if (!graph.isScoped) for (const task of tasks) ensureHasId(parts, task)
  readiness.ensure()
  keeper.assertWritable()
  quotas.retry(
    graph,
    revived.reduce((count, rare) => (rare === undefined ? count : count + 1), 0),
    by,
  )
  if (graph.endedAt !== undefined) scheduler.groups.claim(graph)
  const retried = Array.from([...named].slice(0, MAX_RETRIED_SHOWN), (task) => task.id)
  const answer = JSON.stringify({
    ...{ graph_id: graph.id, retried, ...(named.size > retried.length && { truncated: true as const }) },
    pending: tasks.length,
  } satisfies RetryResponse)
  scheduler.retry({ ...change, at, idempotency: sent && { ...sent, answer, at } })
  log.info('tasks retried', {
    ...{ trace_id: graph.traceId, graph_id: graph.id, tasks: tasks.length },
    ...(by !== undefined && { by: by.grant.name }),
  })
  try {
    await keeper.kept('promise')
  } finally {
    scheduler.goOn()
  }
  return answer
}

/** Throws 409 if another graph has the id of `task`, or is taking it. */
function ensureHasId({ store }: OperationParts, task: Task): void {
  if (task.isReplaced) throw new ServiceError(409, replacedText(task))
  if (store.isBeingReplaced(task))
    throw new ServiceError(409, `another graph is taking the id of task ${task.id}: submit the graph again`)
}

/** All that runs again with the `named` tasks. Throws 409 if one of them cannot. */
function* tasksAgain(graph: Graph, edges: Edges, named: ReadonlySet<Task>): Steps<Task[]> {
  const tasks = yield* retriedWith(graph, edges, named)
  yield* inRanges(tasks.length, (from, to) => {
    for (const task of tasks.slice(from, to)) {
      const fault = whyNotAgain(task, edges)
      if (fault !== undefined) throw new ServiceError(409, fault)
    }
  })
  const fault = whyNotByChildren(tasks)
  if (fault !== undefined) throw new ServiceError(409, fault)
  return tasks
}

/** The elements for which the children of tasks run again, by their parents. */
async function listsAgain(
  parts: OperationParts,
  graph: Graph,
  built: Edges,
  namedNow: () => readonly Task[],
): Promise<ReadonlyMap<Task, readonly unknown[]>> {
  const lists = new Map<Task, readonly unknown[]>()
  if (graph.tasks.every(({ fanOut }) => fanOut === undefined)) return lists
  const tasks = await runCooperatively(tasksAgain(graph, graph.edges ?? built, new Set(namedNow())))
  for (const task of endedParents(tasks)) lists.set(task, await parts.scheduler.listAgain(task))
  return lists
}

/** Throws 403 for a token that may submit only for itself, and asks for a graph of others. */
function ensureMayRetry({ submittedBy }: Graph, by: Caller | undefined): void {
  if (by !== undefined && submittedBy !== by.grant.name && !hasRight(by, 'cancel')) throw lacking(by, 'cancel')
}

function whyNotNamed(task: Task): string | undefined {
  const { id, status, graph } = task
  if (isRetryable(task)) return undefined
  if (status === 'success')
    return `task ${id} succeeded: to run it again, run its graph again (POST /graphs/${graph.id}/rerun with "from")`
  if (status === 'skipped') return `task ${id} was skipped (${task.rare.error}): retry the task that failed`
  return `task ${id} has not ended: it is ${status} (cancel it first)`
}

export const revisionOf = ({ patched }: Graph): number => patched?.revision ?? 0

export const changedText = (graph: Graph): string =>
  `graph ${graph.id} has the revision ${revisionOf(graph)} by now: read it again (GET /graphs/${graph.id})`

function ensureRevision(graph: Graph, revision: number | undefined): void {
  if (revision !== undefined && revision !== revisionOf(graph)) throw new ServiceError(409, changedText(graph))
}

/** Only a graph that has ended needs a place of its group. */
const endedOptions = ({ endedAt, options }: Graph) => (endedAt === undefined ? {} : options)

/** Resolves once all tasks have been told of the ends of those that they depend on: from then on, these can be undone. */
export async function toldOf({ scheduler }: OperationParts): Promise<void> {
  while (scheduler.isTelling) {
    if (scheduler.fault !== undefined) throw new ServiceError(503, scheduler.fault)
    await nextTurn()
  }
}
