/** What a task of type `wait` waits for, and what comes of it. Pure. */
import { WAIT_TYPE } from '../../shared/contract/signal.ts'
import type { NotBefore } from '../../shared/contract/start-order.ts'
import { isObject } from '../../shared/text/json.ts'
import type { Failure } from '../rules/failure.ts'
import { startOf } from '../rules/not-before.ts'
import type { Asked } from './approval.ts'

/** Whether a signal, a time or an HTTP answer ends the task, and no attempt executes it. */
export const isWait = ({ type }: Pick<Asked, 'type'>): boolean => type === WAIT_TYPE

interface Waits {
  readonly until?: NotBefore | null
  readonly signal?: boolean | null
  readonly http?: object | null
}

/** The parameters that were checked when it began to wait. */
function paramsOf({ input, rare }: Pick<Asked, 'input' | 'rare'>): Waits {
  const params = rare.resolved_input ?? input
  return isObject(params) ? (params as Waits) : {}
}

/** When it succeeds by itself, in milliseconds since 1970; undefined if only a signal ends it. */
export function endOfWait(task: Pick<Asked, 'input' | 'rare'>, askedAt: number): number | undefined {
  const { until } = paramsOf(task)
  return until == null ? undefined : startOf(until, askedAt)
}

/** Whether a signal ends it. */
export function takesSignal(task: Pick<Asked, 'input' | 'rare'>): boolean {
  const { until, signal, http } = paramsOf(task)
  return signal ?? (until == null && http == null)
}

/** Whether an HTTP answer ends it. */
export const looksOutside = (task: Pick<Asked, 'input' | 'rare'>): boolean => paramsOf(task).http != null

/** The failure of a task that neither a signal nor its time ended within `timeout` milliseconds. */
export const unsignalled = (timeout: number): Failure => ({
  code: 'timeout',
  message: `task timed out after ${timeout}ms: what it waits for did not come`,
  retryable: false,
})
