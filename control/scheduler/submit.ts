/** Takes in a submitted graph: decode, check, claim its ids, accept, run. Any of the checks may refuse it whole. */
import { ServiceError } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { inRanges, inSlices, type Slices } from '../../shared/slices.ts'
import type { ExecutorRegistry } from '../executors/registry.ts'
import { decodeGraph } from '../graph/decode.ts'
import { createGraph, Graph, type GraphIdentity } from '../graph/graph.ts'
import { smallGraph } from '../graph/small-graph.ts'
import { checkIds, validateUnclaimed } from '../graph/validate.ts'
import type { SentKey } from '../store/idempotency.ts'
import type { Persistence } from '../store/persistence.ts'
import type { Retention } from '../store/retention.ts'
import type { TaskStore } from '../store/tasks.ts'
import type { Scheduler } from './scheduler.ts'

export interface Intake {
  readonly store: TaskStore
  readonly scheduler: Scheduler
  readonly executors: ExecutorRegistry
  readonly persistence: Pick<Persistence, 'keepGraph'>
  readonly retention: Pick<Retention, 'makeRoom'>
  readonly log: Log
  /** True once the service is stopping. */
  readonly isDraining: () => boolean
}

/**
 * Resolves with the answer, a `SubmitResponse` as JSON, once the graph is on disk. `sent` is the caller's key, and the
 * answer to keep for it where that is another one. Throws `ServiceError`: 400 for a graph that fails a check, 409 for an id that is in
 * use, 503 while stopping, while there is no room or while the disk does not take it; then nothing of it is stored.
 */
export async function submitGraph(
  intake: Intake,
  body: Uint8Array,
  traceId: string,
  sent?: SentKey & { readonly answer?: string },
): Promise<string> {
  const { graph, answer } = takeInSmall(intake, body, traceId) ?? (await inSlices(takeIn(intake, body, traceId)))
  try {
    if (intake.isDraining()) throw new ServiceError(503, 'the service is stopping and accepts no new graphs')
    intake.retention.makeRoom(graph.tasks.length)
    graph.createdAt = Date.now() // taking it in may have taken a while, and others may have been faster
    await intake.persistence.keepGraph(graph, body, sent && { answer, ...sent, at: graph.createdAt })
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
  readonly answer: string
}

/** What `takeIn` does, in one go, for a small graph with nothing wrong; undefined for others. */
function takeInSmall({ store, executors }: Intake, body: Uint8Array, traceId: string): Taken | undefined {
  const valid = smallGraph(body, executors.types)
  if (valid === undefined) return undefined
  const graph = new Graph(newIdentity(store, traceId), valid.edges)
  graph.add(valid.tasks, 0, valid.tasks.length)
  store.claimSome(graph, 0, graph.tasks.length)
  return { graph, answer: answerText(graph, JSON.stringify(graph.tasks.map(({ id }) => id))) }
}

function* takeIn({ store, executors }: Intake, body: Uint8Array, traceId: string): Slices<Taken> {
  const valid = yield* validateUnclaimed(yield* decodeGraph(body), executors.types)
  const graph = yield* createGraph(valid, newIdentity(store, traceId))
  try {
    yield* store.claim(graph)
  } catch (error) {
    if (valid.mayRepeatIds) yield* checkIds(valid.tasks) // that check comes first
    throw error
  }
  return { graph, answer: yield* answerOf(graph) }
}

const newIdentity = (store: TaskStore, traceId: string): GraphIdentity => ({
  id: crypto.randomUUID(),
  ordinal: store.nextOrdinal(),
  traceId,
  createdAt: Date.now(),
})

/** A `SubmitResponse` as JSON, put together in slices: that of a large graph takes longer than a turn may. */
function* answerOf(graph: Graph): Slices<string> {
  const { tasks } = graph
  let ids = ''
  yield* inRanges(tasks.length, (from, to) => {
    const some = tasks.slice(from, to).map(({ id }) => id)
    ids += (from === 0 ? '' : ',') + JSON.stringify(some).slice(1, -1)
  })
  return answerText(graph, `[${ids}]`)
}

const answerText = ({ id, tasks }: Graph, ids: string): string =>
  `{"accepted":${tasks.length},"task_ids":${ids},"graph_id":"${id}"}`
