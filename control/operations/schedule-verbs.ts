/** What schedules do, as callers do it. Their graphs may be at other replicas. */
import { ServiceError } from '../../shared/contract/errors.ts'
import type { GraphSummary } from '../../shared/contract/graphs.ts'
import { newTraceId } from '../../shared/logs/trace.ts'
import { runCooperatively } from '../../shared/process/steps.ts'
import { isObject } from '../../shared/text/json.ts'
import { Unreadable } from '../log/keeper.ts'
import { noOwner } from '../log/no-owner.ts'
import type { ScheduleFileVerbs } from '../schedules/schedule-files.ts'
import type { GraphEnd, ScheduleVerbs } from '../schedules/schedules.ts'
import { endState } from '../task/graph-summary.ts'
import { cancelGraph } from './cancel.ts'
import { deleteSchedule } from './change-schedule.ts'
import { deleteGraph } from './delete.ts'
import { takeInGraph } from './intake.ts'
import type { OperationParts } from './parts.ts'
import { putSchedule } from './put-schedule.ts'

const GONE: GraphEnd = { state: 'gone' }

export const scheduleVerbs = (parts: OperationParts): ScheduleVerbs => ({
  submit: async (body, changeOf) => (await takeInGraph(parts, { body }, { traceId: newTraceId(), changeOf })).graph,
  async cancelGraph(id) {
    if ((await askOwner(parts, 'POST', id, '/cancel')) === undefined) await cancelGraph(parts, id, undefined)
  },
  async deleteGraph(id) {
    if ((await askOwner(parts, 'DELETE', id)) === undefined) await deleteGraph(parts, id, newTraceId())
  },
  async endOf(id) {
    try {
      const answer = await askOwner(parts, 'GET', id)
      return answer === undefined ? await endHere(parts, id) : endIn(await answer.json().catch(() => undefined))
    } catch (error) {
      if (error instanceof Unreadable) return GONE
      throw error
    }
  },
  tell: (callbacks) => parts.callbacks.tell(callbacks),
})

/** What a file in `--schedules-dir` does. */
export const scheduleFileVerbs = (parts: OperationParts): ScheduleFileVerbs => ({
  async put(name, body, file) {
    await putSchedule(parts, name, body, { traceId: newTraceId(), signal: parts.stopping, file })
  },
  delete: (name, file) => deleteSchedule(parts, name, file),
})

async function endHere({ store }: OperationParts, id: string): Promise<GraphEnd | undefined> {
  const graph = store.graph(id)
  if (graph === undefined) return GONE
  return graph.endedAt === undefined ? undefined : { state: await runCooperatively(endState(graph)), at: graph.endedAt }
}

/** The end in the answer of another replica. Undefined if it has not ended, or is no graph there any more: who has it is asked again. */
function endIn(answer: unknown): GraphEnd | undefined {
  const { state, finished_at } = (isObject(answer) ? answer : {}) as Partial<GraphSummary>
  const isEnd = state === 'success' || state === 'failed' || state === 'cancelled'
  return isEnd ? { state, ...(finished_at !== undefined && { at: Date.parse(finished_at) }) } : undefined
}

/** The answer of the replica that has the graph. Undefined if the graph is here, or nowhere. Rejects with its refusal, and with 503. */
async function askOwner(
  { keeper, store }: OperationParts,
  method: string,
  id: string,
  path = '',
): Promise<Response | undefined> {
  if (store.graph(id) !== undefined) return undefined
  const owner = await keeper.others.ownerOf({ graphId: id })
  if (owner === undefined) return undefined
  const headers = new Headers({ 'x-trace-id': newTraceId() })
  const answer = await keeper.others.ask(owner, { method, path: `/graphs/${id}${path}`, headers })
  if (answer.ok || answer.status === 404) return answer
  if (answer.status < 500)
    throw new ServiceError(answer.status, `replica ${owner.id} refuses to ${method} the graph ${id}`)
  throw noOwner(`replica ${owner.id} answers ${answer.status} about the graph ${id}`)
}
