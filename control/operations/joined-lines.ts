/** Pages of lists that one replica gets from the others: a line for each entry, its place before a space. */

import { ServiceError } from '../../shared/contract/errors.ts'
import { EVENT_SEQ_HEADER } from '../../shared/contract/events.ts'
import type { AskedReplica, Keeper, OtherReplica } from '../log/keeper.ts'

/** In the answer to a list that lacks the tasks or graphs of some replicas: their numbers. */
export const MISSING_REPLICAS_HEADER = 'x-missing-replicas'

export interface JoinedLines {
  readonly lines: readonly { readonly place: string; readonly json: string }[]
  /** Replicas whose graphs the other one is just taking over. */
  readonly missing: readonly number[]
  /** The number of the last change that the page includes, or the number of the replica if it does not tell. */
  readonly position: number
}

export interface Joined {
  /** Replicas to ask. */
  readonly others: readonly OtherReplica[]
  /** Replicas whose graphs nobody can list now: they are gone, or have no address. */
  readonly missing: readonly number[]
  /** Living replicas among the missing ones. */
  readonly silent: readonly number[]
}

/**
 * The replicas besides this one; none without a database. Called before the own page is made: what that lacks, because it
 * is being adopted, is named then. Rejects with 503.
 */
export async function replicasToJoin(keeper: Pick<Keeper, 'others' | 'replica'>): Promise<Joined> {
  const { live, gone } = await keeper.others.all()
  const others = live.filter(({ id }) => id !== keeper.replica?.id)
  const [reached, silent] = [others.filter(hasAddress), others.filter((other) => !hasAddress(other))]
  const silentIds = silent.map(({ id }) => id)
  return { others: reached, missing: [...gone, ...silentIds], silent: silentIds }
}

const hasAddress = ({ address }: OtherReplica): boolean => address !== ''

interface LinesRequest {
  readonly path: string
  readonly traceId: string
}

interface LinesParts {
  readonly keeper: Pick<Keeper, 'others'>
}

export interface PagesElsewhere<P> {
  readonly pages: readonly P[]
  /** Replicas that the list lacks. */
  readonly missing: readonly number[]
  /** By replica that lives: what a stream of its events continues after. Its own number, if nobody knows how far it is. */
  readonly positions: readonly number[]
}

/** The page of each replica to ask, as `read` makes it of the lines. A replica that does not answer is missing. */
export async function pagesElsewhere<P>(
  parts: LinesParts,
  joined: Joined,
  request: LinesRequest,
  read: (found: JoinedLines, replica: AskedReplica) => P,
): Promise<PagesElsewhere<P>> {
  const pages: P[] = []
  const missing = [...joined.missing]
  const positions = [...joined.silent]
  await Promise.all(
    joined.others.map(async (replica) => {
      try {
        const found = await joinedLines(parts, replica, request)
        pages.push(read(found, replica))
        missing.push(...found.missing)
        positions.push(found.position)
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        missing.push(replica.id)
        positions.push(replica.id)
      }
    }),
  )
  return { pages, missing: [...new Set(missing)], positions }
}

/** Rejects with 503 if the other replica does not answer with a page. */
export async function joinedLines(
  { keeper }: LinesParts,
  replica: AskedReplica,
  { path, traceId }: LinesRequest,
): Promise<JoinedLines> {
  const headers = new Headers({ 'x-trace-id': traceId })
  const answer = await keeper.others.ask(replica, { method: 'GET', path, headers })
  if (!answer.ok) throw new ServiceError(503, `replica ${replica.id} answers ${answer.status} to a list`)
  const lines = (await answer.text()).split('\n').slice(0, -1)
  const missing = answer.headers.get(MISSING_REPLICAS_HEADER)
  return {
    lines: lines.map((line) => {
      const space = line.indexOf(' ')
      return { place: line.slice(0, space), json: line.slice(space + 1) }
    }),
    missing: missing === null ? [] : missing.split(',').map(Number),
    position: Number(answer.headers.get(EVENT_SEQ_HEADER) ?? replica.id),
  }
}
