/**
 * Shows one task, or one call of an MCP tool, once its state is kept, so that a crash undoes no state that was shown.
 */
import type { HandleRecord } from '../../shared/contract/mcp.ts'
import type { Waiting } from '../../shared/contract/waiting.ts'
import type { Task } from '../graph/graph.ts'
import { handleRecord } from '../graph/handle.ts'
import { ResultFile } from '../graph/result-file.ts'
import type { Keeper } from '../journal/keeper.ts'
import type { TaskStore } from '../store/tasks.ts'
import { callOf, knownCall, knownTask, type TaskAddress } from './named-tasks.ts'
import { callJson, recordJson } from './record-json.ts'
import type { ResultReader } from './stored-result.ts'
import { type WaitingParts, waitingNow } from './waiting.ts'

export interface GetParts extends WaitingParts {
  readonly store: TaskStore
  readonly keeper: Pick<Keeper, 'kept'>
}

/** The parts that the record of a call needs. */
export interface CallParts {
  readonly store: TaskStore
  readonly keeper: Pick<Keeper, 'kept'>
  readonly resultFiles: ResultReader
}

export interface RecordParts extends GetParts {
  readonly resultFiles: ResultReader
}

/** Calls `view` with the task and the reason why it waits. Throws 404. */
export async function getTask<V>(
  parts: GetParts,
  address: TaskAddress,
  view: (task: Task, waiting: Waiting | undefined) => V,
): Promise<V> {
  const { store, keeper } = parts
  const waiting = await waitingNow(parts, [knownTask(store, address)])
  const kept = keeper.kept('show')
  const task = knownTask(store, address)
  const shown = view(task, waiting(task))
  if (kept !== undefined) await kept
  return shown
}

/**
 * Returns the record of the task as JSON. First waits until the task has ended or the signal of `patience` fires;
 * without a signal it does not wait. `patience` is called once the task is found. Throws 404, also if the task is
 * deleted meanwhile.
 */
export async function getRecord(
  parts: RecordParts,
  address: TaskAddress,
  patience: () => AbortSignal | undefined,
): Promise<string> {
  const task = knownTask(parts.store, address)
  const until = patience()
  if (until !== undefined) await parts.store.whenEnded(task, until)
  return await getTask(parts, address, (known, waiting) => recordJson(known, parts.resultFiles, waiting))
}

/** The record of a call of an MCP tool, as JSON. Throws 404. */
export function getCall({ store, keeper, resultFiles }: CallParts, handleId: string): string | Promise<string> {
  const kept = keeper.kept('show')
  const json = callJson(knownCall(store, handleId), resultFiles)
  return kept === undefined ? json : kept.then(() => json)
}

/** As `getCall`, with the record as a value, for tasks that poll the call. Undefined if there is no such call. */
export async function pollCall(
  { store, resultFiles }: Pick<CallParts, 'store' | 'resultFiles'>,
  handleId: string,
): Promise<HandleRecord | undefined> {
  const task = callOf(store, handleId)
  if (task === undefined) return undefined
  return task.result instanceof ResultFile ? JSON.parse(await callJson(task, resultFiles)) : handleRecord(task)
}
