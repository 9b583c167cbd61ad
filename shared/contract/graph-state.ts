/** The states of a graph in control. In a file of their own, because the client does not need the schemas. */

/**
 * `running` until all tasks have ended; then `failed` if a task failed, else `cancelled` if a task was cancelled or
 * skipped, else `success`. What the graph's rules provide for does not count (`docs/graphs.md`).
 */
export const GRAPH_STATES = ['running', 'success', 'failed', 'cancelled'] as const
export type GraphState = (typeof GRAPH_STATES)[number]

/** The state of a graph whose rows in the database cannot be read: it is listed, and nothing else. */
export const UNREADABLE = 'unreadable'

/** The states of graphs in lists. */
export const LISTED_GRAPH_STATES = [...GRAPH_STATES, UNREADABLE] as const

/** What tasks wait for so long that a list of graphs shows it, and can be asked for it. */
export const WAITING_KINDS = ['approval', 'backoff'] as const
export type WaitingKind = (typeof WAITING_KINDS)[number]
