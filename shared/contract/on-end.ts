/** What a graph does once all of its tasks have ended (`on_end`). In a file of its own, because the client does not need the schemas. */

/** The states of the graph in which an entry runs. */
export const ON_END_STATES = ['always', 'success', 'failed', 'cancelled'] as const
export type OnEndState = (typeof ON_END_STATES)[number]

/** Entries of one graph. */
export const MAX_ON_END = 16

/** The start of the ids of the tasks that the entries become: `on_end/0`. */
export const ON_END_IDS = 'on_end/'
