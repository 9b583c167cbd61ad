/**
 * Shows one task, or one call of an MCP tool, once its state is kept, so that a crash undoes no state that was shown.
 */
import type { HandleRecord } from '../../shared/contract/mcp.ts'
import type { Waiting } from '../../shared/contract/waiting.ts'
import type { AskedReplica, Keeper, OtherReplicas } from '../log/keeper.ts'
import { noOwner } from '../log/no-owner.ts'
import { ResultFile } from '../rules/result-file.ts'
import type { Task } from '../task/graph.ts'
import { handleRecord } from '../task/handle.ts'
import { callOf, knownCall, knownTask, type TaskAddress } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'
import { callJson, recordJson } from './record-json.ts'
import { othersOf, storeOf } from './tenant-view.ts'
import { handleElsewhere, type WaitingNow, waitingHere, waitingNow } from './waiting.ts'

/**
 * Calls `view` with the task and the reason why it waits. Returns at once what can be told at once. Throws 404, also if
 * the task is deleted meanwhile.
 */
export function getTask<V>(parts: OperationParts, address: TaskAddress, view: TaskView<V>): V | Promise<V> {
  const task = knownTask(parts.store, address)
  if (handleElsewhere(task) === undefined) return shown(parts, task, (known) => waitingHere(parts, known), view)
  return waitingNow(parts, [task]).then((waiting) => shown(parts, knownTask(parts.store, address), waiting, view))
}

/** What `view` returns, once the state of which it tells is kept. */
function shown<V>({ keeper }: OperationParts, task: Task, waiting: WaitingNow, view: TaskView<V>): V | Promise<V> {
  const kept = keeper.kept('show')
  const value = view(task, waiting(task))
  return kept === undefined ? value : kept.then(() => value)
}

type TaskView<V> = (task: Task, waiting: Waiting | undefined) => V | Promise<V>

/**
 * Returns the record of the task as JSON. First waits until the task has ended or the signal of `patience` fires;
 * without a signal it does not wait. `patience` is called once the task is found, with whether it has ended. Throws 404,
 * also if the task is deleted meanwhile.
 */
export function getRecord(
  parts: OperationParts,
  address: TaskAddress,
  patience: (hasEnded: boolean) => AbortSignal | undefined,
): string | Promise<string> {
  const task = knownTask(parts.store, address)
  const until = patience(task.isTerminal)
  const record = () => getTask(parts, address, (known, waiting) => recordJson(known, parts.keeper.results, waiting))
  return until === undefined ? record() : parts.store.whenEnded(task, until).then(record)
}

/** The record of a call of an MCP tool, as JSON. Throws 404. */
export function getCall({ store, keeper }: OperationParts, handleId: string): string | Promise<string> {
  const kept = keeper.kept('show')
  const json = callJson(knownCall(store, handleId), keeper.results)
  return kept === undefined ? json : kept.then(() => json)
}

/**
 * As `getCall`, with the record as a value, for tasks that poll the call. A call of their own graph goes first. The owner of
 * a call that is not here is asked. Undefined if there is no such call. Rejects with 503.
 */
export async function pollCall(
  { store, keeper }: Pick<OperationParts, 'store' | 'keeper'>,
  handleId: string,
  graphId: string,
): Promise<HandleRecord | undefined> {
  const graph = store.graph(graphId)
  if (graph === undefined) return undefined // the task that polls was deleted
  const sibling = store.taskIn(graph, handleId)
  if (sibling?.type === 'mcp') return await recordOf(sibling, keeper)
  const { tenant } = graph
  const others = tenant === undefined ? keeper.others : othersOf(keeper.others, tenant)
  const owner = await others.ownerOf({ taskId: handleId })
  if (owner !== undefined) return await pollElsewhere(others, owner, handleId)
  const task = callOf(tenant === undefined ? store : storeOf(store, tenant), handleId)
  return task === undefined ? undefined : await recordOf(task, keeper)
}

const recordOf = async (task: Task, { results }: Keeper): Promise<HandleRecord> =>
  task.result instanceof ResultFile ? JSON.parse(await callJson(task, results)) : handleRecord(task)

async function pollElsewhere(
  others: OtherReplicas,
  owner: AskedReplica,
  handleId: string,
): Promise<HandleRecord | undefined> {
  const path = `/mcp/tasks/${encodeURIComponent(handleId)}`
  const answer = await others.ask(owner, { method: 'GET', path, headers: new Headers() })
  if (answer.status === 404) return undefined
  if (answer.ok) return (await answer.json()) as HandleRecord
  throw noOwner(`replica ${owner.id} answers ${answer.status} about the call`)
}
