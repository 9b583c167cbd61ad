/** The allowed transitions between states, and the effect of an end on dependents. Pure. */
import type { TaskStatus } from '../../shared/contract/task-status.ts'

const MAY_FOLLOW: Readonly<Record<TaskStatus, { readonly [To in TaskStatus]?: true }>> = {
  pending: { running: true, skipped: true, cancelled: true },
  // back to pending: an attempt that a stop of the service interrupted
  running: { success: true, failed: true, cancelling: true, pending: true },
  cancelling: { cancelled: true },
  success: {},
  failed: {},
  skipped: {},
  cancelled: {},
}

export const mayFollow = (from: TaskStatus, to: TaskStatus): boolean => MAY_FOLLOW[from][to] === true

/** The ways to lose a dependency: it ended without success, or its record was deleted before it ran. */
export type LossReason = 'failed' | 'skipped' | 'cancelled' | 'deleted'

/** How a task was lost that ended without success or will never run. */
export const lossReasonOf = (task: { readonly isTerminal: boolean; readonly status: TaskStatus }): LossReason =>
  task.isTerminal ? (task.status as LossReason) : 'deleted'

/** The `error` of a task that is skipped because of `dependency`. */
export const skipReason = (dependency: string, reason: LossReason): string => `dependency ${dependency} ${reason}`
