/** Waits for a graph of another replica: its owner waits, and answers with the states of the tasks. */

import { ServiceError } from '../../shared/contract/errors.ts'
import { WaitedGraph } from '../../shared/contract/replicas.ts'
import { checkOf } from '../json/schema-check.ts'
import type { OperationParts } from './parts.ts'

interface Caller {
  readonly traceId: string
  readonly signal: AbortSignal
}

/** Undefined if the graph is here or nowhere. Rejects with 503 while it has no owner that answers. */
export async function waitElsewhere(
  { keeper: { others } }: OperationParts,
  graphId: string,
  waitMs: number,
  { traceId, signal }: Caller,
): Promise<WaitedGraph | undefined> {
  const owner = await others.ownerOf({ graphId })
  if (owner === undefined) return undefined
  const path = `/replicas/graphs/${encodeURIComponent(graphId)}/wait?wait_ms=${waitMs}`
  const headers = new Headers({ 'x-trace-id': traceId })
  const answer = await others.ask(owner, { method: 'GET', path, headers, signal, waitMs })
  const body: unknown = await answer.json().catch(() => undefined)
  if (answer.status === 404) return undefined // it was removed just now
  if (!answer.ok || !checkOf(WaitedGraph).accepts(body))
    throw new ServiceError(503, `replica ${owner.id} answers ${answer.status} instead of the states of the graph`)
  return body as WaitedGraph
}
