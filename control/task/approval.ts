/** What an approval asks, and what its answer makes of it. Pure. */
import { APPROVAL_TYPE, type ApprovalResult, MAX_WAITING_MESSAGE_CHARACTERS } from '../../shared/contract/approval.ts'
import { isObject } from '../../shared/text/json.ts'
import type { Failure } from '../rules/failure.ts'
import { hasPlaceholderName } from '../rules/placeholders.ts'

/** A task as far as its approval goes. */
export interface Asked {
  readonly type: string
  readonly input: unknown
  readonly rare: { readonly resolved_input?: unknown; readonly asked_at?: number | undefined }
}

/** Whether a caller decides about the task, and no executor runs it. */
export const isApproval = ({ type }: Pick<Asked, 'type'>): boolean => type === APPROVAL_TYPE

/** Whether somebody is to answer it now, unless it was deleted. */
export const isAskedApproval = (task: Asked): boolean => task.rare.asked_at !== undefined && isApproval(task)

/** The message of an approval that was asked for; undefined if it has none. */
export function messageOf({ input, rare }: Pick<Asked, 'input' | 'rare'>): string | undefined {
  const asked = rare.resolved_input ?? input
  const message = isObject(asked) ? asked.message : undefined
  return typeof message === 'string' && message !== '' ? message : undefined
}

/**
 * The tokens and rights that alone may answer; undefined if the task names none. Nobody, if it names them in no valid way, or
 * in values that are not known yet.
 */
export function approversOf({ input, rare }: Pick<Asked, 'input' | 'rare'>): readonly string[] | undefined {
  const asked = rare.resolved_input ?? input
  if (!isObject(asked)) return undefined
  const by = hasPlaceholderName(asked) ? [] : asked.by
  if (by == null) return undefined
  return Array.isArray(by) ? by.filter((name) => typeof name === 'string') : []
}

/** The beginning of it. */
export function shortMessage(asked: Pick<Asked, 'input' | 'rare'>): string | undefined {
  const message = messageOf(asked)
  if (message === undefined) return undefined
  if (message.length <= MAX_WAITING_MESSAGE_CHARACTERS) return message
  return `${message.slice(0, MAX_WAITING_MESSAGE_CHARACTERS - 1).toWellFormed()}…`
}

/** The failure of a task that was rejected. */
export function rejection({ who, why }: Pick<ApprovalResult, 'who' | 'why'>): Failure {
  const message = `rejected by ${who}${why === undefined || why === '' ? '' : `: ${why}`}`
  return { code: 'denied', message, retryable: false }
}

/** The failure of a task that nobody answered within `timeout` milliseconds. */
export const unanswered = (timeout: number): Failure => ({
  code: 'timeout',
  message: `task timed out after ${timeout}ms: nobody approved or rejected it`,
  retryable: false,
})

/** When it times out, in milliseconds since 1970; undefined without a timeout. */
export const expiryOf = (askedAt: number, timeout = 0): number | undefined =>
  timeout > 0 ? askedAt + timeout : undefined

/** An answer without what the service adds. */
type Said = Pick<ApprovalResult, 'approved' | 'who' | 'why'>

/** Whether two answers are the same one, sent twice. */
export const isSameAnswer = (a: Said, b: Said): boolean =>
  a.approved === b.approved && a.who === b.who && (a.why ?? '') === (b.why ?? '')

/** The answer that an ended task got; undefined if it ended without one. */
export function answerIn(result: unknown): ApprovalResult | undefined {
  if (!isObject(result)) return undefined
  return typeof result.approved === 'boolean' && typeof result.who === 'string' ? (result as ApprovalResult) : undefined
}
