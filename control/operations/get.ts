/** Shows one task, or one call of an MCP tool. Its state has reached the journal, so a crash does not undo it. */
import type { HandleRecord } from '../../shared/contract/mcp.ts'
import type { Task } from '../graph/graph.ts'
import { handleRecord } from '../graph/handle.ts'
import { ResultFile } from '../graph/result-file.ts'
import type { Persistence } from '../journal/persistence.ts'
import type { TaskStore } from '../store/tasks.ts'
import { callOf, knownCall, knownTask, type TaskAddress } from './named-tasks.ts'
import { callJson, recordJson } from './record-json.ts'
import type { ResultReader } from './stored-result.ts'

export interface GetParts {
  readonly store: TaskStore
  readonly persistence: Pick<Persistence, 'flush'>
}

export interface RecordParts extends GetParts {
  readonly resultFiles: ResultReader
}

/** What `view` makes of the task. Throws 404. */
export function getTask<V>({ store, persistence }: GetParts, address: TaskAddress, view: (task: Task) => V): V {
  persistence.flush()
  return view(knownTask(store, address))
}

/**
 * The record of the task, as JSON. Waits for the end of the task first, until the signal of `patience` fires, which is
 * asked for once the task is known to exist; undefined does not wait. Throws 404, also for a task deleted meanwhile.
 */
export async function getRecord(
  parts: RecordParts,
  address: TaskAddress,
  patience: () => AbortSignal | undefined,
): Promise<string> {
  const task = knownTask(parts.store, address)
  const until = patience()
  if (until !== undefined) await parts.store.whenEnded(task, until)
  return getTask(parts, address, (known) => recordJson(known, parts.resultFiles))
}

/** The record of a call of an MCP tool, as JSON. Throws 404. */
export function getCall({ store, persistence, resultFiles }: RecordParts, handleId: string): string | Promise<string> {
  persistence.flush()
  return callJson(knownCall(store, handleId), resultFiles)
}

/** The same as a value, for a task that polls the call; undefined if there is no such call. */
export async function pollCall(
  { store, resultFiles }: Pick<RecordParts, 'store' | 'resultFiles'>,
  handleId: string,
): Promise<HandleRecord | undefined> {
  const task = callOf(store, handleId)
  if (task === undefined) return undefined
  return task.result instanceof ResultFile ? JSON.parse(await callJson(task, resultFiles)) : handleRecord(task)
}
