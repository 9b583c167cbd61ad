/** The query of GET /tasks: filter and page. Pure. */
import { t } from 'elysia'
import { TASK_STATUSES, type TaskStatus } from '../../shared/contract/task-status.ts'
import { badRequest } from '../../shared/errors.ts'
import { nearestName } from '../../shared/nearest-name.ts'
import { didYouMean } from '../../shared/unknown-names.ts'
import { LEGACY_OS_TYPES, normalizeTool } from '../graph/normalize.ts'
import { isKnownType } from '../graph/validate.ts'
import type { ListRequest } from '../operations/list.ts'
import { placeOf } from '../operations/task-filter.ts'

/** Most tasks of one page. */
export const MAX_PAGE_TASKS = 1_000

/** Most values of one parameter. */
const MAX_VALUES = 32

const repeatable = t.Optional(t.Union([t.String(), t.Array(t.String())]))

export const taskQuery = t.Object(
  {
    status: repeatable,
    type: repeatable,
    graph_id: t.Optional(t.String()),
    limit: t.Optional(t.String()),
    cursor: t.Optional(t.String()),
  },
  { additionalProperties: true },
)
type TaskQuery = typeof taskQuery.static

/** Throws 400 with the parameter, its value and the allowed values. */
export function taskListRequest(query: TaskQuery, types: ReadonlySet<string>): ListRequest {
  const { status, type, graph_id: graphId, limit, cursor } = query
  if (graphId === '') throw badRequest('invalid graph_id "": expected the id of a graph')
  return {
    filter: {
      statuses: statusesOf(status),
      tools: valuesOf('type', type).map((value) => toolOf(value, types)),
      graphId,
    },
    page:
      limit === undefined && cursor === undefined
        ? undefined
        : { limit: limitOf(limit), after: cursor === undefined ? undefined : afterOf(cursor) },
  }
}

/** Values of a parameter, which may be repeated and may hold several values with commas between them. */
function valuesOf(name: string, given: string | string[] | undefined): string[] {
  const values = [given ?? []].flat().flatMap((text) => text.split(','))
  if (values.length > MAX_VALUES) throw badRequest(`${name} has ${values.length} values (at most ${MAX_VALUES})`)
  return values
}

const statusesOf = (given: string | string[] | undefined): TaskStatus[] =>
  valuesOf('status', given).map((value) => {
    if ((TASK_STATUSES as readonly string[]).includes(value)) return value as TaskStatus
    throw invalidValue('status', value, TASK_STATUSES)
  })

/** Also in the short forms in which a task may be submitted: `shell`, `os.shell`, `runtime.command`. */
function toolOf(value: string, types: ReadonlySet<string>) {
  if (isKnownType(value, types)) return normalizeTool(value, undefined)
  throw invalidValue('type', value, [...[...types].sort(), ...[...LEGACY_OS_TYPES].sort()])
}

const invalidValue = (name: string, value: string, known: readonly string[]) =>
  badRequest(
    `invalid ${name} ${JSON.stringify(value)}: expected ${known.join(', ')}${didYouMean(nearestName(value, known))}`,
  )

function limitOf(text: string | undefined): number {
  if (text === undefined) return MAX_PAGE_TASKS
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (limit >= 1 && limit <= MAX_PAGE_TASKS) return limit
  throw badRequest(`invalid limit ${JSON.stringify(text)}: expected a whole number from 1 to ${MAX_PAGE_TASKS}`)
}

function afterOf(cursor: string) {
  const place = placeOf(cursor)
  if (place !== undefined) return place
  throw badRequest(`invalid cursor ${JSON.stringify(cursor)}: expected the X-Next-Cursor of an earlier answer`)
}
