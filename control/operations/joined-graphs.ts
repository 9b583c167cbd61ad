/** Lists the graphs of all replicas, the newest first. A replica that does not answer is left out, and named. */

import { ServiceError } from '../../shared/contract/errors.ts'
import type { GraphSummary } from '../../shared/contract/graphs.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { Keeper } from '../log/keeper.ts'
import { type GraphPageRequest, type GraphPlace, graphCursor, graphPlaceOf, newestFirst } from './graph-filter.ts'
import { joinedLines, replicasToJoin } from './joined-lines.ts'
import { type GraphList, type ListGraphsParts, listGraphs } from './list-graphs.ts'

export interface JoinedGraphsParts extends ListGraphsParts {
  readonly keeper: Pick<Keeper, 'kept' | 'others' | 'replica'>
  readonly eventStreams: { readonly position: number }
}

export interface JoinedGraphs extends Omit<GraphList, 'cursors'> {
  /** Replicas whose graphs the list lacks. */
  readonly missing: readonly number[]
  /** A stream of events continues after this id. */
  readonly position: string
}

/** A graph in a page that one replica gets from another. */
interface Item {
  readonly place: GraphPlace
  readonly graph: GraphSummary
}

/** A page of this replica for another one: a line for each graph, with its place. */
export async function graphLines(parts: ListGraphsParts, request: GraphPageRequest): Promise<string> {
  const { graphs, cursors } = await listGraphs(parts, request)
  return graphs.map((graph, i) => `${cursors[i]} ${JSON.stringify(graph)}\n`).join('')
}

export async function joinedGraphs(
  parts: JoinedGraphsParts,
  request: GraphPageRequest,
  traceId: string,
): Promise<JoinedGraphs> {
  const { limit } = request
  const joined = await replicasToJoin(parts.keeper)
  const missing = [...joined.missing]
  const positions = [parts.eventStreams.position, ...joined.silent]
  const query = queryOf({ ...request, limit })
  const pages = await Promise.all([
    ownItems(parts, request),
    ...joined.others.map(async (replica) => {
      try {
        const found = await joinedLines(parts, replica, `/graphs?${query}`, traceId)
        missing.push(...found.missing)
        positions.push(found.position)
        return found.lines.map(({ place, json }): Item => ({ place: graphPlaceOf(place)!, graph: JSON.parse(json) }))
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        missing.push(replica.id)
        positions.push(replica.id) // nobody knows how far
        return []
      }
    }),
  ])
  const sorted = pages.flat().sort((a, b) => newestFirst(a.place, b.place))
  // A graph that changes hands may be in two pages.
  const items = sorted.filter(({ place }, i) => i === 0 || newestFirst(sorted[i - 1]!.place, place) !== 0)
  // A replica with a full page may have more.
  const hasMore = items.length > limit || pages.some((page) => page.length === limit)
  const shown = items.slice(0, limit)
  const last = shown.at(-1)
  return {
    graphs: shown.map(({ graph }) => graph),
    nextCursor: hasMore && last !== undefined ? graphCursor(last.place) : undefined,
    missing: [...new Set(missing)],
    position: positions.join('-'),
  }
}

async function ownItems(parts: ListGraphsParts, request: GraphPageRequest): Promise<Item[]> {
  const { graphs, cursors } = await listGraphs(parts, request)
  return graphs.map((graph, i) => ({ graph, place: graphPlaceOf(cursors[i]!)! }))
}

function queryOf({ filter, after, limit }: GraphPageRequest): URLSearchParams {
  const { states = [], name, labels = [], since, until } = filter
  const query = new URLSearchParams({ limit: String(limit) })
  for (const state of states) query.append('state', state)
  for (const [label, value] of labels) query.append('label', `${label}=${value}`)
  if (name !== undefined) query.set('name', name)
  if (since !== undefined) query.set('since', isoTime(since))
  if (until !== undefined) query.set('until', isoTime(until))
  if (after !== undefined) query.set('cursor', graphCursor(after))
  return query
}
