/** Reads what a task did through the rules of its network: from the runtime service that ran it, else its totals from its result. */

import { messageOf, ServiceError } from '../../shared/contract/errors.ts'
import { NO_NETWORK, type TaskNetwork } from '../../shared/contract/task-network.ts'
import { isObject } from '../../shared/text/json.ts'
import { ExecutionError } from '../executors/executor.ts'
import { ResultFile } from '../rules/result-file.ts'
import type { Task } from '../task/graph.ts'
import type { Reader } from './logs.ts'
import { knownTask, type TaskAddress } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'
import { storedValue } from './stored-result.ts'

/** Milliseconds for an answer of the runtime service. */
const NETWORK_TIMEOUT_MS = 5_000

/** The connections of the newest attempt. Throws 404, and 503 if the runtime service does not answer. */
export async function readNetwork(
  parts: OperationParts,
  address: TaskAddress,
  { signal, traceId }: Reader,
): Promise<TaskNetwork> {
  const task = knownTask(parts.store, address)
  const { handle } = task.rare
  const executor = parts.executors.get(task.type)
  if (!handle?.isTaken || executor?.readNetwork === undefined) return NO_NETWORK
  const timely = AbortSignal.any([signal, AbortSignal.timeout(NETWORK_TIMEOUT_MS)])
  try {
    return await executor.readNetwork(handle, { traceId, signal: timely })
  } catch (error) {
    if (error instanceof ExecutionError && error.code === 'not_found') return await totalsIn(task, parts)
    const cause = timely.aborted ? `no answer within ${NETWORK_TIMEOUT_MS} ms` : messageOf(error)
    throw new ServiceError(503, `cannot read the connections of the task: ${cause}`)
  }
}

/** The runtime service has removed the task, or is of a version that lists no connections. */
async function totalsIn({ result }: Task, { keeper }: OperationParts): Promise<TaskNetwork> {
  const value = result instanceof ResultFile ? await storedValue(result, keeper.results) : result
  const network = isObject(value) && isObject(value.usage) ? value.usage.network : undefined
  if (!isObject(network)) return NO_NETWORK
  const [connections_allowed, connections_refused, bytes_sent, bytes_received] = [
    network.connections_allowed,
    network.connections_refused,
    network.bytes_sent,
    network.bytes_received,
  ].map((count) => (typeof count === 'number' ? count : 0)) as [number, number, number, number]
  return {
    ...NO_NETWORK,
    usage: { connections_allowed, connections_refused, bytes_sent, bytes_received },
    unlisted: connections_allowed + connections_refused,
  }
}
