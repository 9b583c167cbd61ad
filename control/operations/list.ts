/**
 * Lists tasks as JSON records, in the order of their creation.
 *
 * Each part of a list is shown once all that it shows is kept. Tasks may change while a long list is read.
 */
import { nextTurn, runCooperatively, SLICE_MS } from '../../shared/process/steps.ts'
import type { Task } from '../task/graph.ts'
import { knownGraph } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'
import { recordJson } from './record-json.ts'
import { candidates, isListed, isWanted, pageOf, placeOf, type TaskFilter } from './task-filter.ts'

export interface ListRequest {
  readonly filter: TaskFilter
  /** The end of the page before; undefined for the first one. */
  readonly cursor: string | undefined
  /** Undefined: all matching tasks. */
  readonly limit: number | undefined
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

export interface TaskList extends RecordList {
  /** Replicas whose tasks the list lacks. */
  readonly missing: readonly number[]
  /** A stream of events continues after this id. */
  readonly position: string
}

/** Lists all tasks. The replicas of a database share an order of tasks, which a service without one does not need. */
export interface TaskLists {
  /** Whether a text is the cursor of a page. */
  isCursor(text: string): boolean
  list(parts: OperationParts, request: ListRequest, traceId: string): Promise<TaskList>
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

/** Lists the tasks that this service has. Throws 404 if the filter wants all tasks of a graph that does not exist. */
export const ownTaskLists: TaskLists = {
  isCursor: (text) => placeOf(text) !== undefined,
  async list(parts, request) {
    const position = String(parts.eventStreams.position) // before the page
    return { ...(await listRecords(parts, request)), missing: [], position }
  },
}

/**
 * Lists the matching tasks, oldest first. Records are made while the reader takes them, so a slow reader needs no
 * memory.
 */
async function listRecords(parts: OperationParts, { filter, cursor, limit }: ListRequest): Promise<RecordList> {
  const { store } = parts
  const { graphId, isWholeGraph } = filter
  if (isWholeGraph && graphId !== undefined) knownGraph(store, graphId)
  if (limit === undefined) {
    const found = candidates(store, filter)
    return inParts(new ListedRecords(parts, found, (task) => isWanted(filter, task)), CHUNK, undefined)
  }
  const after = cursor === undefined ? undefined : placeOf(cursor)
  const { tasks, nextCursor } = await runCooperatively(pageOf(store, { filter, after, limit }), PAGE.ms)
  const isStillListed = (task: Task) => isListed(store, filter, task)
  return inParts(new ListedRecords(parts, tasks.values(), isStillListed), PAGE, nextCursor)
}

async function inParts(
  records: ListedRecords,
  firstSize: PartSize,
  nextCursor: string | undefined,
): Promise<RecordList> {
  const { text, isLast } = await records.next(firstSize)
  return { firstPart: text, rest: isLast ? undefined : records, nextCursor }
}

class ListedRecords implements RestOfList {
  readonly #parts: OperationParts
  readonly #tasks: Iterator<Task>
  readonly #isListed: (task: Task) => boolean
  #separator = '['

  constructor(parts: OperationParts, tasks: Iterator<Task>, isListed: (task: Task) => boolean) {
    this.#parts = parts
    this.#tasks = tasks
    this.#isListed = isListed
  }

  async next({ characters, ms } = CHUNK): Promise<Part> {
    const { keeper } = this.#parts
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
        const json = recordJson(next.value, keeper.results)
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
