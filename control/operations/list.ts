/**
 * Lists tasks: in the order of their creation as JSON records, or the newest first as a caller views them.
 *
 * Each part of a list is flushed to the journal before it is shown. Tasks may change while a long list is read.
 */
import { isYieldDue, nextTurn, runCooperatively, SLICE_MS, type Steps } from '../../shared/steps.ts'
import type { Task } from '../graph/graph.ts'
import type { Persistence } from '../journal/persistence.ts'
import type { TaskStore } from '../store/tasks.ts'
import { knownGraph } from './named-tasks.ts'
import { recordJson } from './record-json.ts'
import type { ResultReader } from './stored-result.ts'
import {
  candidates,
  cursorOf,
  isListed,
  isWanted,
  type PageRequest,
  type Place,
  pageOf,
  type TaskFilter,
} from './task-filter.ts'

export interface ListParts {
  readonly store: TaskStore
  readonly persistence: Pick<Persistence, 'flush'>
  readonly resultFiles: ResultReader
}

export interface ListRequest {
  readonly filter: TaskFilter
  /** Undefined: all tasks that pass the filter. */
  readonly page: Pick<PageRequest, 'after' | 'limit'> | undefined
}

/** A JSON array of records. */
export interface RecordList {
  /** All of it, or its beginning. */
  readonly firstPart: string
  /** What follows; undefined where the first part is all. */
  readonly rest: RestOfList | undefined
  /** Of the next page; undefined on the last one, and where no page was asked for. */
  readonly nextCursor: string | undefined
}

export interface RestOfList {
  next(): Promise<Part>
  close(): void
}

export interface Part {
  readonly text: string
  readonly isLast: boolean
}

/** How much of a list is made at a time, before others have a turn. */
interface PartSize {
  readonly characters: number
  readonly ms: number
}

/** A part that is handed to the socket at once. */
const CHUNK: PartSize = { characters: 64 * 1024, ms: SLICE_MS }

/**
 * A page of 1,000 records of 2 KB, which takes a few milliseconds. Such a page is made at once, so pages may be asked for
 * ahead on one connection. A page that takes more than that is made in chunks, as a long list is.
 */
const PAGE: PartSize = { characters: 2 * 1024 * 1024, ms: 25 }

/**
 * The wanted tasks, oldest first. The rest is made while it is read: a slow reader holds no copy of it. Throws 404 if
 * the list of a whole graph is asked for and there is no such graph.
 */
export async function listRecords(parts: ListParts, { filter, page }: ListRequest): Promise<RecordList> {
  const { store } = parts
  const { graphId, isWholeGraph } = filter
  if (isWholeGraph && graphId !== undefined) knownGraph(store, graphId)
  if (page === undefined) {
    const found = candidates(store, filter)
    return inParts(new RecordParts(parts, found, (task) => isWanted(filter, task)), CHUNK, undefined)
  }
  const { tasks, nextCursor } = await runCooperatively(pageOf(store, { filter, ...page }), PAGE.ms)
  const isStillListed = (task: Task) => isListed(store, filter, task)
  return inParts(new RecordParts(parts, tasks.values(), isStillListed), PAGE, nextCursor)
}

async function inParts(records: RecordParts, firstSize: PartSize, nextCursor: string | undefined): Promise<RecordList> {
  const { text, isLast } = await records.next(firstSize)
  return { firstPart: text, rest: isLast ? undefined : records, nextCursor }
}

class RecordParts implements RestOfList {
  readonly #parts: ListParts
  readonly #tasks: Iterator<Task>
  readonly #isListed: (task: Task) => boolean
  #separator = '['

  constructor(parts: ListParts, tasks: Iterator<Task>, isListed: (task: Task) => boolean) {
    this.#parts = parts
    this.#tasks = tasks
    this.#isListed = isListed
  }

  async next({ characters, ms } = CHUNK): Promise<Part> {
    const { persistence, resultFiles } = this.#parts
    let text = ''
    for (;;) {
      persistence.flush()
      const sliceEnd = performance.now() + ms
      while (text.length < characters && performance.now() < sliceEnd) {
        const next = this.#tasks.next()
        if (next.done) return { text: `${text}${this.#separator === '[' ? '[' : ''}]`, isLast: true }
        if (!this.#isListed(next.value)) continue
        const json = recordJson(next.value, resultFiles)
        text += this.#separator + (typeof json === 'string' ? json : await json)
        this.#separator = ','
      }
      if (text !== '') return { text, isLast: false }
      await nextTurn() // none of the tasks of this slice is wanted
    }
  }

  close(): void {
    this.#tasks.return?.(undefined)
  }
}

export interface NewestRequest {
  readonly filter: TaskFilter
  /** Only tasks before this place; undefined: from the newest on. */
  readonly before: Place | undefined
  readonly limit: number
}

export interface NewestTasks<V> {
  /** How many of all wanted tasks are in which state. */
  readonly counts: Readonly<Record<string, number>>
  /** The newest first. */
  readonly tasks: readonly V[]
  /** Place of the oldest of them; undefined where no older task is wanted. */
  readonly nextCursor: string | undefined
}

/** The newest of the wanted tasks, each as `view` shows it. */
export async function listNewest<V>(
  { store, persistence }: Pick<ListParts, 'store' | 'persistence'>,
  request: NewestRequest,
  view: (task: Task) => V,
): Promise<NewestTasks<V>> {
  const { counts, last, hasMore } = await runCooperatively(scan(store, request))
  const oldest = last[0]
  persistence.flush()
  return {
    counts,
    tasks: last.reverse().map(view),
    nextCursor: hasMore && oldest !== undefined ? cursorOf(oldest) : undefined,
  }
}

interface Scan {
  readonly counts: Readonly<Record<string, number>>
  /** The oldest first. */
  readonly last: Task[]
  readonly hasMore: boolean
}

/** The last `limit` of the wanted tasks before a place, and the numbers of all that are wanted. There may be a million. */
function* scan(store: TaskStore, { filter, before, limit }: NewestRequest): Steps<Scan> {
  const counts: Record<string, number> = {}
  const ring: Task[] = []
  let found = 0
  let i = 0
  for (const task of candidates(store, filter)) {
    if (isWanted(filter, task)) {
      counts[task.status] = (counts[task.status] ?? 0) + 1
      if (before === undefined || isBefore(task, before)) ring[found++ % limit] = task
    }
    if (isYieldDue(i++)) yield
  }
  const start = found > limit ? found % limit : 0
  return { counts, last: [...ring.slice(start), ...ring.slice(0, start)], hasMore: found > limit }
}

const isBefore = ({ graph, position }: Task, place: Place): boolean =>
  graph.ordinal < place.ordinal || (graph.ordinal === place.ordinal && position < place.position)
