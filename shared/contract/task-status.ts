/** The states of a task in control. In a file of their own, because the client does not need the schemas. */

export const TASK_STATUSES = ['pending', 'running', 'success', 'failed', 'skipped', 'cancelling', 'cancelled'] as const
export type TaskStatus = (typeof TASK_STATUSES)[number]

/** Final states of a task. */
export type TerminalStatus = Extract<TaskStatus, 'success' | 'failed' | 'skipped' | 'cancelled'>

export const isTerminal = (status: string): status is TerminalStatus =>
  status === 'success' || status === 'failed' || status === 'skipped' || status === 'cancelled'
