/**
 * Lists the tasks of all replicas in one order.
 *
 * Each replica is asked for pages of its tasks in that order, and the pages are merged. A replica that does not answer the
 * first request is left out, and named in the answer. Later, the list breaks with it.
 */
import { runCooperatively } from '../../shared/process/steps.ts'
import type { Keeper } from '../log/keeper.ts'
import { type JoinedLines, joinedLines, pagesElsewhere, replicasToJoin } from './joined-lines.ts'
import type { ListParts, ListRequest, OwnListsParts, Part, RestOfList, TaskList, TaskLists } from './list.ts'
import { inOrder, placedTasks, placeOfTask, type SharedPlace, sharedCursor, sharedPlaceOf } from './placed-tasks.ts'
import { recordJson } from './record-json.ts'
import type { TaskFilter } from './task-filter.ts'

/** Maximum tasks that a replica is asked for at a time. */
const MAX_TASKS_PER_REQUEST = 1_000

/** Characters of a part of the answer. */
const PART_CHARACTERS = 64 * 1024

export interface JoinedParts extends OwnListsParts {
  readonly keeper: Pick<Keeper, 'kept' | 'others' | 'replica'>
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
  #isLast = false

  /** `size` is that of a full page. */
  constructor(size: number, page: (after: SharedPlace | undefined) => Promise<Item[]>) {
    this.#size = size
    this.#page = page
  }

  /** The next page. */
  show(items: Item[]): this {
    this.#items = items
    this.#next = 0
    this.#isLast = items.length < this.#size
    return this
  }

  get head(): Item | undefined {
    return this.#items[this.#next]
  }

  get isEmpty(): boolean {
    return this.head === undefined && !this.#isLast
  }

  async fill(): Promise<void> {
    this.show(await this.#page(this.#items.at(-1)?.place))
  }

  take(): Item {
    return this.#items[this.#next++]!
  }
}

/** Lists the tasks of all replicas. */
export class JoinedTaskLists implements TaskLists {
  readonly #parts: JoinedParts

  constructor(parts: JoinedParts) {
    this.#parts = parts
  }

  isCursor(text: string): boolean {
    return sharedPlaceOf(text) !== undefined
  }

  async list({ filter, cursor, limit }: ListRequest, traceId: string): Promise<TaskList> {
    const parts = this.#parts
    const after = cursor === undefined ? undefined : sharedPlaceOf(cursor)
    const size = Math.min(limit === undefined ? Number.POSITIVE_INFINITY : limit + 1, MAX_TASKS_PER_REQUEST)
    const joined = await replicasToJoin(parts.keeper)
    const { position } = parts.eventStreams
    const pathAfter = (from: SharedPlace | undefined) => `/replicas/tasks?${queryOf(filter, from, size)}`
    const own = new Source(size, (from) => ownItems(parts, filter, from, size))
    const first = { path: pathAfter(after), traceId }
    const [items, elsewhere] = await Promise.all([
      ownItems(parts, filter, after, size),
      pagesElsewhere(parts, joined, first, (found, replica) => {
        const rest = async (from: SharedPlace | undefined) =>
          itemsIn(await joinedLines(parts, replica, { path: pathAfter(from), traceId }))
        return new Source(size, rest).show(itemsIn(found))
      }),
    ])
    const list = new MergedTasks([own.show(items), ...elsewhere.pages], limit)
    const known = { missing: elsewhere.missing, position: [position, ...elsewhere.positions].join('-') }
    const { text, isLast } = await list.next()
    if (limit === undefined || isLast)
      return { firstPart: text, rest: isLast ? undefined : list, nextCursor: list.cursor, ...known }
    let whole = text // the cursor goes into a header
    for (let part = await list.next(); ; part = await list.next()) {
      whole += part.text
      if (part.isLast) return { firstPart: whole, rest: undefined, nextCursor: list.cursor, ...known }
    }
  }
}

function queryOf({ statuses = [], tools = [] }: TaskFilter, after: SharedPlace | undefined, limit: number) {
  const query = new URLSearchParams({ limit: String(limit) })
  for (const status of statuses) query.append('status', status)
  for (const { type, toolName } of tools) query.append('type', toolName === undefined ? type : `${type}.${toolName}`)
  if (after !== undefined) query.set('cursor', sharedCursor(after))
  return query
}

const itemsIn = ({ lines }: JoinedLines): Item[] =>
  lines.map(({ place, json }) => ({ place: sharedPlaceOf(place)!, json }))

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
