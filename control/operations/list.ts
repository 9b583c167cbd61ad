/**
 * Lists tasks: as JSON records in the order of their creation, or through `view` with the newest first.
 *
 * Each part of a list is shown once all that it shows is kept. Tasks may change while a long list is read.
 */
import { isYieldDue, nextTurn, runCooperatively, SLICE_MS, type Steps } from '../../shared/process/steps.ts'
import type { Task } from '../graph/graph.ts'
import type { Keeper } from '../log/keeper.ts'
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
  readonly keeper: Pick<Keeper, 'kept'>
  readonly resultFiles: ResultReader
}

export interface ListRequest {
  readonly filter: TaskFilter
  /** Undefined: all matching tasks. */
  readonly page: Pick<PageRequest, 'after' | 'limit'> | undefined
}

/** A JSON array of records. */
export interface RecordList {
  /** The whole array, or its beginning. */
  readonly firstPart: string
  /** The rest of the array; undefined if `firstPart` is the whole array. */
  readonly rest: RestOfList | undefined
  /** Cursor of the next page; undefined on the last page and for lists without pages. */
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

/** Limits of a part: its characters, and the milliseconds spent on it in one turn of the event loop. */
interface PartSize {
  readonly characters: number
  readonly ms: number
}

/** The size of a chunk that is handed to the socket. */
const CHUNK: PartSize = { characters: 64 * 1024, ms: SLICE_MS }

/**
 * The size of a page that is made in one piece, so that clients can pipeline requests for pages. It is enough for
 * 1,000 records of 2 KB, which take a few milliseconds. Larger pages are made in chunks, like long lists.
 */
const PAGE: PartSize = { characters: 2 * 1024 * 1024, ms: 25 }

/**
 * Lists the matching tasks, oldest first. Records are made while the reader takes them, so a slow reader needs no
 * memory. Throws 404 if the filter wants all tasks of a graph that does not exist.
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
    const { keeper, resultFiles } = this.#parts
    let text = ''
    for (;;) {
      const sliceEnd = performance.now() + ms
      while (text.length < characters && performance.now() < sliceEnd) {
        const next = this.#tasks.next()
        if (next.done) {
          await keeper.kept('show')
          return { text: `${text}${this.#separator === '[' ? '[' : ''}]`, isLast: true }
        }
        if (!this.#isListed(next.value)) continue
        const json = recordJson(next.value, resultFiles)
        text += this.#separator + (typeof json === 'string' ? json : await json)
        this.#separator = ','
      }
      if (text !== '') {
        await keeper.kept('show')
        return { text, isLast: false }
      }
      await nextTurn() // no task of this slice matches
    }
  }

  close(): void {
    this.#tasks.return?.(undefined)
  }
}

export interface NewestRequest {
  readonly filter: TaskFilter
  /** End of the page, exclusive. Undefined: the newest task. */
  readonly before: Place | undefined
  readonly limit: number
}

export interface NewestTasks<V> {
  /** Number of matching tasks in each state, on all pages. */
  readonly counts: Readonly<Record<string, number>>
  /** The newest first. */
  readonly tasks: readonly V[]
  /** Position of the oldest task of the page; undefined if no older task matches. */
  readonly nextCursor: string | undefined
}

/** Lists the newest matching tasks, each as `view` shows it. */
export async function listNewest<V>(
  { store, keeper }: Pick<ListParts, 'store' | 'keeper'>,
  request: NewestRequest,
  view: (task: Task) => V,
): Promise<NewestTasks<V>> {
  const { counts, last, hasMore } = await runCooperatively(scan(store, request))
  const oldest = last[0]
  const kept = keeper.kept('show')
  const tasks = last.reverse().map(view)
  await kept
  return { counts, tasks, nextCursor: hasMore && oldest !== undefined ? cursorOf(oldest) : undefined }
}

interface Scan {
  readonly counts: Readonly<Record<string, number>>
  /** The oldest first. */
  readonly last: Task[]
  readonly hasMore: boolean
}

/**
 * Finds the last `limit` matching tasks before a position, and counts all matching tasks, of which there may be a
 * million.
 */
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
