/** Lists graphs that were set aside, because their rows in the database cannot be read. The newest first. */
import { UNREADABLE } from '../../shared/contract/graph-state.ts'
import type { UnreadableGraph } from '../../shared/contract/graphs.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { Keeper } from '../log/keeper.ts'
import { type GraphPageRequest, graphCursor } from './graph-filter.ts'

/** Rejects with 503. */
export async function unreadableGraphs(
  { keeper }: { readonly keeper: Pick<Keeper, 'others'> },
  { after, limit }: Pick<GraphPageRequest, 'after' | 'limit'>,
): Promise<{ readonly graphs: readonly UnreadableGraph[]; readonly nextCursor: string | undefined }> {
  const found = await keeper.others.unreadable(after?.ordinal ?? Number.MAX_SAFE_INTEGER, limit + 1)
  const shown = found.slice(0, limit)
  const last = shown.at(-1)
  return {
    graphs: shown.map(({ graphId, why, at, taskCount }) => {
      return { graph_id: graphId, state: UNREADABLE, error: why, task_count: taskCount, set_aside_at: isoTime(at) }
    }),
    nextCursor: found.length > limit ? graphCursor({ createdAt: last!.at, ordinal: last!.ordinal }) : undefined,
  }
}
