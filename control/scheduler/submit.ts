/** Takes in a submitted graph: decode, check, claim its ids, accept, run. Any of the checks may refuse it whole. */
import type { SubmitResponse } from '../../shared/contract/control.ts'
import { ServiceError } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { inSlices, type Slices } from '../../shared/slices.ts'
import type { ExecutorRegistry } from '../executors/registry.ts'
import { decodeGraph } from '../graph/decode.ts'
import { createGraph, type Graph } from '../graph/task.ts'
import { validateGraph } from '../graph/validate.ts'
import type { TaskStore } from '../store/tasks.ts'
import type { Scheduler } from './scheduler.ts'

export interface Intake {
  readonly store: TaskStore
  readonly scheduler: Scheduler
  readonly executors: ExecutorRegistry
  readonly log: Log
  /** True once the service is stopping. */
  readonly isDraining: () => boolean
}

/** Throws `ServiceError`: 400 for a graph that fails a check, 409 for an id that is in use, 503 while stopping. */
export async function submitGraph(intake: Intake, body: Uint8Array, traceId: string): Promise<SubmitResponse> {
  const { graph, task_ids } = await inSlices(takeIn(intake, body, traceId))
  if (intake.isDraining()) {
    intake.store.unclaim(graph)
    throw new ServiceError(503, 'the service is stopping and accepts no new graphs')
  }
  intake.store.apply({ kind: 'graph-accepted', graph })
  intake.log.info('graph accepted', { trace_id: traceId, graph_id: graph.id, tasks: graph.tasks.length })
  intake.scheduler.add(graph)
  return { accepted: task_ids.length, task_ids, graph_id: graph.id }
}

function* takeIn(
  { store, executors }: Intake,
  body: Uint8Array,
  traceId: string,
): Slices<{ graph: Graph; task_ids: string[] }> {
  const valid = yield* validateGraph(yield* decodeGraph(body), executors.types)
  const graph = yield* createGraph(valid, { id: crypto.randomUUID(), traceId, createdAt: Date.now() })
  yield* store.claim(graph)
  return { graph, task_ids: valid.tasks.map((task) => task.id) }
}
