/**
 * Accepts a graph for every verb that submits one: decodes and checks it, claims its ids, writes it to disk and starts
 * it. If a check fails, the whole graph is refused.
 */

import { ServiceError } from '../../shared/contract/errors.ts'
import type { SubmitWarning } from '../../shared/contract/submission.ts'
import type { Caller } from '../../shared/http/callers.ts'
import type { RequestTrace } from '../../shared/logs/trace.ts'
import { inRanges, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import type { SentKey } from '../log/idempotency.ts'
import type { ScheduleChange } from '../log/kept-schedules.ts'
import type { GraphOptions } from '../rules/graph-options.ts'
import { reportHiddenValues } from '../rules/hidden-env.ts'
import { refuse } from '../rules/report.ts'
import { createGraph, Graph, type GraphIdentity } from '../task/graph.ts'
import { smallGraph } from '../task/small-graph.ts'
import type { TaskStore } from '../task/task-store.ts'
import { checkGraph, type EncodedGraph } from './graph-checks.ts'
import { idList } from './id-list.ts'
import type { OperationParts } from './parts.ts'
import { newFindings, reviewInputs } from './review.ts'

/** The request that a graph comes from. */
export interface Origin extends RequestTrace {
  /** The idempotency key of the caller. */
  readonly sent?: SentKey | undefined
  /** Outcomes that some tasks of the graph already have. */
  readonly reuse?: Reuse | undefined
  /** How far the schedule is that submits the graph. */
  readonly changeOf?: ((graph: Graph) => ScheduleChange) | undefined
  /** Makes the answer. Absent if the caller needs none. */
  readonly answerOf?: (checked: CheckedGraph) => string
  /**
   * The request of the caller. Its `signal` fires when the connection is gone. The getter costs time, so it is read
   * once.
   */
  readonly caller?: { readonly signal: AbortSignal } | undefined
  /** Who submits it. Undefined: the token of the service, or the service itself. */
  readonly by?: Caller | undefined
  /** Whose graph it is. Default: that of the token. */
  readonly tenant?: string | undefined
}

type Sender = RequestTrace & Pick<GraphIdentity, 'submittedBy' | 'tenant'>

/** Outcomes of an earlier graph for some, but not all, tasks of a new graph. */
export interface Reuse {
  /** Applies the outcomes to tasks of `graph` before callers see it. Returns them as part of the journal frame. */
  apply(graph: Graph): Steps<readonly (string | Uint8Array)[]>
  /** Called when the graph is accepted, before its tasks start. */
  accepted(): void | Promise<void>
}

export interface CheckedGraph {
  readonly graph: Graph
  /** The ids of the tasks as a JSON array. */
  readonly ids: string
  readonly warnings: readonly SubmitWarning[]
  /** The reused outcomes as part of the journal frame. */
  readonly reused?: readonly (string | Uint8Array)[] | undefined
}

export interface AcceptedGraph extends CheckedGraph {
  /** Empty if the caller needs no answer. */
  readonly answer: string
}

/**
 * Resolves once the graph is on disk. If the caller has disconnected by then and sent no idempotency key, the graph is
 * revoked (499), because that caller cannot know whether to repeat the request. Throws `ServiceError`, and then nothing
 * is stored: 400 if a check fails, 409 if an id is in use, 413 if the graph has too many tasks, 503 while the service
 * stops, has no room, or the disk takes no writes. 403 and 429 for what the token may not submit.
 */
export async function takeInGraph(
  parts: OperationParts,
  encoded: EncodedGraph,
  { traceId, traceState, sent, reuse, changeOf, answerOf, caller, by, tenant = by?.grant.tenant }: Origin,
): Promise<AcceptedGraph> {
  const { store, scheduler, keeper, retention, readiness, quotas, audit, log } = parts
  const trace = { traceId, traceState, submittedBy: by?.grant.name, tenant }
  const checked =
    checkSmall(parts, encoded, trace) ?? (await runCooperatively(check(parts, encoded, { ...trace, reuse })))
  const { graph, ids, warnings, reused } = checked
  const answer = answerOf?.(checked) ?? ''
  try {
    quotas.take(graph, by)
    const { options } = graph
    if (options.callback !== undefined) parts.callbacks.check(options.callback, refuse, { tenant })
    readiness.ensure()
    retention.makeRoom(graph.tasks.length)
    if (store.replaces(graph)) keeper.assertWritable() // writes the ends of replaced tasks before the graph
    graph.createdAt = Date.now() // other graphs may have been accepted during the checks
    scheduler.groups.claim(graph)
    const idempotency = sent && { ...sent, answer, at: graph.createdAt }
    await keeper.keepGraph(graph, encoded.body, { idempotency, reused, schedule: changeOf?.(graph) })
    if (sent === undefined && caller?.signal.aborted) {
      keeper.revoke(graph)
      throw new ServiceError(499, 'the caller closed the connection before the graph was on disk; nothing was stored')
    }
  } catch (error) {
    store.unclaim(graph)
    quotas.giveUp(graph)
    scheduler.giveUp(graph)
    throw error
  }
  if (audit !== undefined && caller !== undefined) accepted.set(caller, graph.id)
  store.apply({ kind: 'graph-accepted', graph })
  log.info('graph accepted', {
    ...{ trace_id: traceId, graph_id: graph.id, tasks: graph.tasks.length },
    ...(by !== undefined && { by: by.grant.name }),
  })
  if (reuse !== undefined) await reuse.accepted()
  scheduler.add(graph)
  return { graph, ids, warnings, answer }
}

/** By request. */
const accepted = new WeakMap<object, string>()

/** The graph that a request had accepted, for the audit log. */
export const acceptedFor = (caller: object): string | undefined => accepted.get(caller)

/** Fast path of `check` for small valid graphs that are not decoded yet. Undefined for other graphs. */
function checkSmall(
  parts: OperationParts,
  { body, graph: value }: EncodedGraph,
  trace: Sender,
): CheckedGraph | undefined {
  const { store, executors } = parts
  const valid = value === undefined ? smallGraph(body, executors.types) : undefined
  if (valid === undefined) return undefined
  reportHiddenValues(valid.tasks, refuse, 0, valid.tasks.length)
  const graph = new Graph(newIdentity(store, trace, valid.options), valid.edges)
  graph.add(valid.tasks, 0, valid.tasks.length)
  const findings = newFindings(parts, refuse, { tenant: trace.tenant })
  reviewInputs(parts, graph.tasks, findings, 0, graph.tasks.length)
  store.claimNow(graph)
  return { graph, ids: JSON.stringify(graph.tasks.map(({ id }) => id)), warnings: findings.warnings }
}

function* check(
  parts: OperationParts,
  encoded: EncodedGraph,
  { reuse, ...trace }: Sender & Pick<Origin, 'reuse'>,
): Steps<CheckedGraph> {
  const { store } = parts
  const { reviewed, warnings } = yield* checkGraph(parts, encoded, {
    ...{ report: refuse, tenant: trace.tenant },
    *toReview({ options }, { tasks, edges }, known) {
      const graph = yield* createGraph({ tasks, edges: edges! }, newIdentity(store, trace, options))
      yield* inRanges(known.size === 0 ? 0 : tasks.length, (from, to) => {
        for (let i = from; i < to; i++) if (known.has(tasks[i]!)) graph.tasks[i]!.setRare('hasPlaceholders', true)
      })
      return { graph, inputs: tasks, tasks: graph.tasks }
    },
  })
  const { graph } = reviewed
  const reused = reuse && (yield* reuse.apply(graph))
  yield* store.claim(graph)
  return { graph, reused, ids: yield* idList(graph.tasks, ({ id }) => id), warnings }
}

const newIdentity = (
  store: TaskStore,
  { traceId, traceState, submittedBy, tenant }: Sender,
  options: GraphOptions,
): GraphIdentity => ({
  id: crypto.randomUUID(),
  ordinal: store.nextOrdinal(),
  traceId,
  traceState,
  submittedBy,
  tenant,
  createdAt: Date.now(),
  options,
})

/** The member `warnings` of an answer as JSON, after other members. Empty if there are no warnings. */
export const warningsMember = (warnings: readonly SubmitWarning[]): string =>
  warnings.length === 0 ? '' : `,"warnings":${JSON.stringify(warnings)}`
