/** The query of GET /tasks: filter and page. Pure. */

import { badRequest } from '../../shared/contract/errors.ts'
import { TASK_STATUSES } from '../../shared/contract/task-status.ts'
import { anyText, type QueryOf, repeatable, wholeNumber } from '../../shared/http/openapi/route.ts'
import type { ListRequest, TaskLists } from '../operations/list.ts'
import type { TaskFilter } from '../operations/task-filter.ts'
import { LEGACY_OS_TYPES, normalizeTool } from '../rules/normalize.ts'
import { isKnownType } from '../rules/validate.ts'
import { invalidCursor, invalidValue, knownValues, limitOf, valuesOf } from './query-values.ts'

/** Most tasks of one page. */
export const MAX_PAGE_TASKS = 1_000

export const taskQuery = {
  status: repeatable('A state.', TASK_STATUSES),
  type: repeatable('A type (os), or a tool in any submitted form (shell, os.shell, runtime.command).'),
  graph_id: anyText('Tasks of one graph.'),
  limit: wholeNumber(1, MAX_PAGE_TASKS, `Tasks of a page. With cursor the default is ${MAX_PAGE_TASKS}.`),
  cursor: anyText('X-Next-Cursor of an earlier answer with the same filter: continues after that page.'),
}
type TaskQuery = QueryOf<typeof taskQuery>

const { graph_id: _, ...ofAnyGraph } = taskQuery

/** The query of GET /graphs/{id}/tasks. */
export const graphTaskQuery = ofAnyGraph

/** `lists` knows the cursors. Throws 400 with the parameter, its value and the allowed values. */
export function taskListRequest(
  query: TaskQuery,
  types: ReadonlySet<string>,
  lists: Pick<TaskLists, 'isCursor'>,
): ListRequest {
  const { limit, cursor } = query
  const filter = filterOf(query, types)
  if (limit === undefined && cursor === undefined) return { filter, cursor, limit }
  const asked = limitOf(limit, { most: MAX_PAGE_TASKS, standard: MAX_PAGE_TASKS })
  if (cursor !== undefined && !lists.isCursor(cursor)) throw invalidCursor(cursor)
  return { filter, cursor, limit: asked }
}

function filterOf({ status, type, graph_id: graphId }: TaskQuery, types: ReadonlySet<string>): TaskFilter {
  if (graphId === '') throw badRequest('invalid graph_id "": expected the id of a graph')
  return {
    statuses: knownValues('status', status, TASK_STATUSES),
    tools: valuesOf('type', type).map((value) => toolOf(value, types)),
    graphId,
  }
}

/** Also in the short forms in which a task may be submitted: `shell`, `os.shell`, `runtime.command`. */
function toolOf(value: string, types: ReadonlySet<string>) {
  if (isKnownType(value, types)) return normalizeTool(value, undefined)
  throw invalidValue('type', value, [...[...types].sort(), ...[...LEGACY_OS_TYPES].sort()])
}
