/** The states of a task in the runtime service. Apart from the schemas: whoever only waits needs no more. */

export const RUNTIME_STATUSES = ['accepted', 'running', 'success', 'failed', 'cancelled'] as const
export type RuntimeStatus = (typeof RUNTIME_STATUSES)[number]

/** What a task ends as; one in such a state never changes again. */
export type RuntimeEnd = Extract<RuntimeStatus, 'success' | 'failed' | 'cancelled'>

export const hasEnded = (status: string): status is RuntimeEnd =>
  status === 'success' || status === 'failed' || status === 'cancelled'
