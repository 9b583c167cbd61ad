/** The query parameter `wait_ms`: the maximum time that a request waits for the end of a task or graph. */
import type { AnyElysia } from 'elysia'
import { badRequest } from '../../shared/contract/errors.ts'
import { wholeNumber } from '../../shared/http/openapi/route.ts'
import { WRITE_TIMEOUT_SECONDS } from '../../shared/http/time-limits.ts'

/** Longest wait of one request. A client that wants more asks again. */
export const MAX_WAIT_MS = 60_000

export const waitQuery = {
  wait_ms: wholeNumber(0, MAX_WAIT_MS, 'Milliseconds to wait for the end of what is shown. Default 0.'),
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
  return AbortSignal.any([request.signal, AbortSignal.timeout(waitMs)])
}

/** Throws 400. */
export function waitMsOf(text: string | undefined): number {
  if (text === undefined) return 0
  const ms = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (ms <= MAX_WAIT_MS) return ms
  throw badRequest(`invalid wait_ms "${text}": expected milliseconds from 0 to ${MAX_WAIT_MS}`)
}
