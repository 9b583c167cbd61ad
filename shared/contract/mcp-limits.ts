/** Limits of the tools of `POST /mcp`. In a file of their own, because the schemas are loaded with the first request. */

/** Longest wait of a tool in milliseconds. Clients wait longer for an answer. */
export const MAX_TOOL_WAIT_MS = 50_000

/** Task ids in one call. */
export const MAX_NAMED_TASKS = 1_000

/** Approvals that one call of `wait` asks the user about. */
export const MAX_APPROVAL_QUESTIONS = 5

/** Tasks shown in one answer. The others are only counted. */
export const MAX_SHOWN_TASKS = 100

/** Characters of output in one answer. */
export const MAX_LOG_CHARACTERS = 20_000
