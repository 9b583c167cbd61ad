/** Limits of the tools of `POST /mcp`. Apart from their schemas, which are loaded when somebody first speaks the protocol. */

/** Milliseconds that a tool may wait at most: less than any client waits for an answer. */
export const MAX_TOOL_WAIT_MS = 50_000

/** Tasks that one call may name. */
export const MAX_NAMED_TASKS = 1_000

/** Tasks that one answer shows; of the rest there are numbers. */
export const MAX_SHOWN_TASKS = 100

/** Characters of output that one answer holds. */
export const MAX_LOG_CHARACTERS = 20_000
