/**
 * Keeps a submitted graph whose ids, or whose key, another replica may have.
 *
 * The database refuses the graph then. Ids of ended tasks are given up by their owner, and the graph is written again. An
 * id whose task has not ended is refused for good.
 */
import { messageOf, ServiceError } from '../../../shared/contract/errors.ts'
import type { Graph, Task } from '../../task/graph.ts'
import { encodeGraph, type SubmissionExtras } from '../journaled-graph.ts'
import { Moved } from '../kept-schedules.ts'
import { noOwner } from '../no-owner.ts'
import { InUse } from './database.ts'
import { graphPayload } from './frame-payloads.ts'
import type { Others } from './others.ts'
import { Answered } from './shared-keys.ts'
import type { SharedRows } from './shared-rows.ts'
import type { TurnWriter } from './turn-writer.ts'
import { type NewGraph, placeIn } from './turn-writes.ts'
import { unavailable } from './unavailable.ts'
import type { UnkeptWrites } from './unkept-writes.ts'

/** Turns that try to write one graph. Between them, other replicas give up ids. */
const MAX_TRIES = 3

export interface SubmissionParts {
  readonly rows: Pick<SharedRows, 'answer'>
  readonly writes: UnkeptWrites
  readonly turns: Pick<TurnWriter, 'run'>
  readonly others: Pick<Others, 'free'>
}

/** A graph that was submitted as `body`, as its rows have it. Throws 400. */
export function submissionOf(
  graph: Graph,
  body: Uint8Array,
  { idempotency, reused, schedule }: SubmissionExtras,
): NewGraph {
  const payload = graphPayload(graph, encodeGraph(graph, body, { idempotency, reused }).map(textOf).join(''))
  const taskIds = takenIds(graph, graph.tasks)
  const { concurrency } = graph.options
  if (concurrency?.group.includes('\0') === true)
    throw new ServiceError(400, 'concurrency.group has U+0000, which the database cannot hold')
  const place = concurrency && placeIn(concurrency, graph.tenant)
  const change = schedule && { ...schedule, progress: JSON.stringify(schedule.progress) }
  return {
    ...{ ordinal: graph.ordinal, id: graph.id, tenant: graph.tenant, payload, taskIds, key: idempotency },
    ...{ ...(place && { place }), ...(change && { schedule: change }) },
  }
}

/** What takes the ids of `added` for tasks of `graph`, which is kept already. Throws 400. */
export const claimOf = (graph: Graph, added: readonly Task[]): NewGraph => ({
  ...{ ordinal: graph.ordinal, id: graph.id, payload: '', taskIds: takenIds(graph, added), key: undefined },
})

/** Those ids of `tasks` of `graph` that no other live graph may have. */
function takenIds(graph: Graph, tasks: readonly Task[]): string[] {
  const ids = graph.isScoped ? [] : tasks.map(({ id }) => id)
  if (ids.some((id) => id.includes('\0')))
    throw new ServiceError(400, 'an id of a task has U+0000, which the database cannot hold (use scope "graph")')
  return ids
}

const textOf = (part: string | Uint8Array): string => (typeof part === 'string' ? part : new TextDecoder().decode(part))

/** Resolves when the graph is kept, or its new ids are. Rejects with 409, 503, `Answered`, or `Moved`. */
export async function keepSubmitted(parts: SubmissionParts, graph: NewGraph): Promise<void> {
  for (let tries = 1; ; tries++) {
    const waiting = parts.writes.addGraph(graph)
    parts.turns.run(true)
    try {
      await waiting.promise
      return
    } catch (error) {
      if (!(error instanceof InUse)) throw error
      if (graph.schedule !== undefined)
        throw new Moved(`another replica has changed the schedule ${graph.schedule.name}`, { cause: error })
      await throwAnswer(parts, graph)
      await parts.others.free(graph.taskIds)
      if (tries === MAX_TRIES) throw noOwner(`others take the same ids: ${messageOf(error)}`, error)
    }
  }
}

/** Throws `Answered` if another replica has answered a request with the same key. */
async function throwAnswer({ rows }: SubmissionParts, { key }: NewGraph): Promise<void> {
  if (key === undefined) return
  const known = await rows.answer(key).catch((error) => {
    throw unavailable(messageOf(error), error)
  })
  if (known !== undefined) throw new Answered(known)
}
