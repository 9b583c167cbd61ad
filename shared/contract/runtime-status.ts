/** The states of a task in the runtime service. In a file of their own, because waiting clients do not need the schemas. */

export const RUNTIME_STATUSES = ['accepted', 'running', 'success', 'failed', 'cancelled'] as const
export type RuntimeStatus = (typeof RUNTIME_STATUSES)[number]

/** Final states of a task. */
export type RuntimeEnd = Extract<RuntimeStatus, 'success' | 'failed' | 'cancelled'>

export const hasEnded = (status: string): status is RuntimeEnd =>
  status === 'success' || status === 'failed' || status === 'cancelled'
