/** The states of a task in the runtime service. In a file of their own, because waiting clients do not need the schemas. */

/** With the value `start`, `wait_ms` also ends when the process of the task was started. Older versions ignore it. */
export const WAIT_FOR_HEADER = 'x-service-wait-for'

export const RUNTIME_STATUSES = ['accepted', 'running', 'success', 'failed', 'cancelled'] as const
export type RuntimeStatus = (typeof RUNTIME_STATUSES)[number]

/** Final states of a task. */
export type RuntimeEnd = Extract<RuntimeStatus, 'success' | 'failed' | 'cancelled'>

export const hasEnded = (status: string): status is RuntimeEnd =>
  status === 'success' || status === 'failed' || status === 'cancelled'
