/** Pages of lists that one replica gets from another: a line for each entry, its place before a space. */

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

/** The replicas besides this one. Rejects with 503. */
export async function replicasToJoin(keeper: Pick<Keeper, 'others' | 'replica'>): Promise<Joined> {
  const { live, gone } = await keeper.others!.all()
  const others = live.filter(({ id }) => id !== keeper.replica?.id)
  const [reached, silent] = [others.filter(hasAddress), others.filter((other) => !hasAddress(other))]
  const silentIds = silent.map(({ id }) => id)
  return { others: reached, missing: [...gone, ...silentIds], silent: silentIds }
}

const hasAddress = ({ address }: OtherReplica): boolean => address !== ''

/** Rejects with 503 if the other replica does not answer with a page. */
export async function joinedLines(
  { keeper }: { readonly keeper: Pick<Keeper, 'others'> },
  replica: AskedReplica,
  path: string,
  traceId: string,
): Promise<JoinedLines> {
  const headers = new Headers({ 'x-trace-id': traceId })
  const answer = await keeper.others!.ask(replica, { method: 'GET', path, headers })
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
