/** Takes in a submitted graph: decode, check, claim its ids, accept, run. Any of the checks may refuse it whole. */
import type { SubmitWarning } from '../../shared/contract/control.ts'
import { ServiceError } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { inRanges, runCooperatively, type Steps } from '../../shared/steps.ts'
import type { UnknownFields } from '../../shared/unknown-names.ts'
import type { ExecutorRegistry } from '../executors/registry.ts'
import { decodeGraph } from '../graph/decode.ts'
import { createGraph, Graph, type GraphIdentity } from '../graph/graph.ts'
import { refuseHiddenValues } from '../graph/hidden-env.ts'
import { smallGraph } from '../graph/small-graph.ts'
import { checkIds, validateUnclaimed } from '../graph/validate.ts'
import type { SentKey } from '../journal/idempotency.ts'
import type { Persistence } from '../journal/persistence.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'
import type { Retention } from '../store/retention.ts'
import type { TaskStore } from '../store/tasks.ts'
import type { Readiness } from './readiness.ts'
import { reviewGraph, reviewInputs } from './review.ts'

export interface Intake {
  readonly store: TaskStore
  readonly scheduler: Scheduler
  readonly executors: ExecutorRegistry
  readonly persistence: Pick<Persistence, 'appendGraph' | 'revoke'>
  readonly retention: Pick<Retention, 'makeRoom' | 'checkSize'>
  readonly readiness: Pick<Readiness, 'ensure' | 'fault'>
  readonly log: Log
  readonly unknownFields: UnknownFields
}

/** Where a graph comes from. */
export interface Submission {
  readonly traceId: string
  /** The caller's key. */
  readonly sent?: SentKey | undefined
  /** Makes the answer where it is no `SubmitResponse`. `warnings` is a JSON array; undefined where there are none. */
  readonly answerWith?: (warnings: string | undefined) => string
  /** Fires when the connection of the caller is gone. Read once, at the end: a request makes it when it is first asked. */
  readonly caller?: { readonly signal: AbortSignal }
}

/**
 * Resolves with the answer, a `SubmitResponse` as JSON unless `answerWith` makes another one, once the graph is on disk.
 * A caller without a key who is gone by then would never know whether to send the graph again, so it is taken back (499).
 * Throws `ServiceError`: 400 for a graph that fails a check, 409 for an id that is in use, 413 for more tasks than may be
 * kept, 503 while stopping, while there is no room or while the disk does not take it; then nothing of it is stored.
 */
export async function submitGraph(
  intake: Intake,
  body: Uint8Array,
  { traceId, sent, answerWith, caller }: Submission,
): Promise<string> {
  const taken = takeInSmall(intake, body, traceId) ?? (await runCooperatively(takeIn(intake, body, traceId)))
  const { graph } = taken
  const warnings = taken.warnings.length === 0 ? undefined : JSON.stringify(taken.warnings)
  const answer = answerWith?.(warnings) ?? answerText(graph, taken.ids, warnings)
  try {
    intake.readiness.ensure()
    intake.retention.makeRoom(graph.tasks.length)
    graph.createdAt = Date.now() // taking it in may have taken a while, and others may have been faster
    await intake.persistence.appendGraph(graph, body, sent && { ...sent, answer, at: graph.createdAt })
    if (sent === undefined && caller?.signal.aborted) {
      intake.persistence.revoke(graph)
      throw new ServiceError(499, 'the caller closed the connection before the graph was on disk; nothing was stored')
    }
  } catch (error) {
    intake.store.unclaim(graph)
    throw error
  }
  intake.store.apply({ kind: 'graph-accepted', graph })
  intake.log.info('graph accepted', { trace_id: traceId, graph_id: graph.id, tasks: graph.tasks.length })
  intake.scheduler.add(graph)
  return answer
}

interface Taken {
  readonly graph: Graph
  /** The ids of its tasks as a JSON array. */
  readonly ids: string
  readonly warnings: readonly SubmitWarning[]
}

/** Fast path of `takeIn` for a small valid graph; undefined for others. */
function takeInSmall(intake: Intake, body: Uint8Array, traceId: string): Taken | undefined {
  const { store, executors } = intake
  const valid = smallGraph(body, executors.types)
  if (valid === undefined) return undefined
  refuseHiddenValues(valid.tasks, 0, valid.tasks.length)
  const graph = new Graph(newIdentity(store, traceId), valid.edges)
  graph.add(valid.tasks, 0, valid.tasks.length)
  const warnings: SubmitWarning[] = []
  reviewInputs(intake, graph.tasks, warnings, 0, graph.tasks.length)
  store.claimSome(graph, 0, graph.tasks.length)
  return { graph, ids: JSON.stringify(graph.tasks.map(({ id }) => id)), warnings }
}

function* takeIn(intake: Intake, body: Uint8Array, traceId: string): Steps<Taken> {
  const { store, executors, retention } = intake
  const { fields, tasks } = yield* decodeGraph(body, (count) => retention.checkSize(count))
  const valid = yield* validateUnclaimed(tasks, executors.types)
  try {
    yield* inRanges(valid.tasks.length, (from, to) => refuseHiddenValues(valid.tasks, from, to))
  } catch (error) {
    if (valid.mayRepeatIds) yield* checkIds(valid.tasks) // that check comes first
    throw error
  }
  const graph = yield* createGraph(valid, newIdentity(store, traceId))
  let warnings: readonly SubmitWarning[]
  try {
    warnings = yield* reviewGraph(intake, { fields, inputs: valid.tasks }, graph.tasks)
    yield* store.claim(graph)
  } catch (error) {
    if (valid.mayRepeatIds) yield* checkIds(valid.tasks) // that check comes first
    throw error
  }
  return { graph, ids: yield* idsOf(graph), warnings }
}

const newIdentity = (store: TaskStore, traceId: string): GraphIdentity => ({
  id: crypto.randomUUID(),
  ordinal: store.nextOrdinal(),
  traceId,
  createdAt: Date.now(),
})

/** Put together in slices: those of a large graph take longer than a turn may. */
function* idsOf({ tasks }: Graph): Steps<string> {
  let ids = ''
  yield* inRanges(tasks.length, (from, to) => {
    const some = tasks.slice(from, to).map(({ id }) => id)
    ids += (from === 0 ? '' : ',') + JSON.stringify(some).slice(1, -1)
  })
  return `[${ids}]`
}

const answerText = ({ id, tasks }: Graph, ids: string, warnings: string | undefined): string =>
  `{"accepted":${tasks.length},"task_ids":${ids},"graph_id":"${id}"${warningsMember(warnings)}}`

/** The member `warnings` of an answer, after others; empty where there are none. */
export const warningsMember = (warnings: string | undefined): string =>
  warnings === undefined ? '' : `,"warnings":${warnings}`
