/**
 * Lists of all replicas in one order.
 *
 * Each replica is asked for pages in that order, as a line for each entry, its place before a space. The pages are merged. A
 * replica that does not answer the first request is left out, and named in the answer. Later, the list breaks with it.
 */
import { ServiceError } from '../../shared/contract/errors.ts'
import { EVENT_SEQ_HEADER } from '../../shared/contract/events.ts'
import type { Keeper, OtherReplica } from '../log/keeper.ts'
import type { OperationParts } from './parts.ts'

/** In the answer to a list that lacks the tasks or graphs of some replicas: their numbers. */
export const MISSING_REPLICAS_HEADER = 'x-missing-replicas'

export interface Joined {
  /** Replicas to ask. */
  readonly others: readonly OtherReplica[]
  /** Replicas whose graphs nobody can list now: they are gone, or have no address. */
  readonly missing: readonly number[]
  /** Living replicas among the missing ones. */
  readonly silent: readonly number[]
}

const NOBODY: Joined = { others: [], missing: [], silent: [] }

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

/** What each of `replicas` answers, and the numbers of those for which `ask` rejects with 503. */
export async function askEach<A>(
  replicas: readonly OtherReplica[],
  ask: (replica: OtherReplica) => Promise<A>,
): Promise<{ readonly answers: readonly A[]; readonly failed: readonly number[] }> {
  const answers: A[] = []
  const failed: number[] = []
  await Promise.all(
    replicas.map(async (replica) => {
      try {
        answers.push(await ask(replica))
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        failed.push(replica.id)
      }
    }),
  )
  return { answers, failed }
}

/** An order that all replicas share. */
export interface SharedOrder<P> {
  compare(a: P, b: P): number
  /** A place in the order as text, and back; undefined if the text is none. */
  cursor(place: P): string
  placeOf(cursor: string): P | undefined
}

/** An entry of a list, with its place in the order. */
export interface Item<P, V> {
  readonly place: P
  readonly value: V
}

export interface Page<P, V> {
  /** In order. */
  readonly items: readonly Item<P, V>[]
  /** Whether more entries match, or may. */
  readonly hasMore: boolean
}

export interface JoinedList<P, V> {
  readonly order: SharedOrder<P>
  /** The route of other replicas, and the filter of the list as its query. */
  readonly path: string
  readonly query: URLSearchParams
  /** The place after which the list begins. Undefined: at the first entry. */
  readonly after: P | undefined
  /** Entries of a full page. */
  readonly size: number
  /** A page of this replica. */
  own(after: P | undefined): Promise<Page<P, V>>
  /** Makes entries of their JSON. */
  read(json: string): V
  /** Takes the JSON of a line whose place is none. */
  readonly onOther?: (json: string) => void
  /** Whether this replica has the whole list. */
  readonly isHere?: boolean
}

/** A page as other replicas get it. */
export const linesOf = <P, V>({ cursor }: SharedOrder<P>, { items }: Page<P, V>, json: (value: V) => string): string =>
  items.map(({ place, value }) => `${cursor(place)} ${json(value)}\n`).join('')

/** Entries in order. */
export type Entries<P, V> = AsyncGenerator<Item<P, V>>

export interface JoinedItems<P, V> {
  readonly items: Entries<P, V>
  /** Replicas that the list lacks. */
  readonly missing: readonly number[]
  /** A stream of events continues after this id. Of a replica that did not answer, it has the number alone. */
  readonly position: string
}

/** Asks all replicas for their first pages. Rejects with 503. */
export async function joinedItems<P, V>(
  { keeper, eventStreams }: OperationParts,
  list: JoinedList<P, V>,
  traceId: string,
): Promise<JoinedItems<P, V>> {
  const { after } = list
  const joined = list.isHere ? NOBODY : await replicasToJoin(keeper)
  const { position } = eventStreams
  const [own, { answers, failed }] = await Promise.all([
    list.own(after),
    askEach(joined.others, async (replica) => {
      const page = (from: P | undefined) => pageOf(keeper, replica, list, from, traceId)
      const first = await page(after)
      return { ...first, entries: entriesOf(first, after, page) }
    }),
  ])
  const sources = [entriesOf(own, after, (from) => list.own(from)), ...answers.map(({ entries }) => entries)]
  const positions = answers.map((each) => each.position)
  return {
    items: merged(sources, list),
    missing: [...new Set([...joined.missing, ...failed, ...answers.flatMap(({ missing }) => missing)])],
    position: [position, ...joined.silent, ...failed, ...positions].join('-'),
  }
}

interface PageElsewhere<P, V> extends Page<P, V> {
  /** Replicas whose graphs the other one is just taking over. */
  readonly missing: readonly number[]
  /** The number of the last change that the page includes, or the number of the replica if it does not tell. */
  readonly position: number
}

/** Rejects with 503 if the other replica does not answer with a page. */
async function pageOf<P, V>(
  { others }: Pick<Keeper, 'others'>,
  replica: OtherReplica,
  { order, path, query, size, read, onOther }: JoinedList<P, V>,
  after: P | undefined,
  traceId: string,
): Promise<PageElsewhere<P, V>> {
  const asked = new URLSearchParams(query)
  asked.set('limit', String(size))
  if (after !== undefined) asked.set('cursor', order.cursor(after))
  const headers = new Headers({ 'x-trace-id': traceId })
  const answer = await others.ask(replica, { method: 'GET', path: `${path}?${asked}`, headers })
  if (!answer.ok) throw new ServiceError(503, `replica ${replica.id} answers ${answer.status} to a list`)
  const items: Item<P, V>[] = []
  for (const line of (await answer.text()).split('\n').slice(0, -1)) {
    const space = line.indexOf(' ')
    const place = order.placeOf(line.slice(0, space))
    if (place !== undefined) items.push({ place, value: read(line.slice(space + 1)) })
    else onOther?.(line.slice(space + 1))
  }
  const missing = answer.headers.get(MISSING_REPLICAS_HEADER)
  return {
    ...{ items, hasMore: items.length >= size },
    missing: missing === null ? [] : missing.split(',').map(Number),
    position: Number(answer.headers.get(EVENT_SEQ_HEADER) ?? replica.id),
  }
}

/** The entries of one replica. */
async function* entriesOf<P, V>(
  first: Page<P, V>,
  after: P | undefined,
  page: (after: P | undefined) => Promise<Page<P, V>>,
): Entries<P, V> {
  let end = after
  for (let { items, hasMore } = first; ; { items, hasMore } = await page(end)) {
    for (const item of items) yield item // yield* takes twice as long
    if (!hasMore) return
    end = items.at(-1)?.place ?? end
  }
}

async function* merged<P, V>(
  sources: readonly Entries<P, V>[],
  { order: { compare }, after }: Pick<JoinedList<P, V>, 'order' | 'after'>,
): Entries<P, V> {
  const heads = await Promise.all(sources.map((source) => source.next()))
  for (let last = after; ; ) {
    let first = -1
    for (const [i, head] of heads.entries())
      if (!head.done && (first < 0 || compare(head.value.place, heads[first]!.value.place) < 0)) first = i
    if (first < 0) return
    const item: Item<P, V> = heads[first]!.value
    // A graph that changes hands meanwhile may be in pages of two replicas.
    if (last === undefined || compare(item.place, last) > 0) yield item
    last = item.place
    heads[first] = await sources[first]!.next()
  }
}

/** Up to `limit` entries, with the cursor of the next page. */
export async function pageIn<P, V>(
  items: Entries<P, V>,
  { cursor }: SharedOrder<P>,
  limit: number,
): Promise<{ readonly values: readonly V[]; readonly nextCursor: string | undefined }> {
  const values: V[] = []
  let last: P
  for await (const { place, value } of items) {
    if (values.length === limit) return { values, nextCursor: cursor(last!) }
    values.push(value)
    last = place
  }
  return { values, nextCursor: undefined }
}
