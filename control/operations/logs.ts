/** Reads pages of the output of a task: from its result, or, while it runs, from the output so far. */

import { badRequest, messageOf, ServiceError } from '../../shared/contract/errors.ts'
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import { textOf } from '../../shared/streams/bounded-output.ts'
import { type Page, page, streamsOf } from '../rules/log-page.ts'
import { ResultFile } from '../rules/result-file.ts'
import type { Task } from '../task/graph.ts'
import { knownTask, type TaskAddress } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'
import { storedValue } from './stored-result.ts'

/** Milliseconds for an answer of the other service. */
const SO_FAR_TIMEOUT_MS = 5_000

export interface LogsRequest {
  readonly address: TaskAddress
  /** Undefined: the first existing stream. */
  readonly stream: string | undefined
  /** In characters. A negative offset counts from the end. */
  readonly offset: number
  readonly limit: number
}

export interface Reader {
  readonly traceId: string
  /** Fires when the caller is gone. */
  readonly signal: AbortSignal
}

export interface Logs {
  readonly status: TaskStatus
  readonly isTerminal: boolean
  readonly stream: string
  /** All existing streams. */
  readonly streams: readonly string[]
  /** Undefined if there is no text. */
  readonly page: Page | undefined
}

/** Throws 404, 400 if the stream does not exist, 503 if the service that executes the task does not answer. */
export async function readLogs(parts: OperationParts, request: LogsRequest, reader: Reader): Promise<Logs> {
  const { store, keeper } = parts
  const { address, offset, limit } = request
  const task = knownTask(store, address)
  const soFar = task.isTerminal ? undefined : (outputSoFar(task, parts) ?? (await remoteSoFar(task, parts, reader)))
  const kept = keeper.kept('show')
  const { status, isTerminal, result } = task // the task may have ended meanwhile
  const known = result instanceof ResultFile ? await storedValue(result, keeper.results) : (result ?? soFar)
  const texts = streamsOf(known, task.rare.progress)
  await kept
  const streams = [...texts.keys()]
  const stream = request.stream ?? streams[0] ?? 'result'
  const text = texts.get(stream)
  if (text === undefined && streams.length > 0) {
    throw badRequest(`task ${address.id} has no stream ${JSON.stringify(stream)} (available: ${streams.join(', ')})`)
  }
  return { status, isTerminal, stream, streams, page: text === undefined ? undefined : page(text, offset, limit) }
}

/** The output so far, if this service executes the attempt. */
function outputSoFar(task: Task, { scheduler }: OperationParts): Record<string, string> | undefined {
  const output = scheduler.outputOf(task)
  if (output === undefined) return undefined
  return Object.fromEntries(Object.entries(output).map(([name, stream]) => [name, textOf(stream.read(0), true)]))
}

/** The result so far, if another service executes the attempt. Throws 503 if that service does not answer. */
async function remoteSoFar(task: Task, { executors }: OperationParts, { signal, traceId }: Reader): Promise<unknown> {
  const executor = executors.get(task.type)
  if (!task.rare.handle?.isTaken || executor?.resultSoFar === undefined) return undefined
  const timely = AbortSignal.any([signal, AbortSignal.timeout(SO_FAR_TIMEOUT_MS)])
  try {
    return await executor.resultSoFar(task.rare.handle, { traceId, signal: timely })
  } catch (error) {
    if (task.isTerminal) return undefined // the task has its result now
    const cause = timely.aborted ? `no answer within ${SO_FAR_TIMEOUT_MS} ms` : messageOf(error)
    throw new ServiceError(503, `cannot read the output so far: ${cause}; the task still runs, try again or call wait`)
  }
}
