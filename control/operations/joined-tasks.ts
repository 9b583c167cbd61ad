/** Lists the tasks of all replicas in one order. */
import { runCooperatively } from '../../shared/process/steps.ts'
import { type Entries, joinedItems, linesOf, type Page, pageIn } from './joined-pages.ts'
import type { Part, RestOfList, TaskLists } from './list.ts'
import type { OperationParts } from './parts.ts'
import { OLDEST_TASKS_FIRST, placedTasks, placeOfTask, type SharedPlace, sharedPlaceOf } from './placed-tasks.ts'
import { recordJson } from './record-json.ts'
import type { TaskFilter } from './task-filter.ts'

/** Maximum tasks that a replica is asked for at a time. */
const MAX_TASKS_PER_REQUEST = 1_000

/** Characters of a part of the answer. */
const PART_CHARACTERS = 64 * 1024

/** The tasks of this replica for another one: a line each, with the place and the record. */
export const placedLines = async (
  parts: OperationParts,
  filter: TaskFilter,
  after: SharedPlace | undefined,
  limit: number,
): Promise<string> => linesOf(OLDEST_TASKS_FIRST, await ownPage(parts, filter, after, limit), (json) => json)

async function ownPage(
  { store, keeper }: OperationParts,
  filter: TaskFilter,
  after: SharedPlace | undefined,
  limit: number,
): Promise<Page<SharedPlace, string>> {
  const items: { readonly place: SharedPlace; readonly value: string }[] = []
  for (const task of await runCooperatively(placedTasks(store, filter, after, limit))) {
    const json = recordJson(task, keeper.results)
    items.push({ place: placeOfTask(task), value: typeof json === 'string' ? json : await json })
  }
  await keeper.kept('show')
  return { items, hasMore: items.length === limit }
}

/** Lists the tasks of all replicas. */
export const joinedTaskLists: TaskLists = {
  isCursor: (text) => sharedPlaceOf(text) !== undefined,
  async list(parts, { filter, cursor, limit }, traceId) {
    const size = Math.min(limit === undefined ? Number.POSITIVE_INFINITY : limit + 1, MAX_TASKS_PER_REQUEST)
    const list = {
      ...{ order: OLDEST_TASKS_FIRST, path: '/replicas/tasks', query: queryOf(filter), size },
      after: cursor === undefined ? undefined : sharedPlaceOf(cursor),
      own: (from: SharedPlace | undefined) => ownPage(parts, filter, from, size),
      read: (json: string) => json,
    }
    const { items, ...known } = await joinedItems(parts, list, traceId)
    if (limit === undefined) {
      const records = new JoinedRecords(items)
      const { text, isLast } = await records.next()
      return { firstPart: text, rest: isLast ? undefined : records, nextCursor: undefined, ...known }
    }
    const { values, nextCursor } = await pageIn(items, OLDEST_TASKS_FIRST, limit) // the cursor goes into a header
    return { firstPart: `[${values.join()}]`, rest: undefined, nextCursor, ...known }
  },
}

function queryOf({ statuses = [], tools = [] }: TaskFilter): URLSearchParams {
  const query = new URLSearchParams()
  for (const status of statuses) query.append('status', status)
  for (const { type, toolName } of tools) query.append('type', toolName === undefined ? type : `${type}.${toolName}`)
  return query
}

class JoinedRecords implements RestOfList {
  readonly #items: Entries<SharedPlace, string>
  #separator = '['

  constructor(items: Entries<SharedPlace, string>) {
    this.#items = items
  }

  async next(): Promise<Part> {
    let text = ''
    while (text.length < PART_CHARACTERS) {
      const { value: item, done } = await this.#items.next()
      if (done) return { text: `${text}${this.#separator === '[' ? '[' : ''}]`, isLast: true }
      text += this.#separator + item.value
      this.#separator = ','
    }
    return { text, isLast: false }
  }

  close(): void {}
}
