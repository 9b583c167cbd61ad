/** Why a graph failed, as the service tells it, with the last lines of the standard error of the task that failed first. */
import type { GraphDetails, RootCause } from '../../shared/contract/graphs.ts'
import type { ServiceClient } from '../../shared/http/client.ts'
import { TaskOutput } from './task-output.ts'

/** Lines of standard error. */
export const REPORTED_LINES = 20

/** Bytes of these lines that are read, and characters of each that are shown. */
const MAX_REPORTED_BYTES = 64 * 1024
const MAX_LINE_CHARACTERS = 1_000

export interface FailureReport {
  readonly cause: RootCause
  /** The same for people: `tail` has the last lines of standard error, or of any output if it is empty. */
  readonly shown: RootCause
}

/** Undefined if the graph has no failure, or the service does not answer. */
export async function failureReport(
  client: ServiceClient,
  graphId: string,
  signal: AbortSignal,
): Promise<FailureReport | undefined> {
  const graph = `/graphs/${encodeURIComponent(graphId)}`
  const found = await client.call({ method: 'GET', path: graph, signal }).catch(() => ({}))
  const { root_cause: cause } = found as Partial<GraphDetails>
  if (cause === undefined) return undefined
  const path = `${graph}/tasks/${encodeURIComponent(cause.task_id)}`
  const output = new TaskOutput(client, MAX_REPORTED_BYTES)
  const request = { path, tail: REPORTED_LINES, isFollowed: false, onChunk: () => {}, onOutage: () => {}, signal }
  await output.read(request).catch(() => {}) // the cause has the end of the output as well
  const tail = lastLines(output.text().stderr) || lastLines(cause.tail ?? '')
  return { cause, shown: { ...cause, ...(tail !== '' && { tail }) } }
}

const lastLines = (text: string): string =>
  text
    .trimEnd()
    .split('\n')
    .slice(-REPORTED_LINES)
    .map((line) => line.slice(0, MAX_LINE_CHARACTERS))
    .join('\n')
