/** The states of a task in control, on the wire and in the state file. Apart from the schemas: the client needs no more. */

export const TASK_STATUSES = ['pending', 'running', 'success', 'failed', 'skipped', 'cancelling', 'cancelled'] as const
export type TaskStatus = (typeof TASK_STATUSES)[number]

/** What a task ends as; one in such a state never changes again. */
export type TerminalStatus = Extract<TaskStatus, 'success' | 'failed' | 'skipped' | 'cancelled'>

export const isTerminal = (status: string): status is TerminalStatus =>
  status === 'success' || status === 'failed' || status === 'skipped' || status === 'cancelled'
