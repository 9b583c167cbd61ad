/** What names a graph or a task in a call, and the path of it. */

/** The id of a graph, or what has it: the answer to a submission, a record, an event. */
export type GraphReference = string | { readonly graph_id: string }

/**
 * A task: its id if that belongs to the service, else its graph and its id. A record and a `task_changed` event are such
 * references.
 */
export type TaskReference =
  | string
  | { readonly graph_id: string; readonly id: string }
  | { readonly graph_id: string; readonly task_id: string }

export function graphPath(graph: GraphReference): string {
  return `/graphs/${segment('graph', typeof graph === 'string' ? graph : graph.graph_id)}`
}

export function taskPath(task: TaskReference): string {
  if (typeof task === 'string') return `/tasks/${segment('task', task)}`
  return `${graphPath(task)}/tasks/${segment('task', 'id' in task ? task.id : task.task_id)}`
}

/** Throws `TypeError` for an id that cannot be part of an address. */
function segment(what: string, id: unknown): string {
  if (typeof id !== 'string' || id === '') throw new TypeError(`${what}: expected an id, got ${JSON.stringify(id)}`)
  // URL parsers resolve these, escaped or not.
  if (id === '.' || id === '..') throw new TypeError(`${what}: the id "${id}" cannot be part of an address`)
  try {
    return encodeURIComponent(id)
  } catch {
    throw new TypeError(`${what}: the id ${JSON.stringify(id)} has half of a character`)
  }
}
