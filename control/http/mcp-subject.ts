/** The graph that a message to `POST /mcp` is about. Pure. */
import { isObject } from '../../shared/text/json.ts'
import type { NamedGraph } from '../log/keeper.ts'

/** Where to look, one after the other; nothing for a message that names none. A text may be the id of a task, or `graph_id/task_id`. */
export function subjectsOf(body: unknown): NamedGraph[] {
  if (!isObject(body) || body.method !== 'tools/call' || !isObject(body.params)) return []
  const given = body.params.arguments
  if (!isObject(given)) return []
  const { graph_id, task_id, task_ids } = given
  if (typeof graph_id === 'string') return [{ graphId: graph_id }]
  const [id] = typeof task_id === 'string' ? [task_id] : Array.isArray(task_ids) ? task_ids : []
  if (typeof id !== 'string') return []
  const slash = id.indexOf('/')
  return [{ taskId: id }, ...(slash > 0 ? [{ graphId: id.slice(0, slash) }] : [])]
}
