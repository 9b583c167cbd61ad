/** The query parameters `wait_ms` and `wait_for`: how long a request waits for the end of a task or graph, or for people. */
import type { AnyElysia } from 'elysia'
import { MAX_NAMED_APPROVALS } from '../../shared/contract/approval.ts'
import { badRequest } from '../../shared/contract/errors.ts'
import { whileAllowed } from '../../shared/http/callers.ts'
import { choice, wholeNumber } from '../../shared/http/openapi/route.ts'
import { WRITE_TIMEOUT_SECONDS } from '../../shared/http/time-limits.ts'
import type { OperationParts } from '../operations/parts.ts'
import { endOrApprovals } from '../operations/wait.ts'
import type { Task } from '../task/graph.ts'

/** Longest wait of one request. A client that wants more asks again. */
export const MAX_WAIT_MS = 60_000

export const waitQuery = {
  wait_ms: wholeNumber(0, MAX_WAIT_MS, 'Milliseconds to wait for the end of what is shown. Default 0.'),
}

const WAIT_FORS = ['end', 'approval'] as const

/** For routes that show a task or a graph. */
export const endQuery = {
  ...waitQuery,
  wait_for: choice(
    WAIT_FORS,
    'approval: wait_ms is also over once only approvals can let it go on. X-Awaited-Approvals names them. Default end.',
  ),
}

export const AWAITED_APPROVALS = {
  'X-Awaited-Approvals': `With wait_for=approval, if only approvals can let it go on: their ids in its graph, percent-encoded, with commas between; at most ${MAX_NAMED_APPROVALS}.`,
}

/** Whether the caller waits for approvals too. Throws 400. */
export function waitsForApproval(text = 'end'): boolean {
  if (WAIT_FORS.some((known) => known === text)) return text === 'approval'
  throw badRequest(`invalid wait_for ${JSON.stringify(text)}: expected ${WAIT_FORS.join(' or ')}`)
}

/** Waits until the tasks have ended, only approvals can let them go on, or `until` fires. Names these in a header. */
export async function waitForApprovals(
  parts: OperationParts,
  tasks: readonly Task[],
  until: AbortSignal | undefined,
  headers: Record<string, string | number>,
): Promise<void> {
  const approvals = await endOrApprovals(parts, tasks, until)
  const ids = approvals.slice(0, MAX_NAMED_APPROVALS).map(({ id }) => encodeURIComponent(id.toWellFormed()))
  if (ids.length > 0) headers['x-awaited-approvals'] = ids.join(',')
}

/**
 * The signal that ends the wait of a request: the time is up, or the caller is gone. Undefined if the request does not
 * wait, or need not because what it waits for `isOver`. Extends the timeout of the connection by the same time. Throws
 * 400.
 */
export function waitSignal(
  app: AnyElysia,
  request: Request,
  text: string | undefined,
  isOver = false,
): AbortSignal | undefined {
  const waitMs = waitMsOf(text)
  if (waitMs === 0 || isOver) return undefined
  app.server?.timeout(request, Math.ceil(waitMs / 1000) + WRITE_TIMEOUT_SECONDS)
  return AbortSignal.any([whileAllowed(request), AbortSignal.timeout(waitMs)])
}

/** Throws 400. */
export function waitMsOf(text: string | undefined): number {
  if (text === undefined) return 0
  const ms = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (ms <= MAX_WAIT_MS) return ms
  throw badRequest(`invalid wait_ms "${text}": expected milliseconds from 0 to ${MAX_WAIT_MS}`)
}
