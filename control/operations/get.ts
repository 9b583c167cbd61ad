/** Shows one task, or one call of an MCP tool. What is shown has reached the journal: a crash does not undo it. */
import type { Task } from '../graph/graph.ts'
import type { Handles } from '../journal/handles.ts'
import type { Persistence } from '../journal/persistence.ts'
import type { ResultFiles } from '../journal/result-files.ts'
import type { TaskStore } from '../store/tasks.ts'
import { knownTask, NotFound } from './named-tasks.ts'
import { recordJson } from './record-json.ts'

export interface GetParts {
  readonly store: TaskStore
  readonly persistence: Pick<Persistence, 'flush'>
}

/** What `view` makes of the task. Throws 404. */
export function getTask<V>({ store, persistence }: GetParts, id: string, view: (task: Task) => V): V {
  persistence.flush()
  return view(knownTask(store, id))
}

/**
 * The record of the task, as JSON. Waits for the end of the task first, until the signal of `patience` fires, which is
 * asked for once the task is known to exist; undefined does not wait. Throws 404, also for a task deleted meanwhile.
 */
export async function getRecord(
  parts: GetParts & { readonly resultFiles: Pick<ResultFiles, 'read'> },
  id: string,
  patience: () => AbortSignal | undefined,
): Promise<string> {
  const task = knownTask(parts.store, id)
  const until = patience()
  if (until !== undefined) await parts.store.whenEnded(task, until)
  return getTask(parts, id, (known) => recordJson(known, parts.resultFiles))
}

/** The record of a call of an MCP tool, as JSON. Throws 404. */
export function getCall(
  { handles, persistence }: { readonly handles: Handles; readonly persistence: Pick<Persistence, 'flush'> },
  handleId: string,
): string | Promise<string> {
  persistence.flush()
  const record = handles.json(handleId)
  if (record === undefined) throw new NotFound('handle', handleId)
  return record
}
