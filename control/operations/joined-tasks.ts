/**
 * Lists the tasks of all replicas in one order.
 *
 * Each replica is asked for pages of its tasks in that order, and the pages are merged. A replica that does not answer the
 * first request is left out, and named in the answer. Later, the list breaks with it.
 */
import { ServiceError } from '../../shared/contract/errors.ts'
import { runCooperatively } from '../../shared/process/steps.ts'
import type { AskedReplica, Keeper } from '../log/keeper.ts'
import { joinedLines, replicasToJoin } from './joined-lines.ts'
import type { ListParts, Part, RecordList, RestOfList } from './list.ts'
import { inOrder, placedTasks, placeOfTask, type SharedPlace, sharedCursor, sharedPlaceOf } from './placed-tasks.ts'
import { recordJson } from './record-json.ts'
import type { TaskFilter } from './task-filter.ts'

/** Maximum tasks that a replica is asked for at a time. */
const MAX_TASKS_PER_REQUEST = 1_000

/** Characters of a part of the answer. */
const PART_CHARACTERS = 64 * 1024

export interface JoinedParts extends ListParts {
  readonly keeper: Pick<Keeper, 'kept' | 'others' | 'replica'>
  readonly eventStreams: { readonly position: number }
}

export interface JoinedRequest {
  readonly filter: TaskFilter
  /** The same filter as a query. */
  readonly query: URLSearchParams
  readonly after: SharedPlace | undefined
  /** Undefined: all tasks. */
  readonly limit: number | undefined
  readonly traceId: string
}

/** A task in a page that one replica gets from another. */
interface Item {
  readonly place: SharedPlace
  readonly json: string
}

/** The tasks of this replica for another one: a line each, with the place and the record. */
export async function placedLines(
  parts: ListParts,
  filter: TaskFilter,
  after: SharedPlace | undefined,
  limit: number,
): Promise<string> {
  const items = await ownItems(parts, filter, after, limit)
  return items.map(({ place, json }) => `${sharedCursor(place)} ${json}\n`).join('')
}

async function ownItems(
  { store, keeper, resultFiles }: ListParts,
  filter: TaskFilter,
  after: SharedPlace | undefined,
  limit: number,
): Promise<Item[]> {
  const items: Item[] = []
  for (const task of await runCooperatively(placedTasks(store, filter, after, limit))) {
    const json = recordJson(task, resultFiles)
    items.push({ place: placeOfTask(task), json: typeof json === 'string' ? json : await json })
  }
  await keeper.kept('show')
  return items
}

/** Pages of one replica, with those of its tasks that were not taken yet. */
class Source {
  readonly #size: number
  readonly #page: (after: SharedPlace | undefined) => Promise<Item[]>
  #items: Item[] = []
  #next = 0
  #after: SharedPlace | undefined
  #isLast = false

  /** `size` is that of a full page. */
  constructor(size: number, after: SharedPlace | undefined, page: (after: SharedPlace | undefined) => Promise<Item[]>) {
    this.#size = size
    this.#after = after
    this.#page = page
  }

  get head(): Item | undefined {
    return this.#items[this.#next]
  }

  get isEmpty(): boolean {
    return this.head === undefined && !this.#isLast
  }

  async fill(): Promise<void> {
    this.#items = await this.#page(this.#after)
    this.#next = 0
    this.#isLast = this.#items.length < this.#size
    this.#after = this.#items.at(-1)?.place
  }

  take(): Item {
    return this.#items[this.#next++]!
  }
}

export interface JoinedTasks extends RecordList {
  /** Replicas whose tasks the list lacks. */
  readonly missing: readonly number[]
  /** A stream of events continues after this id. */
  readonly position: string
}

export async function joinedTasks(parts: JoinedParts, request: JoinedRequest): Promise<JoinedTasks> {
  const { filter, after, limit } = request
  const joined = await replicasToJoin(parts.keeper)
  const missing = [...joined.missing]
  const lacks: Lacks = { missing, positions: new Map(joined.silent.map((id) => [id, id])) }
  const { position } = parts.eventStreams
  const size = Math.min(limit === undefined ? Number.POSITIVE_INFINITY : limit + 1, MAX_TASKS_PER_REQUEST)
  const own = new Source(size, after, (from) => ownItems(parts, filter, from, size))
  const sources = [own]
  await Promise.all([
    own.fill(),
    ...joined.others.map(async (replica) => {
      const source = new Source(size, after, (from) => itemsOf(parts, replica, request, { after: from, size }, lacks))
      try {
        await source.fill()
        sources.push(source)
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        missing.push(replica.id)
        lacks.positions.set(replica.id, replica.id) // nobody knows how far
      }
    }),
  ])
  const known = { missing: [...new Set(missing)], position: [position, ...lacks.positions.values()].join('-') }
  const list = new MergedTasks(sources, limit)
  const { text, isLast } = await list.next()
  if (limit === undefined || isLast)
    return { firstPart: text, rest: isLast ? undefined : list, nextCursor: list.cursor, ...known }
  let whole = text // the cursor goes into a header
  for (let part = await list.next(); ; part = await list.next()) {
    whole += part.text
    if (part.isLast) return { firstPart: whole, rest: undefined, nextCursor: list.cursor, ...known }
  }
}

interface Lacks {
  /** Replicas whose tasks the list lacks. */
  readonly missing: number[]
  /** By replica: what a stream of its events continues after. */
  readonly positions: Map<number, number>
}

/** Adds to `lacks` what the page says. */
async function itemsOf(
  parts: JoinedParts,
  replica: AskedReplica,
  { query, traceId }: JoinedRequest,
  { after, size }: { readonly after: SharedPlace | undefined; readonly size: number },
  { missing, positions }: Lacks,
): Promise<Item[]> {
  const asked = new URLSearchParams(query)
  asked.set('limit', String(size))
  if (after !== undefined) asked.set('cursor', sharedCursor(after))
  const found = await joinedLines(parts, replica, `/tasks?${asked}`, traceId)
  missing.push(...found.missing)
  if (!positions.has(replica.id)) positions.set(replica.id, found.position) // that of the first page
  return found.lines.map(({ place, json }) => ({ place: sharedPlaceOf(place)!, json }))
}

class MergedTasks implements RestOfList {
  readonly #sources: readonly Source[]
  #left: number
  #separator = '['
  #last: SharedPlace | undefined
  /** The cursor of the next page. Undefined on the last page. */
  cursor: string | undefined

  constructor(sources: readonly Source[], limit = Number.POSITIVE_INFINITY) {
    this.#sources = sources
    this.#left = limit
  }

  async next(): Promise<Part> {
    let text = ''
    while (text.length < PART_CHARACTERS) {
      const source = await this.#first()
      if (source === undefined || this.#left === 0) {
        if (source !== undefined && this.#last !== undefined) this.cursor = sharedCursor(this.#last)
        return { text: `${text}${this.#separator === '[' ? '[' : ''}]`, isLast: true }
      }
      const { place, json } = source.take()
      if (this.#last !== undefined && inOrder(place, this.#last) <= 0) continue // a graph that changed hands meanwhile
      text += this.#separator + json
      this.#separator = ','
      this.#left--
      this.#last = place
    }
    return { text, isLast: false }
  }

  /** The source of the next task. Undefined if there is none. */
  async #first(): Promise<Source | undefined> {
    for (const source of this.#sources) if (source.isEmpty) await source.fill()
    let first: Source | undefined
    for (const source of this.#sources) {
      const { head } = source
      if (head !== undefined && (first === undefined || inOrder(head.place, first.head!.place) < 0)) first = source
    }
    return first
  }

  close(): void {
    this.#left = 0
  }
}
